package load

import (
	"sync"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
)

// connections sums up how the connections of a case were made.
type connections struct {
	mu                 sync.Mutex
	planned, connected int64
	dns, connect       latency
	handshake, resumed latency
	connack, suback    latency
	reauth             latency
	window             int // of a publisher
	aliases            *result.Aliases
	referred           map[string]int64 // connections by the route on which references led them
}

// count counts a client that has connected, or has not because of err.
func (c *connections) count(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planned++
	if err == nil {
		c.connected++
	}
}

// made records a connection and its window.
func (c *connections) made(client *mqtt.Client, d *dial.Dialer, window int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, connack := client.Timing()
	if d.Steps.DNS > 0 {
		c.dns.record(int64(d.Steps.DNS), 1)
	}
	c.connect.record(int64(d.Steps.TCP), 1)
	c.connack.record(int64(connack), 1)
	switch {
	case d.Steps.Resumed:
		c.resumed.record(int64(d.Steps.TLS), 1)
	case d.Steps.TLS > 0:
		c.handshake.record(int64(d.Steps.TLS), 1)
	}
	c.window = window
	if way := d.Arrived(); way != "" {
		if c.referred == nil {
			c.referred = make(map[string]int64)
		}
		c.referred[way]++
	}
}

// subscribed records how long a SUBACK took.
func (c *connections) subscribed(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suback.record(int64(took), 1)
}

// authenticated records how long an authentication took.
func (c *connections) authenticated(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reauth.record(int64(took), 1)
}

// grant records how many aliases the broker allows a publisher.
func (c *connections) grant(a *result.Aliases) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aliases = a
}

// put adds the latencies of connecting to l.
func (c *connections) put(l *result.Latency) {
	l.DNS, l.Connect, l.TLSHandshake, l.TLSResumed = c.dns.result(), c.connect.result(), c.handshake.result(), c.resumed.result()
	l.Connack, l.Subscribe, l.Reauth = c.connack.result(), c.suback.result(), c.reauth.result()
}
