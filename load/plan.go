package load

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// plan makes the members, and the flows between them.
func (s *session) plan() error {
	s.shards = make([]*shard, max(1, min(s.Load.Connections(), 4*runtime.GOMAXPROCS(0))))
	for i := range s.shards {
		s.shards[i] = new(shard)
	}
	if err := s.planOpen(); err != nil {
		return err
	}
	if path := s.Clients.Credentials; path != "" {
		var err error
		if s.credentials, err = dial.ReadCredentials(path, s.Load.Connections()); err != nil {
			return err
		}
	}
	if s.Load.PublisherClients()+s.Load.SubscriberClients() > 0 {
		for t := range s.Load.Topics {
			s.planTopic(t)
		}
	}
	for range s.Load.Idle {
		s.addMember(nil, nil)
	}
	return s.planFlows(s.topics())
}

// planTopic makes the clients that begin with topic t, subscribers first.
func (s *session) planTopic(t int) {
	l := &s.Load
	if l.Shape.Combined {
		s.addInbox()
		s.addPublisher()
		s.addMember(s.publishers[t], s.inboxes[t])
		return
	}
	if t%l.TopicsPerSubscriber == 0 && l.Subscribers > 0 {
		for i := range l.Subscribers {
			if i == 0 || l.Share == "" {
				s.addInbox()
			}
			s.addMember(nil, s.inboxes[len(s.inboxes)-1])
		}
	}
	if t%l.TopicsPerPublisher == 0 && l.Publishers > 0 {
		for range l.Publishers {
			s.addPublisher()
			s.addMember(s.publishers[len(s.publishers)-1], nil)
		}
	}
}

func (s *session) addPublisher() {
	s.publishers = append(s.publishers, newPublisher(s, len(s.publishers)))
}

func (s *session) addInbox() {
	n := len(s.members)
	s.inboxes = append(s.inboxes, &inbox{client: n, shard: s.shards[n%len(s.shards)]})
}

func (s *session) addMember(pub *publisher, sub *inbox) {
	n := len(s.members)
	m := &member{session: s, pub: pub, sub: sub, shard: s.shards[n%len(s.shards)]}
	if sub != nil {
		// The lock of its shard guards an inbox, whichever member is at it.
		m.shard = sub.shard
		sub.members.Add(1)
	}
	if pub != nil {
		pub.shard, pub.properties = m.shard, s.ofPublish(n)
	}
	s.members = append(s.members, m)
}

// topics are the names of the topics, each with the variables of its speaker.
func (s *session) topics() []string {
	names := make([]string, s.Load.Topics)
	for t := range names {
		vars := s.vars(s.Load.Speaker(t))
		vars.I, vars.R = t+s.Clients.StartNumber, s.topicRun()
		names[t] = scenarios.Expand(s.Clients.Topic, vars)
	}
	return names
}

// topicRun is the run id in topics. Where every iteration gets fresh
// connections it gets a topic of its own as well, of the same length.
func (s *session) topicRun() string {
	id := s.x.cfg.RunID
	if !s.Load.FreshIterations {
		return id
	}
	serial := strconv.FormatInt(int64(s.x.serial), 36)
	if len(serial) >= len(id) {
		return serial
	}
	return id[:len(id)-len(serial)] + serial
}

// vars are the values of the variables of the i-th client, from 0.
func (s *session) vars(i int) scenarios.Vars {
	v := scenarios.Vars{I: i + s.Clients.StartNumber, R: s.x.cfg.RunID}
	v.U = scenarios.Expand(s.Clients.Username, v)
	v.C = scenarios.Expand(s.Clients.ClientID, v)
	v.U = scenarios.Expand(s.Clients.Username, v) // it may hold the client id
	if s.credentials != nil {
		c := &s.credentials[i]
		if c.HasUser {
			v.U = c.User
		}
		if c.ID != "" {
			v.C = c.ID
		}
	}
	return v
}

// planFlows makes a flow of every publisher and topic, and the receipts of
// those who get them. Flows are numbered topic by topic, so that those of a
// subscriber to whole topics lie side by side.
func (s *session) planFlows(topics []string) error {
	l := &s.Load
	if n := len(topics) * l.Publishers; n > maxStreams {
		return fmt.Errorf("%d publishers to %d topics are %d streams, and messages can tell %d apart: ask for fewer",
			l.Publishers, len(topics), n, maxStreams)
	}
	tag := newTag(s.x.cfg.RunID, s.x.serial)
	for t, topic := range topics {
		first := t / max(l.TopicsPerPublisher, 1) * l.Publishers
		for _, p := range s.publishers[first : first+l.Publishers] {
			f := &flow{
				pub: p, index: uint64(len(p.flows)), number: uint32(len(s.flows)), topic: []byte(topic),
				stamp: newStamp(tag, uint32(len(s.flows))), stride: uint64(max(l.TopicsPerPublisher, 1)),
			}
			f.varied = newVaried(s.Case, f.number)
			p.flows = append(p.flows, f)
			p.turn = p.flows[0]
			s.flows = append(s.flows, f)
		}
	}
	if n := s.x.cfg.Enough; n > 0 {
		s.enough = &enough{done: make(chan struct{})}
		s.enough.left.Store(n)
	}
	matches, wills := map[string][]*flow{}, s.wills()
	if err := s.planPromises(); err != nil {
		return err
	}
	for i, in := range s.inboxes {
		in.tally, in.wills, in.enough = len(s.flows) == 0, wills, s.enough
		s.subscribeInbox(in, i, topics, matches)
	}
	heard := func(f *flow) bool { return len(f.receipts) > 0 }
	if len(s.inboxes) > 0 && len(s.flows) > 0 && !slices.ContainsFunc(s.flows, heard) {
		s.warn("filter-matches-nothing", fmt.Sprintf("the filter %s matches none of the topics, such as %s: no delivery is expected", s.Load.Filter, topics[0]),
			"choose a --filter that covers --topic")
	}
	for _, p := range s.publishers {
		p.heard = !p.unheard()
	}
	return nil
}

