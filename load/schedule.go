package load

import (
	"errors"
	"math"
	"sort"
	"time"

	"github.com/mqttload/mqttload/scenarios"
)

// schedule says when each message of an open loop is due. It is a pure function
// of the message's number: it depends neither on earlier messages nor on when
// it is called.
type schedule struct {
	segments []segment
	duration int64 // ns
	total    uint64
	period   float64   // ns between two messages of a single constant rate, else 0
	arrivals []float64 // Poisson: the arrival before every block of messages
	seed     uint64
}

// segment is a stretch in which the rate moves in a straight line.
type segment struct {
	start, length float64 // seconds
	count         float64 // messages before it
	rate          float64 // messages per second at its start
	slope         float64 // messages per second, per second
}

// arrivalBlock is how many Poisson arrivals are found by adding gaps to one
// remembered arrival.
const arrivalBlock = 16

// maxScheduled bounds a run: 2^40 messages take 12 days at a million per second.
const maxScheduled = 1 << 40

var (
	errNothingScheduled = errors.New("the stages schedule no message: raise the rate or the duration")
	errTooMany          = errors.New("the stages schedule more messages than one run can count: lower the rate or the duration")
)

func newSchedule(stages []scenarios.Stage, arrival scenarios.Arrival, seed uint64) (*schedule, error) {
	s := &schedule{seed: seed}
	var start, count float64
	for _, st := range stages {
		length := st.Duration.Seconds()
		if length <= 0 {
			continue
		}
		s.segments = append(s.segments, segment{start, length, count, st.From, (st.To - st.From) / length})
		start += length
		count += (st.From + st.To) / 2 * length
		s.duration += int64(st.Duration)
	}
	switch {
	case count > maxScheduled:
		return nil, errTooMany
	case count <= 0:
		return nil, errNothingScheduled
	}
	if arrival == scenarios.Poisson {
		s.arrive(count)
	} else {
		s.total = uint64(math.Ceil(count))
		if len(s.segments) == 1 && s.segments[0].slope == 0 {
			s.period = 1e9 / s.segments[0].rate
		}
	}
	// Rounding may put the last one at the end, which is outside of the schedule.
	for s.total > 0 && s.at(s.total-1) >= s.duration {
		s.total--
	}
	if s.total == 0 {
		return nil, errNothingScheduled
	}
	return s, nil
}

// arrive draws the arrivals of a Poisson process of rate 1 up to end. Stretched
// to the rate of the stages they are the arrivals of a process of that rate
// (the inverse of its expected count, Çinlar 1975).
func (s *schedule) arrive(end float64) {
	for sum := 0.0; sum < end; s.total++ {
		if s.total%arrivalBlock == 0 {
			s.arrivals = append(s.arrivals, sum)
		}
		sum += s.gap(s.total)
	}
	s.total-- // the last one is beyond the end
}

// gap is the time between message n and the one before, exponential of mean 1.
func (s *schedule) gap(n uint64) float64 {
	x := scenarios.SplitMix64(s.seed, n+1)
	return -math.Log((float64(x>>11) + 0.5) / (1 << 53))
}

// at returns when message n is due, in nanoseconds since the schedule's start.
func (s *schedule) at(n uint64) int64 {
	if s.period != 0 {
		return int64(float64(n)*s.period + 0.5)
	}
	count := float64(n)
	if s.arrivals != nil {
		count = s.arrivals[n/arrivalBlock]
		for i := n / arrivalBlock * arrivalBlock; i <= n; i++ {
			count += s.gap(i)
		}
	}
	// A message on the border of two segments belongs to the later one: a segment
	// in which nothing is due may lie between them. The sum of counts is not exact.
	g := &s.segments[0]
	for i := 1; i < len(s.segments) && count+1e-6 >= s.segments[i].count; i++ {
		g = &s.segments[i]
	}
	return int64(math.Round((g.start + g.until(count-g.count)) * 1e9))
}

// until is how long after its start the segment has had count messages: the
// stable root of count = rate t + slope t^2/2.
func (g *segment) until(count float64) float64 {
	if count <= 0 {
		return 0
	}
	root := g.rate*g.rate + 2*g.slope*count
	return min(g.length, 2*count/(g.rate+math.Sqrt(max(root, 0))))
}

// expected is how many messages are due within t nanoseconds, on average.
func (s *schedule) expected(t int64) float64 {
	sec, n := float64(t)/1e9, 0.0
	for i := range s.segments {
		g := &s.segments[i]
		x := min(max(sec-g.start, 0), g.length)
		n += x * (g.rate + g.slope*x/2)
	}
	return n
}

// due returns how many messages are due at t nanoseconds since the start: those
// whose at is not above t.
func (s *schedule) due(t int64) uint64 {
	if t < 0 {
		return 0
	}
	if s.arrivals != nil {
		block := sort.SearchFloat64s(s.arrivals, s.expected(t))
		return s.exact(uint64(max(block-1, 0))*arrivalBlock, t)
	}
	return s.exact(uint64(s.expected(t)), t)
}

// before returns how many messages are due before d.
func (s *schedule) before(d time.Duration) uint64 { return s.due(int64(d) - 1) }

// exact corrects an approximate due.
func (s *schedule) exact(n uint64, t int64) uint64 {
	n = min(n, s.total)
	for n > 0 && s.at(n-1) > t {
		n--
	}
	for n < s.total && s.at(n) <= t {
		n++
	}
	return n
}

// peak is the highest rate of the stages, in messages per second.
func (s *schedule) peak() (r float64) {
	for _, g := range s.segments {
		r = max(r, g.rate, g.rate+g.slope*g.length)
	}
	return r
}
