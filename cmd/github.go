package cmd

import (
	"fmt"
	"os"
	"strings"

	"github.com/mqttload/mqttload/internal/file"
)

// tellGitHub adds markdown to the summary of the step that this process is
// part of, where it is one of GitHub Actions, and prints workflow commands that
// mark what failed. They go to standard error, which is read for them as
// standard output is: that one carries the result and nothing else.
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

// appendTo adds text at the end of a file that other steps' commands share.
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
