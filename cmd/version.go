package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/result"
)

// version and commit may be set by the linker:
// -ldflags "-X github.com/mqttload/mqttload/cmd.version=1.2.3". Otherwise they
// are what the Go tool recorded in the binary.
var version, commit string

// tool describes this build.
func tool() result.Tool {
	t := result.Tool{Version: version, Commit: commit, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if t.Version == "" {
		t.Version = info.Main.Version
	}
	if t.Version == "" || t.Version == "(devel)" {
		t.Version = "devel"
	}
	if t.Commit == "" {
		t.Commit = settings["vcs.revision"]
		if t.Commit != "" && settings["vcs.modified"] == "true" {
			t.Commit += "+dirty"
		}
	}
	if t.Commit == "" {
		t.Commit = "unknown"
	}
	return t
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		Example: "  mqttload version",
		RunE: func(*cobra.Command, []string) error {
			t := tool()
			_, err := fmt.Fprintf(a.Stdout, "mqttload %s\ncommit %s\n%s %s/%s\n", t.Version, t.Commit, t.Go, runtime.GOOS, runtime.GOARCH)
			return stdoutError(err)
		},
	}
}
