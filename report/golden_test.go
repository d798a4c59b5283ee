package report

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/mqttload/mqttload/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares what render writes for r with testdata/name.
func golden(t *testing.T, name string, r *result.Report, render func(io.Writer, *result.Report) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := render(&b, r); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s differs; go test ./report -update rewrites it. got:\n%s", path, b.String())
	}
	return b.String()
}
