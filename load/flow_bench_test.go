package load

import (
	"fmt"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// BenchmarkEngine is what the engine itself adds to a message: the stamp on one
// side, the ledger and the latency on the other, in batches of 100, without a
// client and a network.
func BenchmarkEngine(b *testing.B) {
	for _, model := range []string{"closed", "open"} {
		for _, payload := range []int{10, 1024} {
			b.Run(fmt.Sprintf("model=%s/payload=%d", model, payload), func(b *testing.B) { benchEngine(b, model, payload) })
		}
	}
}

func benchEngine(b *testing.B, model string, payload int) {
	const batch = 100
	c := &scenarios.Case{QoS: 0, Payload: scenarios.Payload{Size: payload}, Load: scenarios.Load{
		Shape: scenarios.Pairs, Topics: 1, Publishers: 1, Subscribers: 1, TopicsPerPublisher: 1, TopicsPerSubscriber: 1,
		Inflight: 1000, OperationsPerMessage: 1,
	}, Clients: scenarios.Clients{Topic: "t/r1/1"}}
	if model == "open" {
		c.Load.Stages = []scenarios.Stage{{Duration: time.Hour, From: 1e6, To: 1e6}}
	}
	s := &session{caseRun: newCaseRun(New(Config{RunID: "r1"}), 0, c)}
	if err := s.plan(); err != nil {
		b.Fatal(err)
	}
	it := &iteration{session: s, stage: result.StageActual}
	sub, p := s.members[0], s.publishers[0]
	it.begin(s.publishers)
	p.begin(it, endless, 0)
	if p.open != nil {
		p.open.start = it.start
		defer p.open.stopWaiters()
	}
	out := make([][]byte, batch)
	for i := range out {
		out[i] = append([]byte(nil), p.payload...)
	}
	m := packet.Publish{Topic: []byte("t/r1/1")}
	b.ReportAllocs()
	user, system := cpuTime()
	for i := 0; i < b.N; i += batch {
		now := s.x.clock()
		from := p.seq
		for j := range out {
			p.sentAt[p.seq&uint64(len(p.sentAt)-1)] = now
			p.fill(out[j])
		}
		p.sent.Store(p.seq)
		if p.open != nil {
			p.open.recordLag(p, from, now)
		}
		sub.BatchStart()
		for j := range out {
			m.Payload = out[j]
			sub.Message(&m)
		}
		sub.shard.flush()
		sub.sub.tell(sub.now)
		sub.wake()
		sub.shard.mu.Unlock()
	}
	u, k := cpuTime()
	b.ReportMetric(float64(u-user+k-system)/float64(b.N), "cpu-ns/msg")
	if l := &p.flows[0].receipts[0].ledger; l.delivered < int64(b.N) || l.corrupted > 0 {
		b.Fatalf("%+v", l)
	}
}
