package scenarios

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/text"
)

// pace is what a scenario says about the rate and the duration of its load.
type pace struct {
	rate, perClient float64 // messages per second
	interval        time.Duration
	steps           []step
	ramp, duration  time.Duration
}

// step is one part of stages: the rate changes linearly to this one.
type step struct {
	duration time.Duration
	rate     float64
}

// rateKeys are the keys that set the rate of an open loop.
var rateKeys = []string{"rate", "rate_per_client", "interval", "stages"}

// WarmupShare is the length of a warm-up iteration of a closed loop that is sized by
// time, as a part of a measured one: enough to warm up, and a matrix of many cases
// ends sooner.
const WarmupShare = 0.4

func paceFields() []field {
	at := func(c *Case) *pace { return &c.Load.asked.pace }
	return []field{
		rateField("rate", func(c *Case) *float64 { return &at(c).rate }),
		rateField("rate_per_client", func(c *Case) *float64 { return &at(c).perClient }),
		omitDefault("0s", field{key: "interval", parse: func(_, s string) (value, error) {
			if isNumber(s) && s != "0" {
				return value{}, fmt.Errorf("%s has no unit, and tools differ: write %sms for emqtt-bench's and MQTTX's milliseconds, or %ss for mqtt-benchmark's seconds", s, s, s)
			}
			d, err := parseTime("interval", s, 0, time.Hour)
			return plain(text.Duration(d), func(c *Case) { at(c).interval = d }), err
		}, get: func(s *Scenario) any { return text.Duration(at(&s.base).interval) }}),
		{key: "stages", many: commas, assign: assignStages, get: func(s *Scenario) any { return stagesText(at(&s.base).steps) }},
		omitDefault("0s", timeField("ramp", 0, MaxDuration, func(c *Case) *time.Duration { return &at(c).ramp })),
		omitDefault(string(Constant), field{key: "arrival", parse: func(_, text string) (value, error) {
			a, err := parseArrival(text)
			return plain(text, func(c *Case) { c.Load.Arrival = a }), err
		}, get: func(s *Scenario) any { return string(s.base.Load.Arrival) }}),
		omitDefault("0s", timeField("duration", 0, MaxDuration, func(c *Case) *time.Duration { return &at(c).duration })),
	}
}

func parseArrival(s string) (Arrival, error) {
	switch Arrival(s) {
	case Constant, Poisson:
		return Arrival(s), nil
	}
	return "", errors.New("arrival must be constant or poisson")
}

func rateField(key string, at func(*Case) *float64) field {
	return omitDefault(0.0, field{key: key, parse: func(_, text string) (value, error) {
		n, err := parseMessageRate(text)
		if err != nil {
			return value{}, fmt.Errorf("%s %w", key, err)
		}
		return value{strconv.FormatFloat(n, 'f', -1, 64), text, func(c *Case) { *at(c) = n }}, nil
	}, get: func(s *Scenario) any { return *at(&s.base) }})
}

// ratePers are what rates are per, in seconds.
var ratePers = map[string]float64{"s": 1, "m": 60, "h": 3600}

// parseMessageRate reads messages per second: "500", "10k", "1.5M", "50/s", "90/m".
func parseMessageRate(s string) (float64, error) {
	number, per, divided := strings.Cut(s, "/")
	seconds := 1.0
	if divided {
		seconds = ratePers[per]
	}
	unit := number[len(strings.TrimRight(number, "kKMG")):]
	number = number[:len(number)-len(unit)]
	factor := text.CountUnit(unit)
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !isNumber(number) || seconds*factor == 0 {
		return 0, errors.New("must be messages per second, such as 500, 10k, 1.5M or 90/m")
	}
	if n *= factor / seconds; n > maxRate {
		return 0, fmt.Errorf("must be at most %d per second", maxRate)
	}
	return n, nil
}

// assignStages reads "30s:1k,1m:10k,30s:0".
func assignStages(s *Scenario, _ string, texts []string) error {
	var steps []step
	var bad elements
	for i, text := range strings.Split(strings.Join(texts, ","), ",") {
		one, err := parseStep(strings.TrimSpace(text))
		if err != nil {
			bad = append(bad, element{min(i, len(texts)-1), err})
		}
		steps = append(steps, one)
	}
	if bad != nil {
		return bad
	}
	s.base.Load.asked.pace.steps = steps
	return nil
}

