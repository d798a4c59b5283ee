package load

import (
	"math"

	"github.com/mqttload/mqttload/result"
)

// closeAccounts takes what the session's receipts have come to into the case,
// and gives the account of every stream to who asked for it.
func (l *launch) closeAccounts() {
	var rows []result.StreamAccount
	for _, f := range l.flows {
		for _, r := range f.receipts {
			if r.total.missed.any {
				l.run.missed.add(r.total.missed.first)
				l.run.missed.add(r.total.missed.last)
			}
			l.noteClients(f, r)
			if l.run.x.cfg.Observer.Ledger != nil && r.total.sent > 0 {
				rows = append(rows, l.streamAccount(f, r))
			}
		}
	}
	if l.run.x.cfg.Observer.Ledger != nil && len(rows) > 0 {
		l.run.x.cfg.Observer.Ledger(l.spec, rows)
	}
}

func (l *launch) streamAccount(f *flow, r *receipt) result.StreamAccount {
	t := &r.total
	a := result.StreamAccount{
		Launch: l.number, Stream: int(f.number), Topic: string(f.topic),
		Publisher: f.pub.client.ClientID(), Subscriber: l.clientID(r.in.client),
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
func (l *launch) clientID(n int) string {
	if c := l.members[n].client.Load(); c != nil {
		return c.ClientID()
	}
	return l.connector.vars(n).C
}

// losses says more of the deliveries that were lost; nil where none was, and
// where messages carry no numbers.
func (c *caseRun) losses(r *result.Case) *result.Losses {
	d := &r.Delivery
	if d.Lost == 0 || !c.missed.any || d.CountsOnly {
		return nil
	}
	l := &result.Losses{First: int64(c.missed.first), Last: int64(c.missed.last)}
	if c.spec.QoS > 0 && d.Sent > 0 {
		// Which of them an acknowledgement is for is not remembered: those that
		// were not acknowledged are taken for lost before others are.
		receivers := math.Ceil(float64(d.Expected) / float64(d.Sent))
		l.Unacked = min(d.Lost, int64(receivers)*(d.Sent-d.Acked))
		l.Acked = d.Lost - l.Unacked
	}
	return l
}
