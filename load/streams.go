package load

import (
	"github.com/mqttload/mqttload/result"
)

// end closes the launch and its accounts.
func (l *launch) end() {
	if l.atEnd != nil {
		l.atEnd()
	}
	l.close()
	l.closeAccounts()
}

// closeAccounts adds the launch's receipts to the record, and gives the account
// of every stream to the observer.
func (l *launch) closeAccounts() {
	var rows []result.StreamAccount
	for _, f := range l.flows {
		for _, r := range f.receipts {
			if r.total.missed.any {
				l.rec.missed.add(r.total.missed.first)
				l.rec.missed.add(r.total.missed.last)
			}
			l.noteMeans(f, r)
			if l.rec.cfg.Observer.Ledger != nil && r.total.sent > 0 {
				rows = append(rows, l.streamAccount(f, r))
			}
		}
	}
	if l.rec.cfg.Observer.Ledger != nil && len(rows) > 0 {
		l.rec.cfg.Observer.Ledger(l.spec, rows)
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

// clientID is the id of the n-th client, as the broker knows it.
func (l *launch) clientID(n int) string {
	if c := l.members[n].client.Load(); c != nil {
		return c.ClientID()
	}
	return l.connector.vars(n).C
}

// noteMeans adds a receipt to the means of its two ends.
func (l *launch) noteMeans(f *flow, r *receipt) {
	if r.total.timed == 0 || l.spec.Load.Shape.Queues > 0 { // the end of a queue waits for its beginning
		return
	}
	l.rec.slow.publishers.add(f.pub.number, &r.total, f.topic, f.pub.client.ClientID)
	l.rec.slow.receivers.add(r.in.client, &r.total, f.topic, func() string { return l.clientID(r.in.client) })
}
