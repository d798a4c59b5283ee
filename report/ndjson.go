package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mqttload/mqttload/result"
)

// iterationLine is one line of NDJSON. NSPerOp is one sample of the summary,
// null if the iteration completed nothing.
type iterationLine struct {
	Run    string            `json:"run"`
	Case   string            `json:"case"`
	Params map[string]string `json:"params"`
	result.Iteration
	NSPerOp *float64 `json:"ns_per_op"`
}

// writeNDJSON writes one JSON object per line and iteration, warm-ups included: the
// fields of the report file's iterations with "run", "case", "params" as an
// object, and "ns_per_op". For jq, DuckDB, pandas and the like.
func writeNDJSON(w io.Writer, r *result.Report) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, c := range r.Cases {
		params := map[string]string{}
		for _, p := range c.Params {
			params[p.Key] = p.Value
		}
		for _, it := range c.Iterations {
			if err := enc.Encode(iterationLine{r.Run.ID, c.ID, params, it, nsPerOp(it)}); err != nil {
				return fmt.Errorf("encode iteration of case %q: %w", c.ID, err)
			}
		}
	}
	return flush(w, bytes.NewBuffer(printableJSON(b.Bytes())))
}

func nsPerOp(it result.Iteration) *float64 {
	if it.Operations <= 0 || it.ElapsedNS <= 0 {
		return nil
	}
	v := float64(it.ElapsedNS) / float64(it.Operations)
	return &v
}

// printableJSON replaces characters that do not print by their JSON escapes. In
// the output of encoding/json only strings have characters other than ASCII, so every
// value stays the same.
func printableJSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case r < 0x7f || unicode.IsPrint(r):
			out = append(out, b[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		b = b[size:]
	}
	return out
}
