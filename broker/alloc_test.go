package broker

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mqttload/mqttload/internal/racing"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// TestNoAllocation: in steady state a message costs the broker, and the client
// of this test, no allocation and a small part of a system call.
func TestNoAllocation(t *testing.T) {
	const n = 100_000
	limit := 0.01 // allocations per message
	if racing.Enabled {
		limit = 0.05 // the race detector makes sync.Pool forget one item of four
	}
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		for qos := range byte(3) {
			t.Run(fmt.Sprintf("protocol=%s/qos=%d", v, qos), func(t *testing.T) {
				b := startBroker(t, Config{})
				f := newFlow(t, listen(t, b), v, qos, 10)
				f.run(t, 70_000, 1000) // all identifiers have been used
				var before, after runtime.MemStats
				writes := b.Stats().Writes
				runtime.ReadMemStats(&before)
				f.run(t, n, 1000)
				runtime.ReadMemStats(&after)
				if per := float64(after.Mallocs-before.Mallocs) / n; per >= limit {
					t.Errorf("%.4f allocations per message", per)
				}
				if per := float64(b.Stats().Writes-writes) / n; per >= 0.05 {
					t.Errorf("%.4f writes per message", per)
				}
			})
		}
	}
}

// TestAliasAllocation: Topic Aliases, set and given, subscription identifiers and a change of
// version cost no allocation either.
func TestAliasAllocation(t *testing.T) {
	const n = 50_000
	b := startBroker(t, Config{})
	addr := listen(t, b)
	s := connect(t, addr, clean(packet.V5, "s"))
	s.subscribeWith(packet.Properties{SubscriptionIDs: []uint32{9}}, sub("a/topic/longer/than/thirty-two/bytes", 0))
	old := connect(t, addr, clean(packet.V311, "old"))
	old.subscribe(sub("a/topic/longer/#", 0))
	taker := connect(t, addr, takesAliases("taker", 1))
	taker.subscribe(sub("a/topic/#", 0))
	p := connect(t, addr, clean(packet.V5, "p"))
	first := packet.Publish{Topic: []byte("a/topic/longer/than/thirty-two/bytes"), Payload: make([]byte, 10)}
	p.must(first.SetProperties(&packet.Properties{TopicAlias: ptr(uint16(1))}))
	p.send(&first)
	first.Topic = nil
	one, err := first.Append(nil, p.v)
	p.must(err)
	var chunk []byte
	for range 500 {
		chunk = append(chunk, one...)
	}
	run := func(n int) {
		for range n / 500 {
			p.write(chunk, nil)
			for range 500 {
				s.frame(packet.PUBLISH)
				old.frame(packet.PUBLISH)
				taker.frame(packet.PUBLISH)
			}
		}
	}
	s.frame(packet.PUBLISH)
	old.frame(packet.PUBLISH)
	taker.frame(packet.PUBLISH)
	run(n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(n)
	runtime.ReadMemStats(&after)
	if per := float64(after.Mallocs-before.Mallocs) / n; per >= 0.05 {
		t.Errorf("%.4f allocations per message", per)
	}
}
