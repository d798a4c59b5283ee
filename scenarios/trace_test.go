package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/text"
)

func TestTrace(t *testing.T) {
	// Two bursts, a second of silence between them.
	path := writeFile(t, "t.csv", "\ufefftopic,time,size\na,100.0,10\nb,100.001,1KiB\nb,100.002,20\na,101.002s,30\na,101.004,40\n")
	c := casesOf(t, set(t, parse(t, "matrix: {qos: 1}"), "payload", "trace:"+path))[0]
	p := c.Payload
	if p.Max() != 1024 || p.min() != 10 || p.Mean() != (10+1024+20+30+40)/5.0 || !p.Verifiable() {
		t.Errorf("%+v", p)
	}
	f := p.Filler(1, 0)
	for seq, want := range []int{10, 1024, 20, 30, 40, 10} {
		if n := f.Size(uint64(seq)); n != want {
			t.Errorf("message %d has %d bytes, want %d", seq, n, want)
		}
	}
	// 1.004 s and an average gap of 251 ms, in steps of 1.255 ms.
	sum, length := 0.0, time.Duration(0)
	for _, st := range c.Load.Stages {
		sum += st.From * st.Duration.Seconds()
		length += st.Duration
	}
	if sum < 4.9999 || sum > 5.0001 || length < 1254*time.Millisecond || length > 1258*time.Millisecond || length != c.Load.Duration || c.Load.Warmup != 0 || c.Load.Iterations != 2 {
		t.Errorf("%g messages in %v: %+v", sum, length, c.Load)
	}
	if len(c.Load.Stages) > 12 {
		t.Errorf("%d stages", len(c.Load.Stages))
	}
	other := writeFile(t, "t.csv", "time,size\n0,10\n0.1,10\n")
	if set(t, parse(t, "name: x"), "payload", "trace:"+path).Hash() == set(t, parse(t, "name: x"), "payload", "trace:"+other).Hash() {
		t.Error("the trace is not in the hash")
	}
	if files := set(t, parse(t, "name: x"), "payload", "trace:"+path).Files(); len(files) != 1 || files[0] != path {
		t.Errorf("files %v", files)
	}
}

func TestTraceErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "line 1: the first row must name the columns time and size",
		"0,10\n":                     "line 1: the first row must name the columns time and size",
		"time,size\n":                "has no rows",
		"time,size\n0,10\nx,10\n":    "line 3: x is not a time: write seconds such as 0.25, or a duration such as 250ms",
		"time,size\n2,10\n1,10\n":    "line 3: time goes back: sort the rows",
		"time,size\n0,big\n":         "line 2: big is not a payload size",
		"time,size\n0,1\n999999,1\n": "is longer than 24h",
		"time,size\n0,1\n0,1,3\n":    "record on line 3: wrong number of fields",
	} {
		path := writeFile(t, "t.csv", in)
		_, err := ParsePayload("trace:" + path)
		if err == nil || !strings.HasPrefix(err.Error(), "trace "+text.Quote(path)+": "+want) {
			t.Errorf("%q: %v", in, err)
		}
	}
	path := writeFile(t, "t.csv", "time,size\n0,1\n1,1\n")
	for _, key := range []string{"rate", "publishers"} {
		_, err := set(t, parse(t, "name: x"), "payload", "trace:"+path, key, "5").Cases()
		if err == nil || !strings.Contains(err.Error(), "a trace ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