func parseStep(text string) (step, error) {
	left, right, ok := strings.Cut(text, ":")
	if !ok {
		return step{}, errors.New("stages are written TIME:RATE, such as 30s:1k,1m:10k,30s:0")
	}
	d, err := parseTime("stages", left, 0, MaxDuration)
	if err != nil && left != "0" {
		return step{}, err
	}
	rate, err := parseMessageRate(right)
	if err != nil {
		return step{}, fmt.Errorf("stages %w", err)
	}
	return step{d, rate}, nil
}

func stagesText(steps []step) any {
	var list []string
	for _, st := range steps {
		list = append(list, text.Duration(st.duration)+":"+strconv.FormatFloat(st.rate, 'f', -1, 64))
	}
	return listOrNil(list)
}

// replaceRate removes the scenario's other rate keys when a setting gives one. Two
// settings contradict each other.
func (s *Scenario) replaceRate(key string) error {
	for _, other := range rateKeys {
		at, given := s.places[other]
		switch {
		case other == key || !given:
		case at.flag != "":
			return fmt.Errorf("%s is given too, and both set the rate: keep one", at.flag)
		default:
			delete(s.places, other)
			s.dropAxis(other)
			p := &s.base.Load.asked.pace
			*p = pace{ramp: p.ramp, duration: p.duration}
		}
	}
	return nil
}

// settlePace turns rate and duration into stages and windows.
func (s *Scenario) settlePace(l *Load, fail failer) {
	p := l.asked.pace
	if s.conflictingRates(fail) {
		return
	}
	rate := p.totalRate(l)
	switch {
	case rate > maxRate:
		fail(s.rateKey(), "%.0f messages per second over all publishers are over the limit of %d", rate, maxRate)
	case rate == 0 && p.steps == nil:
		s.settleClosed(l, fail)
	case l.Shape.noRate != "":
		fail(s.rateKey(), "shape %s %s: remove %s", l.Shape, l.Shape.noRate, s.rateKey())
	case l.FreshIterations:
		fail("fresh_iterations", "fresh_iterations needs a closed loop: remove %s or fresh_iterations", s.rateKey())
	case p.steps != nil:
		s.settleStages(l, fail)
	default:
		s.settleRate(l, rate, fail)
	}
}

// conflictingRates rejects two rates in one file.
func (s *Scenario) conflictingRates(fail failer) bool {
	first := ""
	for _, key := range rateKeys {
		if _, given := s.places[key]; !given || s.isZeroRate(key) {
			continue
		}
		if first != "" {
			fail(key, "%s and %s both set the rate: keep one", first, key)
			return true
		}
		first = key
	}
	return false
}

// isZeroRate reports whether a rate key is turned off by the value 0.
func (s *Scenario) isZeroRate(key string) bool {
	p := s.base.Load.asked.pace
	return !s.hasAxis(key) && map[string]bool{"rate": p.rate == 0, "rate_per_client": p.perClient == 0, "interval": p.interval == 0}[key]
}

func (s *Scenario) rateKey() string { return s.given(rateKeys...) }

// given is the first of keys that has a value, or else the first.
func (s *Scenario) given(keys ...string) string {
	for _, key := range keys {
		if _, ok := s.places[key]; ok {
			return key
		}
	}
	return keys[0]
}

// totalRate is messages per second over all publishers, 0 for a closed loop.
func (p *pace) totalRate(l *Load) float64 {
	clients := l.RateClients()
	switch {
	case p.rate > 0:
		return p.rate
	case p.perClient > 0:
		return p.perClient * float64(clients)
	case p.interval > 0:
		return float64(clients) / p.interval.Seconds()
	}
	return 0
}

// settleRate makes the stages of one rate, after a ramp if the scenario has one.
func (s *Scenario) settleRate(l *Load, rate float64, fail failer) {
	p := l.asked.pace
	total := s.openDuration(l)
	if l.Messages > 0 {
		// Message n is due at n/rate. Half a gap after the last one lies none too many.
		last := time.Duration((float64(l.Messages) - 0.5) / rate * 1e9)
		if p.ramp > 0 {
			fail("messages", "messages and ramp cannot be combined: give duration instead of messages")
			return
		}
		if total = last; p.duration > 0 {
			total = min(last, p.duration)
		}
		l.Messages = 0
	}
	if p.ramp >= total {
		fail("ramp", "a ramp of %s takes all of the %s: make duration longer", text.Duration(p.ramp), text.Duration(total))
		return
	}
	if p.ramp > 0 {
		l.Stages = append(l.Stages, Stage{p.ramp, 0, rate})
	}
	l.Stages = append(l.Stages, Stage{total - p.ramp, rate, rate})
	s.settleWindows(l, total, fail)
}

