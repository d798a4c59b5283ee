package scenarios

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func payloadOf(t testing.TB, text string) *Payload {
	t.Helper()
	p, err := ParsePayload(text)
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

func TestFixed(t *testing.T) {
	for in, want := range map[string]string{"text:a%i": "a%i", "0": "", "3": "\x00\x01\x02"} {
		p := payloadOf(t, in)
		if b, ok := p.Fixed(); !ok || string(b) != want || p.Filler(1, 1) != nil || !p.Verifiable() || p.Max() != len(want) {
			t.Errorf("%s: %q %v", in, b, ok)
		}
	}
	b, _ := payloadOf(t, "1000").Fixed()
	for i, got := range b {
		if got != byte(i) {
			t.Fatalf("byte %d is %d", i, got)
		}
	}
}

func TestTemplate(t *testing.T) {
	const now = 1_700_000_000_123_456_789
	for in, want := range map[string]string{
		"%i":                  "      5",
		"%i02":                "05",
		"%s|%s03|%s1":         "      1234|234|4",
		"%t":                  "1700000000123456789",
		"%t16,%t13,%t10":      "1700000000123456,1700000000123,1700000000",
		"100%% of %i3":        "100% of   5",
		`{"id":%i3,"n":%s05}`: `{"id":  5,"n":01234}`,
	} {
		p := payloadOf(t, "template:"+in)
		f := p.Filler(1, 4)
		got := make([]byte, f.Size(1234))
		f.Fill(got, 1234, now)
		if string(got) != want || p.Max() != len(want) || p.Verifiable() == strings.Contains(in, "%t") {
			t.Errorf("%s: %q of %d, want %q", in, got, p.Max(), want)
		}
	}
	for in, want := range map[string]string{
		"plain":    "the template has no field such as %i, %s, %t, %d4 or %x8: write text: for content that is always the same",
		"%q":       "the template has the unknown field %q: known are %i, %s, %t, %d and %x; write %% for a percent sign",
		"a%":       "the template ends with a single %: write %% for a percent sign",
		"%t12":     "the field %t is 12 wide: 19 digits are ns, 16 us, 13 ms and 10 s since 1970",
		"%x0":      "",
		"%x257":    "the field %x257 is not 1 to 256 wide",
		"%d999999": "the field %d999999 is not 1 to 256 wide",
	} {
		_, err := ParsePayload("template:" + in)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// Random digits are a function of seed, stream, number and field, and make
// JSON that a parser takes.
func TestTemplateRandom(t *testing.T) {
	p := payloadOf(t, `template:{"id":%i,"n":%s,"t":%t,"temp":%d2.%d02,"r":"%x40"}`)
	fill := func(seed, stream, seq uint64) string {
		b := make([]byte, p.Max())
		p.Filler(seed, stream).Fill(b, seq, 1_700_000_000_000_000_000)
		return string(b)
	}
	seen := map[string]bool{}
	for seq := range uint64(500) {
		text := fill(1, 0, seq)
		var doc struct {
			Temp float64
			R    string
		}
		if err := json.Unmarshal([]byte(text), &doc); err != nil || doc.Temp < 10 || doc.Temp >= 100 {
			t.Fatalf("%s: %v", text, err)
		}
		if seen[doc.R] || doc.R[:16] == doc.R[16:32] {
			t.Errorf("%s is not random", doc.R)
		}
		seen[doc.R] = true
	}
	first, again := fill(1, 2, 3), fill(1, 2, 3)
	if first != again || first == fill(2, 2, 3) || first == fill(1, 3, 3) {
		t.Error("not a function of seed, stream and number")
	}
}

func TestSizes(t *testing.T) {
	for in, want := range map[string]struct {
		name        string
		mean, least float64
		most        int
	}{
		"uniform:10-1KiB":     {"uniform:10-1024", 517, 10, 1024},
		"uniform:8-8":         {"uniform:8-8", 8, 8, 8},
		"normal:1000+-100":    {"normal:1000+-100", 1000, 600, 1400},
		"mix:10*9,8KiB":       {"mix:10*9,8192*1", 828.2, 10, 8192},
		"mix:100 , 200*3,0*0": {},
	} {
		p, err := ParsePayload(in)
		if want.name == "" {
			if err == nil {
				t.Errorf("%s is taken", in)
			}
			continue
		}
		if err != nil || p.Name != want.name || p.Max() != want.most || p.Mean() != want.mean || !p.Verifiable() {
			t.Errorf("%s: %+v %v", in, p, err)
			continue
		}
		f, sum, squares := p.Filler(7, 3), 0.0, 0.0
		const n = 100_000
		for seq := range uint64(n) {
			size := f.Size(seq)
			if float64(size) < want.least || size > want.most {
				t.Fatalf("%s: %d", in, size)
			}
			d := float64(size) - want.mean
			sum, squares = sum+d, squares+d*d
		}
		// Five standard errors.
		if off := math.Abs(sum / n); off > 5*math.Sqrt(squares)/n {
			t.Errorf("%s: mean is off by %g", in, off)
		}
		if sd := math.Sqrt(squares / n); strings.HasPrefix(in, "normal") && math.Abs(sd-100) > 2 {
			t.Errorf("%s: deviation %g", in, sd)
		}
	}
	for in, want := range map[string]string{
		"uniform:10":      "write uniform:LEAST-MOST, such as uniform:10-1KiB",
		"uniform:20-10":   "write uniform:LEAST-MOST with the smaller size first",
		"normal:10":       "write normal:MEAN+-DEVIATION, such as normal:1KiB+-200",
		"normal:10+-0":    "a deviation of 0 is a fixed size: write 10",
		"mix:10*0":        "the weight after * must be a whole number from 1 to 1000000",
		"normal:9+-100MB": "a payload of \"9 and 4 times 100000000\" is over the limit: MQTT packets carry at most 268,435,455 bytes of topic, properties and payload",
	} {
		if _, err := ParsePayload(in); err == nil || err.Error() != want {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestPayloadForms(t *testing.T) {
	s := parse(t, "name: x")
	set(t, s, "payload", "10,uniform:8-16,mix:10*9,20*1")
	checkIDs(t, s, "qos=0/payload=10/protocol=3.1.1", "qos=0/payload=uniform:8-16/protocol=3.1.1", "qos=0/payload=mix:10*9,20*1/protocol=3.1.1")
	c := casesOf(t, set(t, s, "payload", `template:{"n":%s,"i":%i}`))[0]
	if c.Params[1].Value != `template:{"n":%s,"i":%i}` || c.Payload.Kind != PayloadTemplate {
		t.Errorf("%+v", c.Params)
	}
}

// Who sends content of their own is told what becomes of its first bytes.
func TestStampWarning(t *testing.T) {
	for in, want := range map[string]int{"text:long enough": 1, "text:short": 0, "10": 0, "uniform:8-99": 0, "template:%i %s": 1} {
		s := set(t, parse(t, "name: x"), "payload", in)
		if n := len(s.Warnings()); n != want {
			t.Errorf("%s: %d warnings, want %d", in, n, want)
		}
		if n := len(set(t, s, "verify", "off").Warnings()); n != 0 {
			t.Errorf("%s without stamps: %d warnings", in, n)
		}
	}
}

func TestFillAllocates(t *testing.T) {
	for _, in := range []string{`template:{"id":%i,"n":%s,"t":%t,"r":%x8}`, "uniform:10-1KiB", "normal:1000+-100", "mix:10*9,8KiB*1"} {
		p := payloadOf(t, in)
		f, dst, seq := p.Filler(1, 1), make([]byte, p.Max()), uint64(0)
		if n := testing.AllocsPerRun(100, func() { seq++; f.Fill(dst[:f.Size(seq)], seq, int64(seq)) }); n != 0 {
			t.Errorf("%s: %v allocations", in, n)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for name, in := range map[string]string{"template": `template:{"id":%i,"n":%s,"t":%t,"r":%x8}`, "uniform": "uniform:10-1KiB", "normal": "normal:1000+-100"} {
		b.Run("payload="+name, func(b *testing.B) {
			p := payloadOf(b, in)
			f, dst := p.Filler(1, 1), make([]byte, p.Max())
			b.ReportAllocs()
			for i := range b.N {
				f.Fill(dst[:f.Size(uint64(i))], uint64(i), int64(i))
			}
		})
	}
}

// FuzzPayload: whatever parses can be filled within its bounds, and parses to
// the same again from its name or source.
func FuzzPayload(f *testing.F) {
	for _, s := range []string{"10", "8KiB", "text:a", "template:%i%s04%t13%d%x9%%", "uniform:1-2", "normal:10+-2", "mix:1*2,3", "mix:1*99999999999", "template:%s999999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.HasPrefix(text, "@") || strings.HasPrefix(text, "trace:") {
			return
		}
		p, err := ParsePayload(text)
		if err != nil || p.Max() > 1<<20 {
			return
		}
		fill := p.Filler(1, 2)
		if fill == nil {
			return
		}
		size := fill.Size(3)
		if size < 0 || size > p.Max() {
			t.Fatalf("size %d of %d", size, p.Max())
		}
		a, b := make([]byte, size), make([]byte, size)
		fill.Fill(a, 3, 4)
		fill.Fill(b, 3, 4)
		if !bytes.Equal(a, b) {
			t.Error("two of the same differ")
		}
		if again, err := ParsePayload(p.Name); p.Kind == PayloadRange && (err != nil || again.Name != p.Name) {
			t.Errorf("%s: %v", p.Name, err)
		}
	})
}
