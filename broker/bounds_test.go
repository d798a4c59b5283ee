package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestSubscribeAsksForTooMuch: a small SUBSCRIBE asks for all retained messages with
// each of its filters. It gets them until the session has reached its limit; the
// other filters are refused.
func TestSubscribeAsksForTooMuch(t *testing.T) {
	const retained, filters = 64, 10
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		addr := listen(t, startBroker(t, Config{MaxQueuedBytes: 3 * retained * overhead}))
		p := connect(t, addr, clean(v, "p"))
		for i := range retained {
			p.send(&packet.Publish{Topic: fmt.Appendf(nil, "r/%d", i), Payload: []byte("x"), Retain: true})
		}
		p.sync()
		c := connect(t, addr, clean(v, "c"))
		ack := c.subscribe(slices.Repeat([]packet.Subscription{sub("#", 0)}, filters)...)
		refused := packet.ReasonQuotaExceeded
		if v != packet.V5 {
			refused = packet.ReasonUnspecifiedError
		}
		for i, code := range ack.Codes {
			want := packet.ReasonGrantedQoS0
			if i >= 3 {
				want = refused
			}
			if code != want {
				t.Errorf("%v: filter %d: %v, want %v", v, i, code, want)
			}
		}
		for range 3 * retained {
			c.publication()
		}
		c.sync()
	}
}

// TestUnsubackTooLarge: [MQTT-3.1.2-24] holds for UNSUBACK too.
func TestUnsubackTooLarge(t *testing.T) {
	hello := clean(packet.V5, "c")
	hello.Properties.MaximumPacketSize = ptr(uint32(20))
	for n, fits := range map[int]bool{15: true, 16: false} {
		c := connect(t, listen(t, startBroker(t, Config{})), hello)
		c.send(&packet.Unsubscribe{PacketID: 1, Filters: slices.Repeat([]string{"a"}, n)})
		if fits {
			c.frame(packet.UNSUBACK)
		} else {
			c.wantClosed(packet.ReasonPacketTooLarge)
		}
	}
}

// TestRoutesAreBounded: the bound of a connection's routes counts their targets: a
// thousand topics with a thousand subscribers are a million targets.
func TestRoutesAreBounded(t *testing.T) {
	var subs tree
	for range 50 {
		s := &session{subs: map[string]*subscription{}}
		subs.subscribe(&subscription{sess: s, filter: "#"})
		subs.subscribe(&subscription{sess: s, filter: "$share/g/#"})
	}
	var r routes
	largest := 0
	for i := range 4000 {
		r.find(&subs, fmt.Appendf(nil, "t/%d", i), nil)
		if i%500 != 499 {
			continue
		}
		entries := 0
		for _, one := range r.all {
			entries += cap(one.targets) + len(one.shares[0].members)
		}
		largest = max(largest, entries)
	}
	// An entry is 48 bytes on a 64-bit machine.
	if most := maxRouteBytes/48 + 1000; largest > most || largest < most/4 {
		t.Errorf("%d entries are remembered, want at most %d and not none", largest, most)
	}
}

// TestRetainedCountsLevels: each level of a topic is charged as long as there is a
// retained message at it or below it, and not afterwards.
func TestRetainedCountsLevels(t *testing.T) {
	topic := func(i int) string {
		levels := make([]string, maxLevels)
		for j := range levels {
			levels[j] = fmt.Sprintf("%x.%x", i, j)
		}
		return strings.Join(levels, "/")
	}
	r := retained{max: 1 << 20}
	stored := 0
	for r.set(&message{topic: topic(stored)}) {
		stored++
	}
	// A level with one below takes 290 bytes on a 64-bit machine.
	if most := 1 << 20 / (maxLevels * 290); stored == 0 || stored > most {
		t.Errorf("%d topics of %d levels in 1 MiB, want 1 to %d", stored, maxLevels, most)
	}
	full := r.bytes
	if !r.set(&message{topic: topic(0)}) || r.bytes != full || r.count != stored {
		t.Errorf("replaced: %d bytes and %d messages, had %d and %d", r.bytes, r.count, full, stored)
	}
	for i := range stored {
		r.remove(topic(i))
	}
	if r.count != 0 || r.bytes != 0 || len(r.root.children) != 0 {
		t.Errorf("%d bytes and %d messages left", r.bytes, r.count)
	}
}
