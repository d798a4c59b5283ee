package mqtt

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestHalfOpen: a peer from which nothing comes is found within one and a half
// times the keep-alive, whether this side has something to send or not, and was
// asked for a sign of life within the interval. [MQTT-3.1.2-20]
func TestHalfOpen(t *testing.T) {
	for _, seconds := range []int{1, 2, 10, 60, 3600} {
		for _, every := range []time.Duration{0, 90 * time.Millisecond} {
			if seconds == 3600 && every > 0 {
				continue
			}
			t.Run(fmt.Sprintf("keepalive=%ds/sending=%v", seconds, every > 0), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					interval := time.Duration(seconds) * time.Second
					c, peer := start(t, Config{Version: packet.V311, ClientID: "c", KeepAlive: interval}, connack311)
					peer.Patience = 2 * interval
					began := time.Now()
					pinged := make(chan time.Duration, 1)
					go func() {
						for peer.Next().Type() != packet.PINGREQ {
						}
						pinged <- time.Since(began)
						peer.Drain()
					}()
					tmpl := mustTemplate(t, c)
					for every > 0 && c.Err() == nil {
						if _, err := c.PublishN(tmpl, 1, 0, nil); err == nil {
							_ = c.Flush()
						}
						time.Sleep(every)
					}
					<-c.Done()
					if d := time.Since(began); d > interval*3/2+every || d < interval {
						t.Errorf("found after %s", d)
					}
					if d := <-pinged; d > interval {
						t.Errorf("PINGREQ after %s", d)
					}
					if !errors.Is(c.Err(), ErrKeepAlive) {
						t.Error(c.Err())
					}
				})
			})
		}
	}
}

// TestKeepAliveUnderTraffic: what comes in proves life, though no PINGRESP ever
// gets through, and PINGREQ goes out in time all the same.
func TestKeepAliveUnderTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := start(t, Config{Version: packet.V311, ClientID: "c", KeepAlive: 2 * time.Second}, connack311)
		last, pings := time.Now(), 0
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				f, err := peer.TryNext()
				if err != nil {
					return
				}
				if f.Type() != packet.PINGREQ {
					continue
				}
				if d := time.Since(last); d > 2*time.Second {
					t.Errorf("PINGREQ after %s", d)
				}
				last = time.Now()
				pings++
			}
		}()
		for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(5 * time.Millisecond) {
			peer.Send("30 05 0001 61 6869  30 05 0001 61 6869")
		}
		err := c.Err()
		c.Close()
		<-ended
		if err != nil || pings < 10 {
			t.Errorf("%v after %d pings", err, pings)
		}
	})
}

// TestKeepAliveOff: 0 turns it off, on either side's word.
func TestKeepAliveOff(t *testing.T) {
	for name, tt := range map[string]struct {
		asked   time.Duration
		connack string
	}{
		"asked":  {0, connack5},
		"broker": {time.Minute, "20 06 00 00 03 13 0000"}, // Server Keep Alive 0
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := start(t, Config{Version: packet.V5, ClientID: "c", KeepAlive: tt.asked}, tt.connack)
				time.Sleep(24 * time.Hour)
				if err := c.Err(); err != nil || c.Stats().Writes != 1 {
					t.Errorf("%v, %d writes", err, c.Stats().Writes)
				}
			})
		})
	}
}
