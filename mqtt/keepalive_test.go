package mqtt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestHalfOpen: a connection to a silent peer gets a PINGREQ within the keep-alive and
// ends within one and a half times that, whether this side sends messages or not.
// [MQTT-3.1.2-20]
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

// TestKeepAliveOff: 0 turns keep-alive off, from either side.
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

// TestSlowPeer: a peer that needs many intervals to read one packet is alive as long
// as it reads. Once it stops reading, the connection ends.
func TestSlowPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go func() {
			_, _ = io.ReadFull(far, make([]byte, 15))
			_, _ = far.Write([]byte{0x20, 2, 0, 0})
		}()
		cfg := Config{Version: packet.V311, ClientID: "c", KeepAlive: 2 * time.Second, Dial: func(context.Context) (net.Conn, error) { return near, nil }}
		c, err := Connect(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := c.Template(&packet.Publish{Topic: []byte("a"), Payload: make([]byte, 4<<20)})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.PublishN(tmpl, 1, 0, nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		_ = c.Flush()
		// 100 KiB/s: the 4 MiB take 40 s.
		for i := range 80 {
			if _, err := io.ReadFull(far, make([]byte, 50<<10)); err != nil {
				t.Fatalf("after %d s: %v, %v", i/2, err, c.Err())
			}
			time.Sleep(500 * time.Millisecond)
		}
		stopped := time.Now()
		<-c.Done()
		if d := time.Since(stopped); !errors.Is(c.Err(), ErrKeepAlive) || d > 3*time.Second {
			t.Errorf("%v after %s", c.Err(), d)
		}
	})
}
