package broker

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

func TestFaultChoosesMessages(t *testing.T) {
	for name, tt := range map[string]struct {
		fault Fault
		want  []int64 // of the messages 1 to 10
	}{
		"all":                    {Fault{}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"every third":            {Fault{Every: 3}, []int64{3, 6, 9}},
		"every third, from 2":    {Fault{Every: 3, From: 2}, []int64{2, 5, 8}},
		"from 8":                 {Fault{From: 8}, []int64{8, 9, 10}},
		"the fourth":             {Fault{From: 4, Times: 1}, []int64{4}},
		"every other, two times": {Fault{Every: 2, Times: 2}, []int64{2, 4}},
	} {
		tt.fault.Effect = Lose{}
		fs := newFaults(nil, []Fault{tt.fault})
		var got []int64
		for n := range int64(10) {
			if f := fs.judge(Inbound, "a", "c", 1); f.times() == 0 {
				got = append(got, n+1)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestFaultMatches(t *testing.T) {
	for name, tt := range map[string]struct {
		fault Fault
		want  bool
	}{
		"no condition":   {Fault{}, true},
		"topic":          {Fault{Topic: "a/b"}, true},
		"topic filter":   {Fault{Topic: "a/#"}, true},
		"other topic":    {Fault{Topic: "a"}, false},
		"client":         {Fault{Client: "c"}, true},
		"other client":   {Fault{Client: "d"}, false},
		"QoS":            {Fault{QoS: new(byte(1))}, true},
		"other QoS":      {Fault{QoS: new(byte(0))}, false},
		"other side":     {Fault{Direction: Outbound}, false},
		"all, one wrong": {Fault{Topic: "a/b", Client: "c", QoS: new(byte(2))}, false},
	} {
		tt.fault.Effect = Cut{}
		if f := newFaults(nil, []Fault{tt.fault}).judge(Inbound, "a/b", "c", 1); f.cut != tt.want {
			t.Errorf("%s: %v, want %v", name, f.cut, tt.want)
		}
	}
	// A message of another topic does not count.
	fs := newFaults(nil, []Fault{{Topic: "a", From: 2, Times: 1, Effect: Lose{}}})
	for i, topic := range []string{"a", "b", "a"} {
		if f := fs.judge(Inbound, topic, "c", 0); f.lost != (i == 2) {
			t.Errorf("message %d: lost %v", i, f.lost)
		}
	}
}

// faultLog is what a client gets, and after how many milliseconds.
type faultLog struct {
	*peer
	start time.Time
	mu    sync.Mutex
	lines []string
}

// keepLog reads in the background, and answers as a client does.
func keepLog(p *peer) *faultLog {
	l := &faultLog{peer: p, start: time.Now()}
	_ = p.nc.SetReadDeadline(time.Time{})
	go func() {
		for {
			f, err := p.nextPatient()
			if err != nil {
				l.note("end")
				return
			}
			l.handle(f)
		}
	}()
	return l
}

// nextPatient is next without a deadline, which virtual time would reach.
func (c *peer) nextPatient() (packet.Frame, error) {
	for {
		f, ok, err := c.scan.Next()
		if ok || err != nil {
			return f, err
		}
		n, err := c.nc.Read(c.scan.Space())
		if err != nil {
			return f, err
		}
		c.scan.Advance(n)
	}
}

func (l *faultLog) note(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ms := time.Since(l.start).Milliseconds(); ms > 0 {
		s += fmt.Sprintf("@%d", ms)
	}
	l.lines = append(l.lines, s)
}

func (l *faultLog) handle(f packet.Frame) {
	var a packet.Ack
	switch f.Type() {
	case packet.PUBLISH:
		var p packet.Publish
		l.must(p.Decode(f, l.v))
		s := string(p.Payload)
		if p.Dup {
			s += "dup"
		}
		l.note(s)
		if p.QoS > 0 {
			l.write(packet.AppendAck(nil, packet.PUBACK+packet.Type(p.QoS-1), p.PacketID), nil)
		}
		return
	case packet.PUBACK, packet.PUBCOMP, packet.PUBREL, packet.PUBREC:
		l.must(a.Decode(f, l.v))
	}
	switch f.Type() {
	case packet.PUBACK, packet.PUBREC:
		l.note(fmt.Sprintf("ack%d", a.PacketID))
		if f.Type() == packet.PUBREC {
			l.write(packet.AppendAck(nil, packet.PUBREL, a.PacketID), nil)
		}
	case packet.PUBREL:
		l.write(packet.AppendAck(nil, packet.PUBCOMP, a.PacketID), nil)
	}
}

func (l *faultLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, " ")
}

// TestFaults: three messages in one write, each effect in each direction, what the
// subscriber gets and what the publisher does.
func TestFaults(t *testing.T) {
	const fine, acked = "1 2 3", "ack1 ack2 ack3"
	second := func(d Direction, e Effect) Fault { return Fault{Direction: d, From: 2, Times: 1, Effect: e} }
	for name, tt := range map[string]struct {
		faults     []Fault
		got, acked string // at QoS 1 and 2
	}{
		"of another client":    {[]Fault{{Client: "x", Effect: Lose{}}}, fine, acked},
		"lose inbound":         {[]Fault{second(Inbound, Lose{})}, "1 3", acked},
		"lose outbound":        {[]Fault{second(Outbound, Lose{})}, "1 3", acked},
		"repeat inbound":       {[]Fault{second(Inbound, Repeat{Copies: 2})}, "1 2 2 2 3", acked},
		"repeat outbound":      {[]Fault{second(Outbound, Repeat{Copies: 1})}, "1 2 2 3", acked},
		"repeat with DUP, in":  {[]Fault{second(Inbound, Repeat{1, true})}, "1 2 2dup 3", acked},
		"repeat with DUP, out": {[]Fault{second(Outbound, Repeat{1, true})}, "1 2 2dup 3", acked},
		"delay all inbound":    {[]Fault{{Effect: Delay(time.Second)}}, "1@1000 2@1000 3@1000", "ack1@1000 ack2@1000 ack3@1000"},
		"delay all outbound":   {[]Fault{{Direction: Outbound, Effect: Delay(time.Second)}}, "1@1000 2@1000 3@1000", acked},
		"delay one inbound":    {[]Fault{second(Inbound, Delay(time.Second))}, "1 3 2@1000", "ack1 ack3 ack2@1000"},
		"delay one outbound":   {[]Fault{second(Outbound, Delay(time.Second))}, "1 3 2@1000", acked},
		"delay both ways": {
			[]Fault{second(Inbound, Delay(time.Second)), second(Outbound, Delay(time.Second))}, "1 3 2@2000", "ack1 ack3 ack2@1000",
		},
		"stall inbound":           {[]Fault{second(Inbound, Stall(time.Second))}, "1 2@1000 3@1000", "ack1 ack2@1000 ack3@1000"},
		"stall outbound":          {[]Fault{second(Outbound, Stall(time.Second))}, "1 2@1000 3@1000", acked},
		"two stalls overlap":      {[]Fault{{Direction: Outbound, From: 2, Effect: Stall(time.Second)}}, "1 2@1000 3@1000", acked},
		"delay ends in a stall":   {[]Fault{second(Outbound, Delay(time.Second)), {Direction: Outbound, From: 3, Effect: Stall(3 * time.Second)}}, "1 3@3000 2@3000", acked},
		"cut the publisher":       {[]Fault{second(Inbound, Cut{})}, "1", "ack1 end"},
		"cut the subscriber":      {[]Fault{second(Outbound, Cut{})}, "1 end", acked},
		"lose and repeat":         {[]Fault{second(Inbound, Lose{}), second(Inbound, Repeat{Copies: 1})}, "1 3", acked},
		"repeat in both, delayed": {[]Fault{second(Inbound, Repeat{Copies: 1}), second(Outbound, Delay(time.Second))}, "1 2 3 2@1000", acked},
		"repeat late, with DUP":   {[]Fault{second(Inbound, Repeat{1, true}), second(Inbound, Delay(time.Second))}, "1 3 2@1000 2dup@1000", "ack1 ack3 ack2@1000"},
	} {
		for _, v := range []packet.Version{packet.V311, packet.V5} {
			for qos := range byte(3) {
				t.Run(fmt.Sprintf("%s/%s/qos=%d", name, v, qos), func(t *testing.T) {
					want, acked := tt.got, tt.acked
					if qos == 0 {
						want, acked = strings.ReplaceAll(want, "dup", ""), withoutAcks(acked)
					}
					virtual(t, Config{Faults: tt.faults}, func(t *testing.T, b *Broker) {
						got, acks := threeThrough(t, b, v, qos)
						if got != want {
							t.Errorf("the subscriber got %q, want %q", got, want)
						}
						if acks != acked {
							t.Errorf("the publisher got %q, want %q", acks, acked)
						}
					})
				})
			}
		}
	}
}

func withoutAcks(s string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(s), func(s string) bool { return strings.HasPrefix(s, "ack") }), " ")
}

// threeThrough publishes the messages 1 to 3, each when the broker is done with
// the one before, and returns what subscriber and publisher get in ten seconds.
func threeThrough(t *testing.T, b *Broker, v packet.Version, qos byte) (got, acks string) {
	subscriber := connectPipe(t, b, clean(v, "s"))
	subscriber.subscribe(sub("a", 2))
	s, p := keepLog(subscriber), keepLog(connectPipe(t, b, clean(v, "p")))
	for n := range uint16(3) {
		m := packet.Publish{Topic: []byte("a"), Payload: fmt.Append(nil, n+1), QoS: qos}
		if qos > 0 {
			m.PacketID = n + 1
		}
		out, err := m.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = p.nc.Write(out) // the connection may have been cut
		synctest.Wait()
	}
	time.Sleep(10 * time.Second)
	return s.text(), p.text()
}

// TestFaultsInOneBatch: faults act on each message of a read, too, although such
// a batch has faster ways through a broker without faults.
func TestFaultsInOneBatch(t *testing.T) {
	for qos := range byte(3) {
		virtual(t, Config{Faults: []Fault{{Every: 10, Effect: Lose{}}, {Every: 25, Effect: Repeat{Copies: 1}}}}, func(t *testing.T, b *Broker) {
			p := connectPipe(t, b, clean(packet.V311, "p"))
			p.subscribe(sub("a", qos))
			l := keepLog(p)
			var out []byte
			for n := range uint16(100) {
				m := packet.Publish{Topic: []byte("a"), Payload: []byte("x"), QoS: qos}
				if qos > 0 {
					m.PacketID = n + 1
				}
				out, _ = m.Append(out, packet.V311)
			}
			l.write(out, nil)
			synctest.Wait()
			// 50 and 100 are lost and not repeated.
			if n := strings.Count(l.text(), "x"); n != 92 {
				t.Errorf("QoS %d: %d messages, want 92", qos, n)
			}
		})
	}
}

// TestDelayedMessagesAreBounded: what a delay holds back counts as queued, so that
// a publisher that is faster has to wait.
func TestDelayedMessagesAreBounded(t *testing.T) {
	const limit, n = 1 << 20, 10_000
	virtual(t, Config{MaxQueuedBytes: limit, Faults: []Fault{{Effect: Delay(time.Second)}}}, func(t *testing.T, b *Broker) {
		start := time.Now()
		s := connectPipe(t, b, clean(packet.V311, "s"))
		s.subscribe(sub("a", 0))
		p := connectPipe(t, b, clean(packet.V311, "p"))
		written := p.flood("a", 0, n)
		synctest.Wait()
		if held := b.held("s"); held < limit || held > limit+4096 {
			t.Errorf("%d bytes are held, want %d and one message", held, limit)
		}
		s.wantFlood(n)
		<-written
		if d := time.Since(start); d < 2*time.Second {
			t.Errorf("everything has come after %v: nothing had to wait", d)
		}
		synctest.Wait()
		if held := b.held("s"); held != 0 {
			t.Errorf("%d bytes are held at the end", held)
		}
	})
}

// TestStallHoldsPublishers: publishers wait for a stalled subscriber, nothing is
// lost, and what comes as the stall ends does not overtake what has waited.
func TestStallHoldsPublishers(t *testing.T) {
	const n = 20_000
	for _, qos := range []byte{0, 1} {
		stall := Fault{Direction: Outbound, From: 100, Times: 1, Effect: Stall(5 * time.Second)}
		virtual(t, Config{Faults: []Fault{stall}}, func(t *testing.T, b *Broker) {
			s := connectPipe(t, b, clean(packet.V311, "s"))
			s.subscribe(sub("a", qos))
			p := connectPipe(t, b, clean(packet.V311, "p"))
			go p.drain()
			written := p.flood("a", qos, n)
			s.wantFlood(n)
			<-written
			if st := b.Stats(); st.Dropped != 0 || st.MessagesOut != n {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestDelayOutlivesTheConnection: a session without connection keeps what a delay
// hands to it, and another member gets what was for one that has left its share.
func TestDelayOutlivesTheConnection(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, b *Broker) *peer{
		"kept session": func(t *testing.T, b *Broker) *peer {
			p := clean(packet.V5, "s")
			p.Properties.SessionExpiry = new(uint32(3600))
			s := connectPipe(t, b, p)
			s.subscribe(sub("a", 1))
			publishToA(t, b)
			s.leave()
			time.Sleep(2 * time.Minute)
			p.CleanStart = false
			return connectPipe(t, b, p)
		},
		"shared subscription": func(t *testing.T, b *Broker) *peer {
			s, other := connectPipe(t, b, clean(packet.V5, "s")), connectPipe(t, b, clean(packet.V5, "o"))
			s.subscribe(sub("$share/g/a", 1))
			publishToA(t, b)
			other.subscribe(sub("$share/g/a", 1))
			s.leave()
			return other
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, Config{Faults: []Fault{{Effect: Delay(time.Minute)}}}, func(t *testing.T, b *Broker) {
				l := keepLog(test(t, b))
				time.Sleep(2 * time.Minute)
				if got, _, _ := strings.Cut(l.text(), "@"); got != "1" {
					t.Errorf("got %q, want %q", got, "1")
				}
			})
		})
	}
}

func publishToA(t *testing.T, b *Broker) {
	p := keepLog(connectPipe(t, b, clean(packet.V5, "p")))
	p.publish("a", "1", 1, 1)
	synctest.Wait()
}

// TestShutdownDropsWhatIsHeldBack: a broker does not wait for its faults.
func TestShutdownDropsWhatIsHeldBack(t *testing.T) {
	for name, e := range map[string]Effect{"delay": Delay(time.Hour), "stall": Stall(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			virtual(t, Config{Faults: []Fault{{Effect: e}, {Direction: Outbound, Effect: e}}}, func(t *testing.T, b *Broker) {
				s := keepLog(connectPipe(t, b, clean(packet.V311, "s")))
				p := keepLog(connectPipe(t, b, clean(packet.V311, "p")))
				p.publish("a", "1", 1, 1)
				synctest.Wait()
				start := time.Now()
				if err := b.Close(); err != nil || time.Since(start) > time.Minute {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				synctest.Wait()
				if p.text() != "end" || s.text() != "end" {
					t.Errorf("subscriber %q, publisher %q", s.text(), p.text())
				}
			})
		})
	}
}