// openDuration is the length of an open loop: duration, or else one second for each
// iteration, warm-up included.
func (s *Scenario) openDuration(l *Load) time.Duration {
	p := l.asked.pace
	if p.duration > 0 && (s.places["iterations"].flag == "" || s.places["duration"].flag != "") {
		return p.duration
	}
	return time.Duration(max(l.Warmup, windows(p.ramp))+l.Iterations) * time.Second
}

func (s *Scenario) settleStages(l *Load, fail failer) {
	p := l.asked.pace
	if p.ramp > 0 || p.duration > 0 || l.Messages > 0 {
		fail("stages", "stages set both duration and rate: remove duration, ramp and messages")
		return
	}
	var total time.Duration
	rate, sum := 0.0, 0.0
	for _, st := range p.steps {
		if st.duration > 0 {
			l.Stages = append(l.Stages, Stage{st.duration, rate, st.rate})
			total += st.duration
			sum += (rate + st.rate) / 2 * st.duration.Seconds()
		}
		rate = st.rate
	}
	if sum < 1 || total > MaxDuration {
		fail("stages", "stages hold %.0f messages in %s: they need at least 1 message, and at most %s", sum, text.Duration(total), text.Duration(MaxDuration))
		return
	}
	s.settleWindows(l, total, fail)
}

// windows is how many windows of one second hold d.
func windows(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// settleWindows splits the schedule into windows of warm-up and measured ones.
func (s *Scenario) settleWindows(l *Load, total time.Duration, fail failer) {
	n := windows(total)
	asked := l.Iterations
	ramp := windows(l.asked.pace.ramp)
	// The scenario's warm-up was chosen for another length than the flag's.
	sized := s.places["duration"].flag + s.places["messages"].flag + s.places["stages"].flag
	if s.places["warmup"].flag == "" && sized != "" {
		l.Warmup = min(l.Warmup, n/4)
	}
	l.Warmup = max(l.Warmup, ramp)
	l.Duration, l.Iterations = total, n-l.Warmup
	switch {
	case l.Iterations < 1:
		fail(s.given("warmup", "duration", "stages", "messages"), "a warm-up of %d s leaves nothing to measure of %s: make duration longer or warmup shorter", l.Warmup, text.Duration(total))
	case asked != l.Iterations && s.places["iterations"].flag != "" && s.places["duration"].flag != "":
		fail("iterations", "a duration of %s with a warm-up of %d s gives %d iterations of 1 s, not %d: remove iterations", text.Duration(total), l.Warmup, l.Iterations, asked)
	}
}

// settleClosed sizes the iterations of a closed loop.
func (s *Scenario) settleClosed(l *Load, fail failer) {
	p := l.asked.pace
	if l.Arrival != Constant {
		fail("arrival", "arrival %s needs a rate: give rate, rate_per_client or interval", l.Arrival)
	}
	if p.ramp > 0 {
		fail("ramp", "ramp needs a rate: give rate, rate_per_client or interval")
	}
	l.Duration = p.duration
	switch {
	case !l.Shape.Publishes() && !l.Shape.subscribes():
		l.Warmup, l.Iterations = 0, 1
	case l.Shape.Queues > 0 && l.Messages == 0:
		l.Messages = int64(l.Shape.Queues * l.Topics)
	case p.duration == 0 || l.Messages > 0:
	case l.Shape.Listens:
		s.settleWindows(l, p.duration, fail)
	default:
		// The iterations together take the duration.
		if s.places["min_time"].flag != "" {
			fail("min_time", "duration and min_time both size the iterations: keep one")
		}
		l.Duration = 0
		l.MinTime = max(time.Millisecond, time.Duration(float64(p.duration)/(WarmupShare*float64(l.Warmup)+float64(l.Iterations))))
	}
}
