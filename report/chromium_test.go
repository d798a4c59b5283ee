package report

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mqttload/mqttload/result"
)

// browser is the proxy of a headless Chromium: it serves one page and records
// everything else that the browser asks for.
type browser struct {
	program string
	page    []byte
	mu      sync.Mutex
	asked   []string
}

const pageHost = "report.test"

func (b *browser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, r.Method+" "+r.Host+r.URL.Path)
	if r.Method != http.MethodGet || r.Host != pageHost || r.URL.Path != "/" {
		http.Error(w, "there is nothing but the page", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.page)
}

func chromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("Chromium is not installed (Debian: chromium): the HTML report was not opened in a browser")
	return ""
}

// open returns the page's elements after its scripts have run, what the browser
// logged about it, and what it asked the network for.
func (b *browser) open(t *testing.T) (dom, log string, asked []string) {
	t.Helper()
	proxy := httptest.NewServer(b)
	defer proxy.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
		"--virtual-time-budget=4000", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "--window-size=1200,2000",
		"--proxy-server="+proxy.Listener.Addr().String(), "--enable-logging=stderr", "--dump-dom", "http://"+pageHost+"/")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", b.program, err, errs.String())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return out.String(), errs.String(), slices.DeleteFunc(slices.Clone(b.asked), housekeeping.MatchString)
}

// housekeeping are requests of the browser itself, for updates and the time,
// that no flag of it stops. They end at the proxy.
var housekeeping = regexp.MustCompile(`^\w+ [\w.-]+\.(google|googleapis|gvt1)\.com[:/]`)

var title = regexp.MustCompile(`<title>([^<]*)</title>`)

// TestHTMLInChromium opens pages and checks that their script ran to its end
// with all charts drawn, that the console is empty, that nothing but the page
// was asked for, and that names of reports did nothing.
func TestHTMLInChromium(t *testing.T) {
	program := chromium(t)
	timed := matrixReport()
	for i := range timed.Cases {
		p99 := int64(1e6)
		timed.Cases[i].Timeline = []result.Tick{{TNS: 0, Sent: 10, Received: 10, P99NS: &p99}, {TNS: 1e9, Sent: 10, Received: 5}, {TNS: 2e9}}
	}
	for name, c := range map[string]struct {
		reports []*result.Report
		drawn   int
		outcome *result.Comparison
	}{
		"matrix":   {[]*result.Report{timed}, 5, nil},
		"overlay":  {[]*result.Report{timed, partialReport()}, 5, nil},
		"compared": {[]*result.Report{timed, matrixReport()}, 5, compared()},
		"tables":   {nil, 0, spitefulComparison()},
		"partial":  {[]*result.Report{partialReport()}, 3, nil},
		"spiteful": {[]*result.Report{spitefulReport(), hostileReport()}, 3, nil},
		"empty":    {[]*result.Report{blank()}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var page bytes.Buffer
			err := writePage(&page, nil, c.reports, runLabels(c.reports))
			if c.outcome != nil {
				page.Reset()
				err = HTMLComparison(&page, c.outcome, c.reports...)
			}
			if err != nil {
				t.Fatal(err)
			}
			dom, log, asked := (&browser{program: program, page: page.Bytes()}).open(t)
			if m := title.FindStringSubmatch(dom); m == nil || m[1] != "mqttload report [ok]" {
				t.Errorf("title %q: the script did not end, or a name changed it", m)
			}
			if n := strings.Count(dom, "<canvas"); n != c.drawn {
				t.Errorf("%d charts were drawn, want %d", n, c.drawn)
			}
			for line := range strings.Lines(log) {
				if strings.Contains(line, "CONSOLE") {
					t.Errorf("console: %s", line)
				}
			}
			if want := []string{"GET " + pageHost + "/"}; !slices.Equal(asked, want) {
				t.Errorf("the network was asked for %q, want the page alone", asked)
			}
		})
	}
}

// TestChromiumTellsOfFaults: the checks above can fail.
func TestChromiumTellsOfFaults(t *testing.T) {
	page := `<!DOCTYPE html><title>t</title><img src="http://elsewhere.test/x.png"><script>console.error("oh"); document.title += " [ok]"; fetch("https://elsewhere.test/y")</script>`
	dom, log, asked := (&browser{program: chromium(t), page: []byte(page)}).open(t)
	if !strings.Contains(dom, "<title>t [ok]</title>") || !strings.Contains(log, "CONSOLE") {
		t.Errorf("dom %q, log:\n%s", dom, log)
	}
	if !slices.Contains(asked, "GET elsewhere.test/x.png") || !slices.ContainsFunc(asked, func(a string) bool { return strings.HasPrefix(a, "CONNECT elsewhere.test") }) {
		t.Errorf("asked for %q", asked)
	}
}
