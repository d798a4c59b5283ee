package cmd

import (
	"fmt"
	"os"
	"strings"

	"github.com/mqttload/mqttload/internal/file"
)

// tellGitHub adds Markdown to the summary of the GitHub Actions step that runs
// this process, if any, and prints workflow commands that mark what failed. These
// go to standard error, which GitHub reads as well: standard output carries only
// the result.
func (a *app) tellGitHub(summary string, errorLines []string) {
	if path := a.getenv("GITHUB_STEP_SUMMARY"); path != "" && summary != "" {
		if err := appendTo(path, strings.TrimRight(summary, "\n")+"\n\n"); err != nil {
			a.warn("warning: GITHUB_STEP_SUMMARY %s: %v", path, file.Cause(err))
		}
	}
	if a.getenv("GITHUB_ACTIONS") == "true" {
		for _, line := range errorLines {
			a.warn("%s", line)
		}
	}
}

// appendTo adds text at the end of a file that other commands write to as well.
func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(f, text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
