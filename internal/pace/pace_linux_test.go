package pace_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/pace"
)

// TestFallback: without a free descriptor New returns a Sleeper.
func TestFallback(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Skip(err)
	}
	none := was
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Skip(err)
	}
	w := pace.New()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if w.Kind() != pace.KindSleep {
		t.Errorf("without a descriptor it waits with %s", w.Kind())
	}
	if !w.For(time.Millisecond) {
		t.Error("For returned false without Stop")
	}
}
