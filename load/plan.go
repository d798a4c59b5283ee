package load

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// plan makes the members, and the flows between them.
func (l *launch) plan() error {
	l.shards = make([]*shard, max(1, min(l.spec.Load.Connections(), 4*runtime.GOMAXPROCS(0))))
	for i := range l.shards {
		l.shards[i] = new(shard)
	}
	var err error
	if l.pacing, err = newPacing(&l.spec.Load, l.clock, l.rec.cfg.Waiter); err != nil {
		return err
	}
	l.links.closedLoop = l.pacing == nil
	if path := l.spec.Clients.Credentials; path != "" {
		if l.connector.credentials, err = dial.ReadCredentials(path, l.spec.Load.Connections()); err != nil {
			return err
		}
	}
	if l.spec.Load.PublisherClients()+l.spec.Load.SubscriberClients() > 0 {
		for t := range l.spec.Load.Topics {
			l.planTopic(t)
		}
	}
	for range l.spec.Load.Idle {
		l.addMember(nil, nil)
	}
	return l.planFlows(l.topics())
}

// planTopic makes the clients that begin with topic t, subscribers first.
func (l *launch) planTopic(t int) {
	load := &l.spec.Load
	if load.Shape.Combined {
		l.addInbox()
		l.addPublisher()
		l.addMember(l.publishers[t], l.inboxes[t])
		return
	}
	if t%load.TopicsPerSubscriber == 0 && load.Subscribers > 0 {
		for i := range load.Subscribers {
			if i == 0 || load.Share == "" {
				l.addInbox()
			}
			l.addMember(nil, l.inboxes[len(l.inboxes)-1])
		}
	}
	if t%load.TopicsPerPublisher == 0 && load.Publishers > 0 {
		for range load.Publishers {
			l.addPublisher()
			l.addMember(l.publishers[len(l.publishers)-1], nil)
		}
	}
}

func (l *launch) addPublisher() {
	l.publishers = append(l.publishers, l.newPublisher())
}

func (l *launch) newPublisher() *publisher {
	p := newPublisher(l.spec, len(l.publishers), l.connector.payload, l.sendTimes(), l.clock)
	if l.pacing != nil {
		l.pacing.admit(p)
	}
	return p
}

// sendTimes is how many send times a publisher remembers.
func (l *launch) sendTimes() int {
	if l.pacing != nil {
		return l.pacing.ringSize
	}
	return SendTimes(l.spec)
}

func (l *launch) addInbox() {
	n := len(l.members)
	l.inboxes = append(l.inboxes, &inbox{client: n, shard: l.shards[n%len(l.shards)]})
}

func (l *launch) addMember(pub *publisher, sub *inbox) {
	n := len(l.members)
	m := &member{links: l.links, errs: &l.rec.errs, clock: l.clock, pub: pub, sub: sub, shard: l.shards[n%len(l.shards)]}
	if sub != nil {
		// The lock of its shard guards an inbox, whichever member it is called by.
		m.shard = sub.shard
		sub.members.Add(1)
	}
	if pub != nil {
		pub.shard, pub.properties = m.shard, l.connector.ofPublish(n)
	}
	l.members = append(l.members, m)
}

// topics are the names of the topics, each with the variables of its speaker.
func (l *launch) topics() []string {
	names := make([]string, l.spec.Load.Topics)
	for t := range names {
		vars := l.connector.vars(l.spec.Load.Speaker(t))
		vars.I, vars.R = t+l.spec.Clients.StartNumber, l.topicRun()
		names[t] = scenarios.Expand(l.spec.Clients.Topic, vars)
	}
	return names
}

