package mqtt

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// Problems that users of other clients have reported, if no other test covers them.

// TestKeepAliveUnderFlood: 20,000 messages per second arrive for 20 s, so that
// PINGRESP is always late, and the writer is busy with acknowledgements. Still a
// packet is sent within every keep-alive of 2 s, and the connection stays open.
// (dotnet/MQTTnet#187, #825, #829)
func TestKeepAliveUnderFlood(t *testing.T) {
	for qos, message := range []string{"30 05 0001 61 6869", "32 07 0001 61 0001 6869"} {
		t.Run(fmt.Sprintf("qos=%d", qos), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, peer := start(t, Config{Version: packet.V311, ClientID: "c", KeepAlive: 2 * time.Second}, connack311)
				last, seen := time.Now(), map[packet.Type]int{}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for {
						f, err := peer.TryNext()
						if err != nil {
							return
						}
						if d := time.Since(last); d > 2*time.Second {
							t.Errorf("%s after %s", f.Type(), d)
						}
						last = time.Now()
						seen[f.Type()]++
					}
				}()
				burst := slices.Repeat(mqtttest.Hex(t, message), 200)
				sent := 0
				for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
					peer.SendBytes(burst)
					sent += 200
				}
				synctest.Wait()
				err := c.Err()
				c.Close()
				<-ended
				if err != nil || sent != 400_000 || qos == 0 && seen[packet.PINGREQ] < 10 || qos == 1 && seen[packet.PUBACK] != sent {
					t.Errorf("%v after %d messages, answered by %v", err, sent, seen)
				}
			})
		})
	}
}

// TestCollision: with a window of 10, the broker acknowledges every message but the
// third, until the identifiers have wrapped. Then the connection is lost, and the
// broker has no session. The client must publish with the whole window again, and
// without DUP. (bytebeamio/rumqtt#1014, #1056)
func TestCollision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stuck, lap = 3, 70_000 // the identifiers wrap
		fresh := make(map[uint16]bool)
		messages := func(p *mqtttest.Peer, n int, answer func(uint16) bool) {
			var m packet.Publish
			for range n {
				if err := m.Decode(p.ExpectType(packet.PUBLISH), packet.V311); err != nil || m.Dup {
					t.Errorf("%v, DUP %v", err, m.Dup)
				}
				if answer(m.PacketID) {
					p.SendBytes(packet.AppendAck(nil, packet.PUBACK, m.PacketID))
				}
			}
		}
		taken := 0
		s := &theatre{t: t, v: packet.V311, scenes: []func(*mqtttest.Peer){
			func(p *mqtttest.Peer) {
				accept(p, connack311)
				messages(p, lap, func(id uint16) bool {
					if id == stuck {
						taken++
					}
					return id != stuck
				})
				p.Close()
			},
			func(p *mqtttest.Peer) {
				accept(p, connack311)
				// Wait for the whole window before the first acknowledgement.
				messages(p, 10, func(id uint16) bool { fresh[id] = true; return false })
				for id := range fresh {
					p.SendBytes(packet.AppendAck(nil, packet.PUBACK, id))
				}
				messages(p, 1000, func(uint16) bool { return true })
				p.Drain()
			},
		}}
		w := &clockwork{qos: 1}
		cfg := s.config(&w.journal)
		cfg.Handler, cfg.Inflight, cfg.Session = w, 10, NewSession()
		l, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.pump(lap + 1010 + 1 + 8) // 1 was stuck, 8 the first peer has not read
		time.Sleep(time.Minute)
		synctest.Wait()
		if taken != 1 || len(fresh) != 10 || len(w.reconnects) != 1 {
			t.Fatalf("the stuck identifier was used %d times; %d at once and %d reconnects", taken, len(fresh), len(w.reconnects))
		}
		if r := w.reconnects[0].Resumed; r.Present || r.Resent != 0 || len(r.Dropped) == 0 || len(r.Dropped) > 10 {
			t.Errorf("%+v", r)
		}
		l.Close()
	})
}

// TestUnknownPubrel: on a resumed session the broker sends PUBREL for an unknown
// identifier, and repeats it. The client answers with PUBCOMP, and the connection
// stays open. (yosssi/gmq#14)
func TestUnknownPubrel(t *testing.T) {
	for _, v := range []packet.Version{packet.V31, packet.V311, packet.V5} {
		t.Run(v.String(), func(t *testing.T) {
			r := newRecorder()
			cfg := Config{Version: v, ClientID: "c", Session: NewSession(), Handler: r}
			fresh, again, props, unknown := connack311, resumed311, "", "70 02 0063"
			switch v {
			case packet.V5:
				fresh, again, props, unknown = connack5, resumed5, "00", "70 03 0063 92"
			case packet.V31:
				again = connack311
			}
			c, peer := start(t, cfg, fresh)
			cut(c, peer)
			c, peer = start(t, cfg, again)
			peer.Send("62 02 0063")
			peer.Expect(unknown)
			repeated := fmt.Sprintf("3c %02x 0001 61 0064 %s 6869", 7+len(props)/2, props)
			for range 2 {
				peer.Send(repeated)
				peer.Expect("50 02 0064")
			}
			peer.Send("62 02 0064")
			peer.Expect("70 02 0064")
			peer.Send("62 02 0064") // the PUBCOMP was lost
			peer.ExpectType(packet.PUBCOMP)
			if err := c.Err(); err != nil {
				t.Error(err)
			}
			cut(c, peer)
			if !slices.Equal(r.messages, []string{"a=hi"}) {
				t.Errorf("messages %q", r.messages)
			}
		})
	}
}

// TestInboundAliasesEnd: [MQTT-3.3.2-7] an alias of the broker does not outlive its
// connection.
func TestInboundAliasesEnd(t *testing.T) {
	cfg := Config{Version: packet.V5, ClientID: "c", Session: NewSession(), Properties: packet.Properties{TopicAliasMaximum: new(uint16(3)), SessionExpiry: new(uint32(60))}}
	c, peer := start(t, cfg, connack5)
	peer.Send("32 0a 0001 61 0001 03 230001 78")
	peer.Expect("40 02 0001")
	cut(c, peer)
	c, peer = start(t, cfg, resumed5)
	peer.Send("32 09 0000 0002 03 230001 78")
	peer.Expect("e0 01 82")
	peer.ExpectEnd()
	<-c.Done()
}

// TestOneByteOver: a packet one byte above this client's maximum is rejected by its
// header alone. (hivemq/hivemq-mqtt-client-dotnet#145, eclipse-mosquitto/mosquitto#3503)
func TestOneByteOver(t *testing.T) {
	r := newRecorder()
	cfg := Config{Version: packet.V5, CleanStart: true, Handler: r, Properties: packet.Properties{MaximumPacketSize: new(uint32(99))}}
	c, peer := start(t, cfg, connack5)
	peer.Send("30 62") // 100 B
	peer.Expect("e0 01 95")
	peer.ExpectEnd()
	<-c.Done()
	if len(r.messages) != 0 {
		t.Errorf("messages %q", r.messages)
	}
}
