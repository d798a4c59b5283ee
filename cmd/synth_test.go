//go:build unix

package cmd

import (
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf16"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mqttload/mqttload/result"
)

// synth writes a report that no run made, always the same for the same words:
//
//	synth FILE [id=RUN] [started=2026-01-02] [cpu=NAME] [url=URL] [hash=HASH] [n=15]
//	    [scale=1.2[@qos=1]] [lost=3[@qos=1]] [dup=3[@qos=2]] [drop=qos=2] [transports] [status=partial] [mean=2[@qos=1]] [hdr=TEXT[@qos=1]]
func synth(ts *testscript.TestScript, _ bool, args []string) {
	r := &result.Report{
		Schema: result.Schema, Tool: result.Tool{Version: "v1.2.3", Commit: "c0ffee", Go: "go1.26"},
		Run: result.Run{ID: strings.TrimSuffix(args[0], ".json"), Started: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
			Status: result.StatusComplete, Command: []string{"mqttload", "run"}},
		Environment:  result.Environment{OS: "linux", Arch: "amd64", Kernel: "6.1", CPU: "Made Up 9000", Cores: 4, GOMAXPROCS: 4},
		Target:       result.Target{URL: "mqtt://broker.example:1883"},
		ScenarioHash: "0011223344556677", Scenario: map[string]any{"name": "synth"},
	}
	finished := r.Run.Started.Add(time.Minute)
	r.Run.Finished = &finished
	n, transports := 15, []string{""}
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "id":
			r.Run.ID = value
		case "started":
			day, err := time.Parse(time.DateOnly, value)
			ts.Check(err)
			r.Run.Started = day
		case "cpu":
			r.Environment.CPU = value
		case "url":
			r.Target.URL = value
		case "hash":
			r.ScenarioHash = value
		case "status":
			r.Run.Status = value
		case "n":
			n = int(number(ts, value))
		case "transports":
			transports = []string{"tcp", "tls"}
		}
	}
	for _, tr := range transports {
		for qos := range 3 {
			r.Cases = append(r.Cases, synthCase(qos, tr, n))
		}
	}
	for _, arg := range args[1:] {
		alter(ts, r, arg)
	}
	ts.Check(result.Write(ts.MkAbs(args[0]), r))
}

func number(ts *testscript.TestScript, s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	ts.Check(err)
	return v
}

// synthCase has n iterations with 2 % of noise around 1, 2 or 3 us, and TLS twice that.
func synthCase(qos int, transport string, n int) result.Case {
	params := []result.Param{{Key: "qos", Value: strconv.Itoa(qos)}, {Key: "payload", Value: "10"}, {Key: "protocol", Value: "5"}}
	mean := float64(qos+1) * 1000
	if transport != "" {
		params = append(params, result.Param{Key: "transport", Value: transport})
		if transport == "tls" {
			mean *= 2
		}
	}
	const messages = 300_000
	c := result.Case{ID: result.CaseID(params), Params: params, Window: 100, WindowAsked: 100, OperationsPerMessage: 1,
		Clients: result.Clients{Planned: 2, Connected: 2}}
	at := int64(0)
	for i := range n {
		noise := math.Sin(float64(i*i+7*i+3)) * 0.02
		elapsed := int64(messages * mean * (1 + noise))
		c.Iterations = append(c.Iterations, result.Iteration{Launch: 1, Stage: result.StageActual, Index: i + 1, StartNS: at, ElapsedNS: elapsed,
			Operations: messages, Sent: messages, Acked: messages, Received: messages, Bytes: 10 * messages})
		at += elapsed
	}
	total := int64(n * messages)
	c.Delivery = result.Delivery{Scheduled: total, Sent: total, Acked: total, Expected: total, Received: total, Delivered: total}
	h := result.NewHDR()
	for i := range 1000 {
		result.Record(h, int64(100*mean*(1+float64(i)/500)), total/1000)
	}
	c.Latency.EndToEnd = result.NewHistogram(h)
	c.Summary = result.Summarize(c.Iterations, 1)
	return c
}

// alter changes the cases that stand behind an @, or all.
func alter(ts *testscript.TestScript, r *result.Report, arg string) {
	key, value, _ := strings.Cut(arg, "=")
	value, where, _ := strings.Cut(value, "@")
	if key == "drop" {
		r.Cases = slices.DeleteFunc(r.Cases, func(c result.Case) bool { return strings.Contains(c.ID, value) })
		return
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		if !strings.Contains(c.ID, where) {
			continue
		}
		switch key {
		case "scale":
			scaleCase(c, number(ts, value))
		case "lost":
			n := int64(number(ts, value))
			c.Delivery.Lost, c.Delivery.Delivered, c.Delivery.Received = n, c.Delivery.Expected-n, c.Delivery.Received-n
		case "dup":
			n := int64(number(ts, value))
			c.Delivery.Duplicated, c.Delivery.Received = n, c.Delivery.Received+n
		case "mean": // a summary that is not that of the iterations
			mean := *c.Summary.MeanNS * number(ts, value)
			c.Summary.MeanNS = &mean
		case "hdr": // a histogram that was damaged
			c.Latency.EndToEnd.HDR = value
		}
	}
}

// scaleCase makes every iteration take factor times as long.
func scaleCase(c *result.Case, factor float64) {
	for k := range c.Iterations {
		c.Iterations[k].ElapsedNS = int64(float64(c.Iterations[k].ElapsedNS) * factor)
	}
	c.Summary = result.Summarize(c.Iterations, max(1, c.OperationsPerMessage))
}

// scale writes a copy of a report whose iterations took FACTOR times as long,
// under another run id: scale FROM TO FACTOR
func scale(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(scaleReport(ts.MkAbs(args[0]), ts.MkAbs(args[1]), number(ts, args[2])))
}

func scaleReport(from, to string, factor float64) error {
	r, err := result.Read(from)
	if err != nil {
		return err
	}
	for i := range r.Cases {
		scaleCase(&r.Cases[i], factor)
	}
	r.Run.ID = fmt.Sprintf("%s-times-%g", r.Run.ID, factor)
	return result.Write(to, r)
}

// truncated writes the first half of a file: truncated FROM TO
func truncated(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text[:len(text)/2]), 0o644))
}

// encoded writes a file as a shell of Windows does: encoded FROM TO bom|utf16
func encoded(ts *testscript.TestScript, _ bool, args []string) {
	content := []byte("\xef\xbb\xbf" + ts.ReadFile(args[0]))
	if args[2] == "utf16" {
		content = []byte{0xff, 0xfe}
		for _, unit := range utf16.Encode([]rune(ts.ReadFile(args[0]))) {
			content = append(content, byte(unit), byte(unit>>8))
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), content, 0o644))
}

// mkfifo makes a named pipe to which nobody writes: mkfifo FILE
func mkfifo(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o600))
}

// bomb writes a small gzip file that unpacks to 300 MB: bomb FILE
func bomb(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	ts.Check(err)
	zeros := make([]byte, 1<<20)
	for range 300 {
		_, err := z.Write(zeros)
		ts.Check(err)
	}
	ts.Check(z.Close())
	ts.Check(f.Close())
}

// huge writes a sparse file of 1 GiB: huge FILE
func huge(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte("{"), 0o644))
	ts.Check(os.Truncate(ts.MkAbs(args[0]), 1<<30))
}
