package load

import (
	"fmt"
	"time"

	"github.com/mqttload/mqttload/internal/cputime"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// recordingSetup is what [recordingCost] measures. The zero value of Open and
// Scattered is a closed loop whose messages go and come in batches.
type recordingSetup struct {
	Payload int // bytes, at least 8, which the stamp needs
	Batch   int // messages of a read
	// Open is an open loop at a million messages per second: latency from the
	// intended time, service time and send lag, in three histograms.
	Open bool
	// Scattered gives every message of a closed loop a latency of its own, so
	// that no two of a run are recorded as one.
	Scattered bool
}

// recordingCost is the CPU time that recording adds to a message: the stamp,
// the time of sending, the lock and the clock of each batch, the check of topic
// and content, the ledger and the histograms. It drives the engine's own
// handler over so many encoded PUBLISH packets of QoS 0 in memory, and
// subtracts what the client's decoder takes for the same packets with a handler
// that does nothing. Both are measured alternately. On a system that does not
// report CPU time the cost is 0.
func recordingCost(o recordingSetup, messages int) (ns float64, err error) {
	d, err := newDriver(o)
	if err != nil {
		return 0, err
	}
	defer d.stop()
	const rounds = 10
	batches := max(messages/rounds/o.Batch, 1)
	d.run(batches, true) // allocations of the first use count for no message
	var total time.Duration
	for range rounds {
		total += d.run(batches, true) - d.run(batches, false)
	}
	if err := d.check(); err != nil {
		return 0, err
	}
	return float64(total) / float64(rounds*batches*o.Batch), nil
}

// driver is one publisher and one subscriber of the engine, and a batch of
// packets between them.
type driver struct {
	recordingSetup
	pub      *publisher
	sub      *member
	now      int64 // of an open loop, which has a clock of its own
	buf      []byte
	payloads [][]byte // in buf
	scanner  *packet.Scanner
	decoder  packet.PublishDecoder
	message  packet.Publish
	err      error
}

// recordingInterval is the time between two messages of an open loop, in ns.
const recordingInterval = 1000

func newDriver(o recordingSetup) (*driver, error) {
	d := &driver{recordingSetup: o, scanner: packet.NewScanner(nil, 0)}
	c := &scenarios.Case{QoS: 0, Payload: scenarios.Payload{Size: o.Payload}, Load: scenarios.Load{
		Shape: scenarios.Pairs, Topics: 1, Publishers: 1, Subscribers: 1, TopicsPerPublisher: 1, TopicsPerSubscriber: 1,
		Inflight: max(o.Batch, 1000), OperationsPerMessage: 1,
	}, Clients: scenarios.Clients{Topic: "t/r1/1"}}
	x := New(Config{RunID: "r1"})
	if o.Open {
		c.Load.Stages = []scenarios.Stage{{Duration: time.Hour, From: 1e9 / recordingInterval, To: 1e9 / recordingInterval}}
		clock := x.clock
		x.clock = func() int64 { clock(); return d.now } // reading the clock is part of the cost
	}
	l := newCaseRun(x, 0, c).newLaunch()
	if err := l.plan(); err != nil {
		return nil, err
	}
	d.sub, d.pub = l.members[0], l.publishers[0]
	start := x.clock()
	d.pub.begin(newCountdown(1), start, endless, 0)
	d.pub.running = nil // a pump finds nothing to send
	if d.pub.pacing != nil {
		d.pub.pacing.start = start
	}
	return d, d.encode()
}

// encode makes the batch that is stamped over and over.
func (d *driver) encode() error {
	p := packet.Publish{Topic: d.pub.flows[0].topic, Payload: d.pub.payload}
	one, err := p.Append(nil, packet.V311)
	if err != nil {
		return err
	}
	d.buf = make([]byte, 0, d.Batch*len(one))
	for range d.Batch {
		d.buf = append(d.buf, one...)
		d.payloads = append(d.payloads, d.buf[len(d.buf)-d.Payload:])
	}
	return nil
}

func (d *driver) stop() {
	if d.pub.pacing != nil {
		d.pub.pacing.stopWaiters()
	}
}

// run takes so many batches through the decoder, recorded or not, and returns
// the CPU time that this took.
func (d *driver) run(batches int, recorded bool) time.Duration {
	user, system := cputime.Now()
	for range batches {
		if recorded {
			d.send()
			d.now += int64(d.Batch) * recordingInterval / 2
			d.receive(d.sub)
		} else {
			d.receive(mqtt.NopHandler{})
		}
	}
	u, s := cputime.Now()
	return u + s - user - system
}

// send does a publisher's work for a batch, except for handing it to the
// client.
func (d *driver) send() {
	p := d.pub
	d.now += int64(d.Batch) * recordingInterval / 2 // and as much until the batch arrives
	now, from, mask := p.clock(), p.seq, uint64(len(p.sentAt)-1)
	for i, b := range d.payloads {
		p.sentAt[(from+uint64(i))&mask] = now
		p.fill(b)
	}
	if d.Scattered {
		for i := range d.payloads {
			p.sentAt[(from+uint64(i))&mask] -= int64(i) * recordingInterval
		}
	}
	p.sent.Store(p.seq)
	if p.pacing != nil {
		p.pacing.recordLag(p, from, now)
	}
}

// receive hands the batch to h as the client does with the packets of one read.
func (d *driver) receive(h mqtt.Handler) {
	d.scanner.Attach(d.buf)
	d.scanner.Advance(len(d.buf))
	h.BatchStart()
	for {
		f, ok, err := d.scanner.Next()
		if err == nil && ok {
			err = d.decoder.Decode(&d.message, f, packet.V311)
		}
		if err != nil {
			d.err = err
		}
		if err != nil || !ok {
			break
		}
		for more := true; more; more = d.decoder.Next(&d.message, d.scanner) {
			h.Message(&d.message)
		}
	}
	h.BatchEnd()
}

// check reports whether every message was recorded, whole and once, with its
// latencies.
func (d *driver) check() error {
	l, s := &d.pub.flows[0].receipts[0].ledger, d.sub.shard
	recorded := int64(0)
	if s.e2e.hist != nil {
		recorded = s.e2e.hist.TotalCount()
	}
	n := int64(d.pub.seq)
	if d.err != nil || l.delivered != n || l.corrupted+l.untimed > 0 || recorded != n {
		return fmt.Errorf("record %d messages: %d delivered, %d corrupted, %d latencies, %d without a time (%v)",
			n, l.delivered, l.corrupted, recorded, l.untimed, d.err)
	}
	return nil
}
