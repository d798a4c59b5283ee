package main

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/mqttload/mqttload/internal/cputime"
	"github.com/mqttload/mqttload/scenarios"
)

// echoShare is the warm-up's share of a measurement's time, as in the engine.
const echoShare = 0.4

// echoRun is one measurement of raw echo.
type echoRun struct {
	bytes int64
	own   time.Duration // CPU of this process
	other time.Duration // CPU of the other one
}

// rawEcho sends bytes in chunks and reads them back, for d after a warm-up, and
// until it has read least bytes. other returns the CPU time of the process at the
// other end.
func rawEcho(ctx context.Context, dial func(context.Context) (net.Conn, error), d time.Duration, least int, other func() (time.Duration, error)) (r echoRun, err error) {
	nc, err := dial(ctx)
	if err != nil {
		return r, err
	}
	defer nc.Close()
	go func() {
		b := make([]byte, chunk)
		for {
			if _, err := nc.Write(b); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, chunk)
	read := func(d time.Duration) error {
		for end := time.Now().Add(d); r.bytes < int64(least) || time.Now().Before(end); {
			n, err := nc.Read(buf)
			if err != nil {
				return err
			}
			r.bytes += int64(n)
		}
		return nil
	}
	if err := read(time.Duration(float64(d) * echoShare)); err != nil {
		return r, err
	}
	before, err := other()
	if err != nil {
		return r, err
	}
	r.bytes = 0
	own := cputime.Total()
	if err := read(d); err != nil {
		return r, err
	}
	r.own = cputime.Total() - own
	after, err := other()
	r.other = after - before
	return r, err
}

// packetSize is the size of a QoS 0 PUBLISH of MQTT 3.1.1. [MQTT-3.3]
func packetSize(c *scenarios.Case) int {
	topic := scenarios.Expand(c.Clients.Topic, scenarios.Vars{I: 1})
	body := 2 + len(topic) + c.Payload.Size
	header := 2
	for n := body; n >= 128; n >>= 7 {
		header++
	}
	return header + body
}

// clientTLS is the TLS configuration towards e, nil without TLS.
func (e *ends) clientTLS(c *scenarios.Case) (*tls.Config, error) {
	if !c.Transport.Secure() {
		return nil, nil
	}
	o := c.TLS
	o.CAPEM = e.CAPEM
	return o.ClientConfig("127.0.0.1")
}