// planFlows makes a flow for every publisher and topic, and the receipts of its
// receivers. Flows are numbered topic by topic, so that those of a subscriber
// to whole topics lie side by side.
func (l *launch) planFlows(topics []string) error {
	load := &l.spec.Load
	if n := len(topics) * load.Publishers; n > maxStreams {
		return fmt.Errorf("%d publishers to %d topics are %d streams, and the stamp has room for %d: ask for fewer",
			load.Publishers, len(topics), n, maxStreams)
	}
	tag := newTag(l.connector.runID, l.serial)
	for t, topic := range topics {
		first := t / max(load.TopicsPerPublisher, 1) * load.Publishers
		for _, p := range l.publishers[first : first+load.Publishers] {
			f := &flow{
				pub: p, index: uint64(len(p.flows)), number: uint32(len(l.flows)), topic: []byte(topic),
				stamp: newStamp(tag, uint32(len(l.flows))), stride: uint64(max(load.TopicsPerPublisher, 1)),
			}
			f.varied = newVaried(l.spec, f.number)
			p.flows = append(p.flows, f)
			p.current = p.flows[0]
			l.flows = append(l.flows, f)
		}
	}
	if n := l.rec.cfg.Enough; n > 0 {
		l.enough = &enough{done: make(chan struct{})}
		l.enough.left.Store(n)
	}
	matches, wills := map[string][]*flow{}, l.wills()
	if err := l.planExpectations(); err != nil {
		return err
	}
	for i, in := range l.inboxes {
		in.tally, in.wills, in.enough = len(l.flows) == 0, wills, l.enough
		l.subscribeInbox(in, i, topics, matches)
	}
	heard := func(f *flow) bool { return len(f.receipts) > 0 }
	if len(l.inboxes) > 0 && len(l.flows) > 0 && !slices.ContainsFunc(l.flows, heard) {
		l.rec.warnings.add(result.CodeFilterMatchesNothing, fmt.Sprintf("the filter %s matches none of the topics, such as %s: no delivery is expected", l.spec.Load.Filter, topics[0]),
			"choose a --filter that covers --topic")
	}
	for _, p := range l.publishers {
		p.hasReceivers = !p.lostReceivers()
	}
	return nil
}

// wills are the keys of the wills of all clients; nil where they have none.
func (l *launch) wills() map[string]bool {
	if l.spec.Clients.Will == nil {
		return nil
	}
	keys := make(map[string]bool)
	for i := range l.members {
		w := willOf(l.spec.Clients.Will, l.connector.vars(i), l.spec.Protocol)
		keys[willKey(w.Topic, w.Payload)] = true
	}
	return keys
}

// subscribeInbox gives the i-th inbox its filters and the receipts of the flows
// that match. Inboxes with the same wildcard filter share the search in
// matches.
func (l *launch) subscribeInbox(in *inbox, i int, topics []string, matches map[string][]*flow) {
	load := &l.spec.Load
	perGroup := load.Subscribers
	if load.Share != "" {
		perGroup = 1
	}
	first := i / perGroup * load.TopicsPerSubscriber
	filters := topics[first : first+load.TopicsPerSubscriber]
	flows := l.flows[first*load.Publishers : (first+load.TopicsPerSubscriber)*load.Publishers]
	if load.Filter != "" {
		filter := scenarios.Expand(load.Filter, l.connector.vars(in.client))
		if _, ok := matches[filter]; !ok {
			matches[filter] = l.matching(filter)
		}
		filters, flows = []string{filter}, matches[filter]
	}
	for _, f := range filters {
		if load.Share != "" {
			f = "$share/" + load.Share + "/" + f
		}
		in.filters = append(in.filters, f)
	}
	l.receive(in, flows)
}

func (l *launch) matching(filter string) (flows []*flow) {
	for _, f := range l.flows {
		if packet.MatchTopic(filter, string(f.topic)) {
			flows = append(flows, f)
		}
	}
	return flows
}

// receive makes in a receiver of flows, which are in the order of their
// numbers.
func (l *launch) receive(in *inbox, flows []*flow) {
	if len(flows) == 0 {
		return
	}
	in.base = flows[0].number
	in.receipts = make([]*receipt, flows[len(flows)-1].number-in.base+1)
	if !l.spec.Stamped() {
		in.topics = make(map[string][]*receipt)
	}
	for _, f := range flows {
		// The ledger remembers as many numbers as there are send times.
		r := &receipt{flow: f, in: in, index: int32(len(f.receipts)), ledger: newLedger(max(l.spec.Load.Inflight, l.sendTimes()/4/int(f.stride)))}
		r.ledger.unordered = in.members.Load() > 1
		r.content = l.connector.payload
		if l.pacing == nil {
			r.ring = f.pub.sentAt
		}
		f.receipts = append(f.receipts, r)
		in.receipts[f.number-in.base] = r
		if in.topics != nil {
			in.topics[string(f.topic)] = append(in.topics[string(f.topic)], r)
		}
	}
}

// planExpectations makes the expectations of all receivers.
func (l *launch) planExpectations() (err error) {
	for _, p := range l.publishers {
		if p.expected, err = newExpectation(l.spec, p.properties, true); err != nil {
			return err
		}
	}
	anybody, err := newExpectation(l.spec, packet.Properties{}, false)
	for _, in := range l.inboxes {
		in.expected = anybody
	}
	return err
}
