package mqtt

import (
	"fmt"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

func TestBackoff(t *testing.T) {
	b := Backoff{Rand: func() float64 { return 1 }}
	for i, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000} {
		if got := b.Next(); got != want*time.Millisecond {
			t.Errorf("ceiling %d is %v, want %v", i, got, want*time.Millisecond)
		}
	}
	b.Reset()
	if got := b.Next(); got != 100*time.Millisecond {
		t.Errorf("after a reset the ceiling is %v", got)
	}
	b = Backoff{Min: time.Second, Max: 1500 * time.Millisecond, Rand: func() float64 { return 0.5 }}
	if x, y := b.Next(), b.Next(); x != 500*time.Millisecond || y != 750*time.Millisecond {
		t.Errorf("half of the ceilings 1 s and 1.5 s are %v and %v", x, y)
	}
}

// TestBackoffJitter: full jitter spreads over the whole range, its mean is half.
func TestBackoffJitter(t *testing.T) {
	const n = 2000
	var sum, low, high time.Duration = 0, time.Hour, 0
	for range n {
		var b Backoff
		for range 7 {
			b.Next()
		}
		d := b.Next()
		sum, low, high = sum+d, min(low, d), max(high, d)
	}
	if mean := sum / n; mean < 4500*time.Millisecond || mean > 5500*time.Millisecond {
		t.Errorf("the mean is %v, want about 5 s", mean)
	}
	if low > time.Second || high < 9*time.Second || high > 10*time.Second {
		t.Errorf("the waits lie within %v..%v, want all of 0..10 s", low, high)
	}
}

func TestTemporary(t *testing.T) {
	passing := map[packet.ReasonCode]bool{0x88: true, 0x89: true, 0x97: true, 0x9F: true}
	for code := packet.ReasonCode(0x80); code <= 0xA2; code++ {
		err := fmt.Errorf("connect: %w", &RefusedError{Version: packet.V5, Code: code})
		if got := IsTemporary(err); got != passing[code] {
			t.Errorf("0x%02X: %v", byte(code), got)
		}
	}
	for code := packet.ReasonCode(1); code <= 5; code++ {
		if got := IsTemporary(&RefusedError{Version: packet.V311, Code: code}); got != (code == 3) {
			t.Errorf("return code %d: %v", code, got)
		}
	}
	if IsTemporary(nil) || IsTemporary(ErrNoConnack) {
		t.Error("what is no refusal may pass")
	}
}
