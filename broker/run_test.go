package broker

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestRuns: the broker sends the same packets whether many arrive in one read, or each
// arrives alone after a change of the subscriptions.
func TestRuns(t *testing.T) {
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("protocol=%s/seed=%d", v, seed), func(t *testing.T) {
				packets := randomPublishes(t, v, seed)
				together := outcome(t, v, [][]byte{bytes.Join(packets, nil)}, false)
				apart := outcome(t, v, packets, true)
				for _, who := range slices.Sorted(maps.Keys(apart)) {
					got, want := together[who], apart[who]
					for i := range max(len(got), len(want)) {
						if i >= len(got) || i >= len(want) || got[i] != want[i] {
							t.Fatalf("%s: packet %d of %d differs from that of %d when they come one by one", who, i, len(got), len(want))
						}
					}
				}
			})
		}
	}
}

// randomPublishes makes packets of which most are like the one before.
func randomPublishes(t *testing.T, v packet.Version, seed uint64) (out [][]byte) {
	r := rand.New(rand.NewPCG(seed, 1))
	p := packet.Publish{Topic: []byte("a")}
	size := 10
	for id := uint16(1); id < 300; id++ {
		p.PacketID, p.Dup, p.Retain, p.RawProperties = id, false, false, nil
		switch r.IntN(40) {
		case 0, 1, 2:
			p.QoS = byte(r.IntN(3))
		case 3, 4:
			p.Topic = []byte([]string{"a", "a/b", "nobody", "one", "kept", "low"}[r.IntN(6)])
		case 5, 6:
			size = []int{0, 8, 10, 117, 130, 300, 20_000}[r.IntN(7)]
		case 7:
			p.Retain = true
		case 8:
			p.Dup = p.QoS > 0
		case 9:
			p.PacketID = max(id/2, 1) // which is in flight, if that was QoS 2
		case 10:
			if err := p.SetProperties(&packet.Properties{UserProperties: []packet.UserProperty{{Name: "k", Value: "v"}}}); err != nil {
				t.Fatal(err)
			}
		}
		p.Payload = bytes.Repeat([]byte{byte(id)}, size)
		b, err := p.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// outcome is every packet that the publisher of writes and several kinds of
// subscriber get. Unsettled, subscriptions change before each write.
func outcome(t *testing.T, v packet.Version, writes [][]byte, unsettled bool) map[string][]string {
	t.Helper()
	b := startBroker(t, Config{})
	few := clean(packet.V5, "few")
	few.Properties.ReceiveMaximum = ptr(uint16(20))
	small := clean(packet.V5, "small")
	small.Properties.MaximumPacketSize = ptr(uint32(200))
	kinds := map[string]struct {
		connect packet.Connect
		props   packet.Properties
		sub     packet.Subscription
	}{
		"3.1.1":      {clean(packet.V311, "3.1.1"), packet.Properties{}, sub("a", 2)},
		"5":          {clean(packet.V5, "5"), packet.Properties{}, sub("a/#", 2)},
		"only":       {clean(v, "only"), packet.Properties{}, sub("one", 2)},
		"few":        {few, packet.Properties{}, sub("a", 2)},
		"identified": {clean(packet.V5, "identified"), packet.Properties{SubscriptionIDs: []uint32{9}}, sub("a", 1)},
		"small":      {small, packet.Properties{}, sub("a/+", 2)},
		"session":    {kept(v, "session"), packet.Properties{}, sub("kept", 2)},
		"low":        {clean(v, "low"), packet.Properties{}, sub("low", 1)},
	}
	peers := map[string]*peer{}
	for name, k := range kinds {
		c := serveEnd(t, b)
		c.connect(k.connect)
		c.subscribeWith(k.props, k.sub)
		peers[name] = c
	}
	// Over a pipe, so that each write is one read.
	near, far := net.Pipe()
	go b.ServeConn(far)
	publisher := peerOf(t, near)
	publisher.connect(clean(v, "publisher"))
	got, done := map[string]chan []string{}, make(map[string][]string)
	for name, c := range peers {
		got[name] = c.collect()
	}
	answers := publisher.collect()
	other := serveEnd(t, b)
	other.connect(clean(v, "other"))
	for _, w := range writes {
		if unsettled {
			// When this byte has been read, everything before it has been handled.
			publisher.write(w[:1], nil)
			other.subscribe(sub("elsewhere", 0))
			w = w[1:]
		}
		publisher.write(w, nil)
	}
	publisher.write(packet.AppendPingreq(nil), nil)
	done["publisher"] = <-answers
	for name, c := range peers {
		c.write(packet.AppendPingreq(nil), nil)
		done[name] = <-got[name]
	}
	return done
}

// collect reads packets, in the background, until PINGRESP.
func (c *peer) collect() chan []string {
	out := make(chan []string, 1)
	go func() {
		var list []string
		for {
			f, err := c.next()
			if err != nil {
				list = append(list, err.Error())
			}
			if err != nil || f.Type() == packet.PINGRESP {
				out <- list
				return
			}
			list = append(list, string(f.First)+string(f.Body))
		}
	}()
	return out
}
