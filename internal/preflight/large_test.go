package preflight

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
)

// TestLargeOverSlow: the largest message may take longer than the drain time to
// get there and back, as long as its bytes move; where they stop, it has not come.
func TestLargeOverSlow(t *testing.T) {
	for _, after := range []time.Duration{0, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := broker.New(broker.Config{})
			var stops time.Time
			if after > 0 {
				stops = time.Now().Add(after)
			}
			dial := func(context.Context, string, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go b.ServeConn(&mqtttest.Slow{Conn: far, Speed: 100_000, Stops: stops})
				return near, nil
			}
			list := Brokers(t.Context(), cases(t, "url", "mqtt://h", "qos", "1", "payload", "5MiB", "drain", "5s"), Options{Open: dial, RunID: "r1"})
			if got := summary(list); (got == "") != (after == 0) {
				t.Errorf("stops after %s: %q", after, got)
			}
			_ = b.Close()
			time.Sleep(3 * time.Minute)
		})
	}
}