// wills are the keys of the wills of all clients; nil where they have none.
func (s *session) wills() map[string]bool {
	if s.Clients.Will == nil {
		return nil
	}
	keys := make(map[string]bool)
	for i := range s.members {
		w := willOf(s.Clients.Will, s.vars(i), s.Protocol)
		keys[willKey(w.Topic, w.Payload)] = true
	}
	return keys
}

// subscribeInbox gives the i-th inbox its filters and the receipts of what they
// match. Inboxes with one wildcard filter share the search in matches.
func (s *session) subscribeInbox(in *inbox, i int, topics []string, matches map[string][]*flow) {
	l := &s.Load
	perGroup := l.Subscribers
	if l.Share != "" {
		perGroup = 1
	}
	first := i / perGroup * l.TopicsPerSubscriber
	filters := topics[first : first+l.TopicsPerSubscriber]
	flows := s.flows[first*l.Publishers : (first+l.TopicsPerSubscriber)*l.Publishers]
	if l.Filter != "" {
		filter := scenarios.Expand(l.Filter, s.vars(in.client))
		if _, ok := matches[filter]; !ok {
			matches[filter] = s.matching(filter)
		}
		filters, flows = []string{filter}, matches[filter]
	}
	for _, f := range filters {
		if l.Share != "" {
			f = "$share/" + l.Share + "/" + f
		}
		in.filters = append(in.filters, f)
	}
	s.receive(in, flows)
}

func (s *session) matching(filter string) (flows []*flow) {
	for _, f := range s.flows {
		if packet.MatchTopic(filter, string(f.topic)) {
			flows = append(flows, f)
		}
	}
	return flows
}

// receive makes in a receiver of flows, which are in the order of their numbers.
func (s *session) receive(in *inbox, flows []*flow) {
	if len(flows) == 0 {
		return
	}
	in.base = flows[0].number
	in.receipts = make([]*receipt, flows[len(flows)-1].number-in.base+1)
	if !s.stamped() {
		in.topics = make(map[string][]*receipt)
	}
	for _, f := range flows {
		// As many numbers are remembered as send times.
		r := &receipt{flow: f, in: in, index: int32(len(f.receipts)), ledger: newLedger(max(s.Load.Inflight, s.ringSize()/4/int(f.stride)))}
		r.ledger.unordered = in.members.Load() > 1
		r.content = s.payload
		if s.open == nil {
			r.ring = f.pub.sentAt
		}
		f.receipts = append(f.receipts, r)
		in.receipts[f.number-in.base] = r
		if in.topics != nil {
			in.topics[string(f.topic)] = append(in.topics[string(f.topic)], r)
		}
	}
}

// absent takes the member out that did not connect.
func (m *member) absent() {
	if m.pub != nil {
		m.pub.dead.Store(true)
	}
	if m.sub != nil && m.deaf.CompareAndSwap(false, true) {
		m.sub.lose()
	}
}

// bereft reports whether what the member carries has lost its other end.
func (m *member) bereft() bool {
	if m.pub != nil && m.pub.dead.Load() {
		return true
	}
	return m.sub != nil && slices.ContainsFunc(m.sub.receipts, func(r *receipt) bool { return r != nil && r.flow.pub.dead.Load() })
}

// prune takes the receivers that did not connect out of what is expected. A
// publisher whose receivers are all missing has nothing to do.
func (s *session) prune() {
	for _, p := range s.publishers {
		had, has := 0, 0
		for _, f := range p.flows {
			had += len(f.receipts)
			f.receipts = slices.DeleteFunc(f.receipts, (*receipt).dead)
			has += len(f.receipts)
			for i, r := range f.receipts {
				r.index = int32(i)
			}
		}
		if p.heard = has > 0; had > 0 && !p.heard {
			p.dead.Store(true)
		}
	}
}

// usable reports whether there is anybody left to run.
func (s *session) usable() bool {
	if len(s.publishers) > 0 {
		return len(s.alive()) > 0
	}
	return s.connected.Load() > 0
}

// alive are the publishers that can publish and be heard.
func (s *session) alive() []*publisher {
	var out []*publisher
	for _, p := range s.publishers {
		if !p.dead.Load() {
			out = append(out, p)
		}
	}
	return out
}

// bereave ends the publishers of a closed loop that nobody hears any more; an
// open loop publishes to the end.
func (s *session) bereave(in *inbox) {
	for _, r := range in.receipts {
		if r == nil {
			continue
		}
		p := r.flow.pub
		if p.open == nil && p.unheard() {
			p.dead.Store(true)
		}
		p.pump()
	}
}

// unheard reports whether all who must get the publisher's messages are gone.
func (p *publisher) unheard() bool {
	for _, f := range p.flows {
		if slices.ContainsFunc(f.receipts, func(r *receipt) bool { return !r.dead() }) {
			return false
		}
	}
	return true
}
