package load

import (
	"fmt"
	"slices"
	"time"

	"github.com/mqttload/mqttload/result"
)

// A client is slow when its mean latency is so many times that of the median
// client, and so much longer, over so many latencies, among so many clients.
const (
	slowTimes  = 10
	slowExcess = 5 * time.Millisecond
	slowLeast  = 100
	slowAmong  = 3
)

// clientMean is the mean latency of the messages of one publisher, or to one
// receiver. Percentiles over all messages cannot distinguish one client that is
// always slow from all clients that are slow at times.
type clientMean struct {
	number int // among its kind
	n      int64
	ns     float64
	id     string
	topic  []byte // the first that it published to or received
}

func (m *clientMean) mean() float64 { return m.ns / float64(m.n) }

// clientMeans are the means of all clients of a kind, over all launches.
type clientMeans map[int]*clientMean

func (ms *clientMeans) add(number int, t *receiptTotal, topic []byte, id func() string) {
	if *ms == nil {
		*ms = clientMeans{}
	}
	m := (*ms)[number]
	if m == nil {
		m = &clientMean{number: number, id: id(), topic: topic}
		(*ms)[number] = m
	}
	m.n += t.timed
	m.ns += t.latencyNS
}

// slow returns the slow clients, the slowest first, the mean of the median
// client, and the number of clients.
func (ms clientMeans) slow() (slow []*clientMean, median float64, of int) {
	var all []*clientMean
	for _, m := range ms {
		if m.n >= slowLeast {
			all = append(all, m)
		}
	}
	if len(all) < slowAmong {
		return nil, 0, len(all)
	}
	slices.SortFunc(all, func(a, b *clientMean) int {
		switch x, y := a.mean(), b.mean(); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return a.number - b.number
	})
	median = all[len(all)/2].mean()
	for _, m := range all {
		if m.mean() < slowTimes*median || m.mean()-median < float64(slowExcess) {
			break
		}
		slow = append(slow, m)
	}
	return slow, median, len(all)
}

// slowClients are the means that show which clients are slow.
type slowClients struct{ publishers, receivers clientMeans }

// warning names the clients that are far slower than the others: publishers, or
// receivers where no publisher stands out; its code is "" where none does.
func (s *slowClients) warning() (w result.Warning) {
	what := "publisher"
	slow, median, of := s.publishers.slow()
	if len(slow) == 0 {
		what = "receiver"
		slow, median, of = s.receivers.slow()
	}
	if len(slow) == 0 {
		return w
	}
	verb := what + "s is slow: mean latency"
	if len(slow) > 1 {
		verb = what + "s are slow: the slowest has a mean latency of"
	}
	return result.Warning{
		Code: result.CodeSlowClients,
		Message: fmt.Sprintf("%d of %d %s %s against %s of the median %s (client %s, topic %s)", len(slow), of, verb,
			result.FormatNS(slow[0].mean()), result.FormatNS(median), what, slow[0].id, slow[0].topic),
		Hint: "the percentiles are over all messages and do not name clients: --ledger FILE has the mean latency of every stream",
	}
}
