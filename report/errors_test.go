package report

import (
	"slices"
	"testing"

	"github.com/mqttload/mqttload/result"
)

// TestErrorExamples: an example that repeats the reason is left out.
func TestErrorExamples(t *testing.T) {
	for _, tt := range []struct{ example, want string }{
		{"", "  publish: Not authorized (2 times)"},
		{"Not authorized", "  publish: Not authorized (2 times)"},
		{"publish: Not authorized", "  publish: Not authorized (2 times)"},
		{"client 7", "  publish: Not authorized (2 times), for example: client 7"},
	} {
		e := result.Error{Kind: result.ErrorPublish, Reason: "Not authorized", Count: 2, Example: tt.example}
		if got := errorLines([]result.Case{{Errors: []result.Error{e}}}); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%q: got %q, want %q", tt.example, got, tt.want)
		}
	}
}
