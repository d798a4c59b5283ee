package result

import (
	"errors"
	"math"
	"testing"
)

func balanced() Delivery {
	return Delivery{
		Scheduled: 100, Sent: 90, Unsent: 10, Acked: 90, Expected: 90,
		Received: 95, Delivered: 85, Lost: 5, Duplicated: 10,
	}
}

func TestDeliveryCheck(t *testing.T) {
	if err := balanced().Check(); err != nil {
		t.Errorf("a balanced account: %v", err)
	}
	for want, change := range map[string]func(*Delivery){
		"scheduled = sent + unsent":         func(d *Delivery) { d.Unsent-- },
		"expected = delivered + lost":       func(d *Delivery) { d.Lost++ },
		"received = delivered + duplicated": func(d *Delivery) { d.Received++ },
		"late >= 0":                         func(d *Delivery) { d.Late = -1 },
		"lost >= 0":                         func(d *Delivery) { d.Lost, d.Delivered = -5, 95 },
	} {
		d := balanced()
		change(&d)
		var le *ledgerError
		if err := d.Check(); !errors.As(err, &le) || le.Identity != want {
			t.Errorf("Check() = %v, want the identity %q", err, want)
		}
		if d.Clean() {
			t.Errorf("an account that breaks %q is clean", want)
		}
	}
}

func TestDeliveryAdd(t *testing.T) {
	var sum Delivery
	sum.Add(balanced())
	sum.Add(Delivery{Late: 1, Foreign: 2, Corrupted: 3, Reordered: 4, Nacked: 5, CountsOnly: true})
	want := balanced()
	want.Late, want.Foreign, want.Corrupted, want.Reordered, want.Nacked, want.CountsOnly = 1, 2, 3, 4, 5, true
	if sum != want {
		t.Errorf("got %+v\nwant %+v", sum, want)
	}
	if err := sum.Check(); err != nil {
		t.Error(err)
	}
	if sum.Acked != 90 || len(sum.counts()) != 16 {
		t.Errorf("acked = %d, %d counts", sum.Acked, len(sum.counts()))
	}
}

func TestDeliveryClean(t *testing.T) {
	good := Delivery{Scheduled: 5, Sent: 5, Acked: 5, Expected: 5, Received: 5, Delivered: 5}
	if !good.Clean() {
		t.Error("a perfect account is not clean")
	}
	for _, c := range good.counts() {
		d := good
		for _, o := range d.counts() {
			if o.name == c.name {
				*o.n++
			}
		}
		if name := c.name; d.Clean() != (name == "acked" || name == "resent") {
			t.Errorf("one more %s: clean = %t", name, d.Clean())
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		part, whole int64
		want        string
	}{
		{0, 10, "0 %"}, {10, 10, "100 %"}, {9998, 10000, "99.98 %"}, {1, 2, "50.00 %"},
		{1, 1_000_000, "<0.01 %"}, {999_999, 1_000_000, ">99.99 %"}, {1_000_001, 1_000_000, ">100 %"},
		{math.MaxInt64 - 1, math.MaxInt64, ">99.99 %"}, {1, math.MaxInt64, "<0.01 %"},
		{15, 10, "150.00 %"}, {0, 0, "n/a"}, {1, 0, "n/a"}, {-1, 10, "n/a"}, {1, -1, "n/a"},
	} {
		if got := Percent(c.part, c.whole); got != c.want {
			t.Errorf("Percent(%d, %d) = %q, want %q", c.part, c.whole, got, c.want)
		}
	}
}

func TestFormat(t *testing.T) {
	for got, want := range map[string]string{
		FormatInt(0): "0", FormatInt(999): "999", FormatInt(1000): "1,000", FormatInt(-1234567): "-1,234,567",
		FormatInt(math.MinInt64):  "-9,223,372,036,854,775,808",
		FormatFloat(189944.65, 2): "189,944.65", FormatFloat(101.0053, 4): "101.0053", FormatFloat(-999.5, 0): "-1,000",
		FormatNS(0.5): "0.5000 ns", FormatNS(34907): "34.91 μs", FormatNS(6.0247346e9): "6.025 s",
		FormatNS(999): "999.0 ns", FormatNS(1e12): "1,000.0 s",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
