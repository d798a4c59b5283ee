package broker

import (
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestLargeOverSlow: a subscriber that needs longer than the stall timeout to read one
// message is not stalled, although it acknowledges nothing meanwhile and a publisher
// waits. It is stalled when it stops reading.
func TestLargeOverSlow(t *testing.T) {
	const size, n = 8 << 20, 4
	virtual(t, Config{StallTimeout: time.Second, MaxQueuedBytes: 16 << 20}, func(t *testing.T, b *Broker) {
		hello := clean(packet.V5, "s")
		hello.Properties.ReceiveMaximum = ptr(uint16(1))
		s := connectPipe(t, b, hello)
		s.subscribe(sub("a", 1))
		p := connectPipe(t, b, clean(packet.V5, "p"))
		go p.drain()
		_ = p.nc.SetWriteDeadline(time.Time{})
		go func() {
			for i := range n {
				m := packet.Publish{Topic: []byte("a"), Payload: make([]byte, size), QoS: 1, PacketID: uint16(i + 1)}
				buf, _ := m.Append(nil, packet.V5)
				if _, err := p.nc.Write(buf); err != nil {
					return
				}
			}
		}()
		// 1 MB/s: each message takes 8 s.
		_ = s.nc.SetReadDeadline(time.Time{})
		buf := make([]byte, 100_000)
		for read := 0; read < size*3/2; {
			k, err := s.nc.Read(buf)
			if err != nil {
				t.Fatalf("after %d B: %v", read, err)
			}
			if read < size && read+k >= size {
				s.sendAck(packet.PUBACK, 1)
			}
			read += k
			time.Sleep(time.Duration(k) * time.Microsecond)
		}
		if st := b.Stats(); st.Stalled != 0 {
			t.Fatalf("%+v", st)
		}
		time.Sleep(2 * time.Second)
		if st := b.Stats(); st.Stalled != 1 {
			t.Errorf("%+v", st)
		}
	})
}
