package result

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/internal/racing"
)

// TestManyElements: files below maxFileSize that would unfold to gigabytes are
// refused before they are decoded, so that they take their own size and no more.
func TestManyElements(t *testing.T) {
	const head = `{"schema":"mqttload.report/1","cases":[`
	const n = maxElements + 1
	in := `{"id":"a=1","params":[{"key":"a","value":"1"}],`
	for name, text := range map[string]string{
		"iterations": head + in + `"iterations":[` + strings.Repeat("{},", n) + `{}]}]}`,
		"ticks":      head + in + `"timeline":[` + strings.Repeat("null,", n) + `{}]}]}`,
		"numbers":    head + in + `"iterations":[` + strings.Repeat("0,", n) + `0]}]}`,
		"params":     head + `{"params":[` + strings.Repeat("{},", n) + `{}]}]}`,
		"cases":      head + strings.Repeat("{},", MaxCases+1) + `{}]}`,
		"lists":      head + in + `"x":[` + strings.Repeat("[],", n) + `{}]}]}`,
		"benchmarks": `{"Benchmarks":[` + strings.Repeat("0,", MaxCases+1) + `0]}`,
		"measured":   `{"Benchmarks":[{"Measurements":[` + strings.Repeat("0,", n) + `0]}]}`,
		"lines":      "x" + strings.Repeat("\n", n) + "x",
		"tabs":       "Mean" + strings.Repeat("\t", n) + "x",
		"bars":       "Mean" + strings.Repeat("|", n) + "x",
		"words":      "BenchmarkX 1" + strings.Repeat(" 1", n),
	} {
		path := filepath.Join(t.TempDir(), "bomb.json.gz")
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write([]byte(text))
		z.Close()
		if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadAny(path)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, errTooLarge) {
			t.Errorf("%s: error %v", name, err)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > uint64(3*len(text)+1<<20) {
			t.Errorf("%s: %d bytes were allocated to refuse %d", name, taken, len(text))
		}
		if !strings.HasPrefix(text, head) {
			continue
		}
		if _, err := Read(path); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: Read: error %v", name, err)
		}
		if _, err := decode(&packed, maxFileSize); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: Decode: error %v", name, err)
		}
	}
}

// TestElementsCounted: only elements of lists count, and what a day of
// measuring fills is read.
func TestElementsCounted(t *testing.T) {
	for text, want := range map[string]int{
		`{"a":1,"b":2}`: 0, `{"a":[1,2,3]}`: 3, `{"a":["x,[,","\",[\\",{"b":1,"c":2}]}`: 3, `{"a":[[1,2],[]]}`: 5, `]]}},,[`: 1,
	} {
		var s elementScanner
		for i := 0; i < len(text); i++ {
			if text[i] == '"' {
				i = stringEnd([]byte(text), i)
			} else if err := s.next(text[i]); err != nil {
				t.Fatal(err)
			}
		}
		if s.elements != want {
			t.Errorf("%s: %d elements, want %d", text, s.elements, want)
		}
	}
	if racing.Enabled {
		return // a day of one goroutine takes 17 s there and shows no race
	}
	r := &Report{Cases: []Case{{ID: "a=1", Params: []Param{{"a", "1"}}}}}
	for i := range 24 * 3600 {
		at := int64(i) * 1_000_000_000
		p99 := at
		r.Cases[0].Iterations = append(r.Cases[0].Iterations, Iteration{
			Launch: 1, Stage: StageActual, Index: i + 1, StartNS: at, ElapsedNS: 1e9, Operations: 10_000,
			Sent: 10_000, Acked: 10_000, Received: 10_000, Bytes: 1e8,
		})
		r.Cases[0].Timeline = append(r.Cases[0].Timeline, Tick{TNS: at, Sent: 10_000, Received: 10_000, P99NS: &p99})
	}
	var b bytes.Buffer
	if err := Encode(&b, r); err != nil {
		t.Fatal(err)
	}
	size := b.Len()
	if _, err := decode(&b, maxFileSize); err != nil || size < 32<<20 {
		t.Errorf("a day of %d bytes: %v", size, err)
	}
}
