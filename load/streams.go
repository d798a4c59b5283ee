package load

import (
	"math"

	"github.com/mqttload/mqttload/result"
)

// closeAccounts takes what the session's receipts have come to into the case,
// and gives the account of every stream to who asked for it.
func (s *session) closeAccounts(launch int) {
	var rows []result.StreamAccount
	for _, f := range s.flows {
		for _, r := range f.receipts {
			if r.total.missed.any {
				s.missed.add(r.total.missed.first)
				s.missed.add(r.total.missed.last)
			}
			s.noteClients(f, r)
			if s.x.cfg.Observer.Ledger != nil && r.total.sent > 0 {
				rows = append(rows, s.streamAccount(launch, f, r))
			}
		}
	}
	if s.x.cfg.Observer.Ledger != nil && len(rows) > 0 {
		s.x.cfg.Observer.Ledger(s.Case, rows)
	}
}

func (s *session) streamAccount(launch int, f *flow, r *receipt) result.StreamAccount {
	t := &r.total
	a := result.StreamAccount{
		Launch: launch, Stream: int(f.number), Topic: string(f.topic),
		Publisher: f.pub.client.ClientID(), Subscriber: s.clientID(r.in.client),
		Sent: t.sent, Delivered: t.delivered, Lost: t.sent - t.delivered, Duplicated: t.duplicated, Redelivered: t.flagged,
		Reordered: t.reordered, Corrupted: t.corrupted, Late: t.late, FirstLost: -1, LastLost: -1,
		Timed: t.timed,
	}
	if t.timed > 0 {
		a.MeanNS = t.latencyNS / float64(t.timed)
	}
	if t.missed.any {
		a.FirstLost, a.LastLost = int64(t.missed.first), int64(t.missed.last)
	}
	return a
}

// clientID is that of the n-th client, as the broker knows it.
func (s *session) clientID(n int) string {
	if c := s.members[n].client.Load(); c != nil {
		return c.ClientID()
	}
	return s.vars(n).C
}

// losses says more of the deliveries that were lost; nil where none was, and
// where messages carry no numbers.
func (c *caseRun) losses(r *result.Case) *result.Losses {
	d := &r.Delivery
	if d.Lost == 0 || !c.missed.any || d.CountsOnly {
		return nil
	}
	l := &result.Losses{First: int64(c.missed.first), Last: int64(c.missed.last)}
	if c.QoS > 0 && d.Sent > 0 {
		// Which of them an acknowledgement is for is not remembered: those that
		// were not acknowledged are taken for lost before others are.
		receivers := math.Ceil(float64(d.Expected) / float64(d.Sent))
		l.Unacked = min(d.Lost, int64(receivers)*(d.Sent-d.Acked))
		l.Acked = d.Lost - l.Unacked
	}
	return l
}
