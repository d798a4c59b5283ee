package report

import (
	"encoding/csv"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/mqttload/mqttload/result"
)

// FuzzEscapes: no text leaves its place in any of the line and cell formats.
func FuzzEscapes(f *testing.F) {
	for _, s := range append(spiteful, "", "\U000e0001", "'=1", "٣", "=\x00") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cell := csvText(s)
		if first := firstRune(strings.TrimLeft(cell, " ")); first != "" && strings.Contains("=@＝＋－＠", first) {
			t.Errorf("%q is a formula", cell)
		}
		rows, err := csv.NewReader(strings.NewReader("x,\"" + strings.ReplaceAll(cell, `"`, `""`) + "\"\n")).ReadAll()
		if err != nil || rows[0][1] != cell {
			t.Errorf("%q is read as %q, %v", cell, rows, err)
		}
		if line := commandProperty(s); strings.ContainsAny(line, "\r\n:,") {
			t.Errorf("%q ends a property", line)
		}
		c := result.Case{Params: params("k", s)}
		if name, tag := benchName(&c), hdrTag(&c, "ack"); strings.ContainsFunc(name+tag, unicode.IsSpace) || strings.Contains(tag, ",") || procs.MatchString(name) {
			t.Errorf("name %q, tag %q", name, tag)
		}
		plain, err := json.Marshal(map[string]string{"k": s})
		if err != nil {
			t.Fatal(err)
		}
		safe := printableJSON(plain)
		var a, b any
		if json.Unmarshal(plain, &a) != nil || json.Unmarshal(safe, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s became %s", plain, safe)
		}
		if strings.ContainsFunc(string(safe), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is not safe to print", safe)
		}
	})
}

// TestGoBenchReadsBack: what writeGoBench writes is what result reads.
func TestGoBenchReadsBack(t *testing.T) {
	for _, r := range []*result.Report{matrixReport(), spitefulReport()} {
		path := t.TempDir() + "/r.bench"
		if err := result.WriteFile(path, []byte(render(t, "gobench", r))); err != nil {
			t.Fatal(err)
		}
		in, err := result.ReadAny(path)
		if err != nil || len(in.Cells) != len(r.Cases) {
			t.Fatalf("%d cells, %v", len(in.Cells), err)
		}
		for i, c := range r.Cases {
			if got := in.Cells[i]; got.ID != c.ID || len(got.Samples) != c.Summary.N {
				t.Errorf("cell %q with %d samples, want %q with %d", got.ID, len(got.Samples), c.ID, c.Summary.N)
			}
		}
	}
}
