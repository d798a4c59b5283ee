package result

import (
	"errors"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func TestGeometryMemory(t *testing.T) {
	if got := NewHDR().ByteSize(); got != 270_404 {
		t.Errorf("a histogram takes %d bytes, documented are 270,404", got)
	}
}

func TestRecordClamps(t *testing.T) {
	for _, c := range []struct {
		v, in   int64
		clamped bool
	}{
		{1, 1, false}, {1000, 1000, false}, {MaxLatencyNS, MaxLatencyNS, false},
		{0, 1, true}, {-5, 1, true}, {MaxLatencyNS + 1, MaxLatencyNS, true}, {1 << 62, MaxLatencyNS, true},
	} {
		h := NewHDR()
		if got := Record(h, c.v, 3); got != c.clamped {
			t.Errorf("Record(%d) clamped = %t, want %t", c.v, got, c.clamped)
		}
		if h.TotalCount() != 3 || !h.ValuesAreEquivalent(h.Max(), c.in) {
			t.Errorf("Record(%d): %d values, largest %d, want 3 of %d", c.v, h.TotalCount(), h.Max(), c.in)
		}
	}
	h := NewHDR()
	if Record(h, 5, 0) || Record(h, 5, -1) || h.TotalCount() != 0 {
		t.Error("recording no values did something")
	}
}

func TestNewHistogram(t *testing.T) {
	if NewHistogram(nil) != nil || NewHistogram(NewHDR()) != nil {
		t.Error("an empty histogram has a summary")
	}
	h := NewHDR()
	for v := int64(1); v <= 1000; v++ {
		Record(h, v, 1)
	}
	s := NewHistogram(h)
	want := Histogram{Count: 1000, MinNS: 1, MeanNS: s.MeanNS, P50NS: 500, P90NS: 900, P99NS: 990, P999NS: 999, P9999NS: 1000, MaxNS: 1000, HDR: s.HDR}
	if *s != want {
		t.Errorf("got %+v\nwant %+v", *s, want)
	}
	near(t, "mean", s.MeanNS, 500.5, 0.5)
	back, err := s.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if !back.Equals(h) {
		t.Error("the decoded histogram differs")
	}
}

// TestNearestRank checks small counts, where rounding a rank shows.
func TestNearestRank(t *testing.T) {
	for n := int64(1); n <= 300; n++ {
		h := NewHDR()
		for v := int64(1); v <= n; v++ {
			Record(h, v, 1)
		}
		s := NewHistogram(h)
		for _, c := range []struct{ got, share int64 }{{s.P50NS, 5000}, {s.P90NS, 9000}, {s.P99NS, 9900}, {s.P999NS, 9990}} {
			if want := (n*c.share + 9999) / 10000; c.got != want {
				t.Fatalf("n=%d: share %d of 10000 is %d, want %d", n, c.share, c.got, want)
			}
		}
	}
	if got := rankOf(1<<62, 9999); got <= 0 || got > 1<<62 {
		t.Errorf("rank overflows: %d", got)
	}
}

func TestPercentilesStayInRange(t *testing.T) {
	h := NewHDR()
	Record(h, MaxLatencyNS+5, 1)
	if s := NewHistogram(h); s.MaxNS != MaxLatencyNS || s.P50NS != MaxLatencyNS {
		t.Errorf("a value at the edge gives max %d and p50 %d, want %d", s.MaxNS, s.P50NS, int64(MaxLatencyNS))
	}
}

func TestMergeHistograms(t *testing.T) {
	a, b, both := NewHDR(), NewHDR(), NewHDR()
	for v := int64(1); v < 1e9; v = v*3 + 1 {
		Record(a, v, 2)
		Record(b, v*7, 5)
		Record(both, v, 2)
		Record(both, v*7, 5)
	}
	sa, sb := NewHistogram(a), NewHistogram(b)
	sa.Clamped, sb.Clamped = 1, 2
	got, err := mergeHistograms(sa, nil, sb)
	if err != nil {
		t.Fatal(err)
	}
	want := NewHistogram(both)
	want.Clamped = 3
	if *got != *want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if none, err := mergeHistograms(nil, nil); none != nil || err != nil {
		t.Errorf("merge of nothing = %v, %v", none, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := NewHDR()
	Record(good, 5, 1)
	other := hdrhistogram.New(1, 1000, 2)
	if err := other.RecordValue(5); err != nil {
		t.Fatal(err)
	}
	lies := NewHistogram(good)
	lies.Count = 2
	for name, c := range map[string]struct {
		h    *Histogram
		is   error
		text string
	}{
		"nil":            {nil, errNoHistogram, "no histogram"},
		"summary only":   {&Histogram{Count: 1}, errNoHistogram, "no histogram"},
		"other geometry": {NewHistogram(other), errGeometry, "2 digits"},
		"not base64":     {&Histogram{HDR: "@@"}, nil, "base64"},
		"short":          {&Histogram{HDR: "AAAA"}, nil, "too short"},
		"wrong count":    {lies, nil, "holds 1 values but its summary says 2"},
	} {
		_, err := c.h.Decode()
		if err == nil || !strings.Contains(err.Error(), c.text) || (c.is != nil && !errors.Is(err, c.is)) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.text)
		}
		if c.h != nil {
			if _, err := mergeHistograms(c.h); err == nil {
				t.Errorf("%s: merged", name)
			}
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	h := NewHDR()
	b.ReportAllocs()
	for i := range b.N {
		Record(h, int64(i&0xfffff)+1, 1)
	}
}

func FuzzHistogramDecode(f *testing.F) {
	h := NewHDR()
	Record(h, 12345, 7)
	f.Add(NewHistogram(h).HDR, int64(7))
	f.Add("", int64(0))
	f.Add("HISTFAAAAAB42pNpmSzMwMDAxQABzFCaEUoz2X+AsAA7jAKm", int64(1))
	f.Fuzz(func(t *testing.T, hdr string, count int64) {
		s := &Histogram{Count: count, HDR: hdr}
		if full, err := s.Decode(); err == nil && full.TotalCount() != count {
			t.Fatal("decoded with another count")
		}
	})
}
