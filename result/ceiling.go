package result

import (
	"fmt"
	"slices"
	"strconv"
)

// Parameters that tell the cases of a calibration apart.
const (
	ParamWork  = "work"  // WorkEngine or another kind of work
	ParamPlace = "place" // where the broker ran: PlaceIn or PlaceOwn
	WorkEngine = "engine"
	PlaceIn    = "in-process"
	PlaceOwn   = "own-process"
)

// nearCeiling is the share of the ceiling above which the tool may be the limit.
const nearCeiling = 0.5

// Ceiling is how many messages per second the tool reaches on this machine,
// with the loopback broker and a large window, at a case's QoS, payload and
// transport, and how much of that the case has reached.
type Ceiling struct {
	MessagesPerSec float64 `json:"messages_per_sec"`
	Share          float64 `json:"share"` // of it, 0.12 for 12 %
	Calibration    string  `json:"calibration"`
}

// staleError says why a calibration does not apply to a run.
type staleError struct{ What, Calibrated, Here string }

func (e *staleError) Error() string {
	return fmt.Sprintf("the calibration was made with %s %s, this run has %s", e.What, absent(e.Calibrated), absent(e.Here))
}

// CheckCalibration returns an error unless the calibration cal was made by the same
// version on the same kind of machine as r: processor, cores, GOMAXPROCS, version
// and commit.
func CheckCalibration(cal, r *Report) error {
	for _, k := range []struct{ what, calibrated, here string }{
		{"processor", cal.Environment.CPU, r.Environment.CPU},
		{"cores", strconv.Itoa(cal.Environment.Cores), strconv.Itoa(r.Environment.Cores)},
		{"GOMAXPROCS", strconv.Itoa(cal.Environment.GOMAXPROCS), strconv.Itoa(r.Environment.GOMAXPROCS)},
		{"version", cal.Tool.Version, r.Tool.Version},
		{"commit", cal.Tool.Commit, r.Tool.Commit},
	} {
		if k.calibrated != k.here {
			return &staleError{k.what, k.calibrated, k.here}
		}
	}
	return nil
}

// AddCeilings sets the ceiling of every case of r that cal covers, and adds a warning
// to cases that come near it. A run against the embedded broker is compared with the
// rate that engine and broker reach in one process, any other run with the rate that
// they reach in two.
func AddCeilings(cal, r *Report) {
	place := PlaceOwn
	if r.Target.Embedded {
		place = PlaceIn
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		rate := ceilingOf(cal, c, place)
		if rate <= 0 || c.Summary.MessagesPerSec == nil {
			continue
		}
		c.Ceiling = &Ceiling{MessagesPerSec: rate, Share: *c.Summary.MessagesPerSec / rate, Calibration: cal.Run.ID}
		if c.Ceiling.Share > nearCeiling {
			c.Warnings = append(c.Warnings, nearWarning(c))
		}
	}
}

func nearWarning(c *Case) Warning {
	return Warning{
		Code: CodeNearCeiling,
		Message: fmt.Sprintf("%.0f %% of the %s msg/s that this tool reaches on this machine at qos=%s/payload=%s",
			100*c.Ceiling.Share, FormatFloat(c.Ceiling.MessagesPerSec, 0), c.param("qos"), c.param("payload")),
		Hint: "the tool itself may be the limit: use a second machine, or compare CPU time",
	}
}

func (c *Case) param(key string) string {
	i := slices.IndexFunc(c.Params, func(p Param) bool { return p.Key == key })
	if i < 0 {
		return ""
	}
	return c.Params[i].Value
}

// leastScaled is the smallest payload whose cost is mostly that of its bytes.
const leastScaled = 1024

// point is the cost of a message at one payload.
type point struct{ bytes, ns float64 }

// ceilingOf is the ceiling for c in messages per second, 0 if cal does not cover it.
// The cost of a message is interpolated linearly between two payloads, grows with the
// bytes beyond the largest payload, and is constant below the smallest one: the real
// cost exceeds this by noise only.
func ceilingOf(cal *Report, c *Case, place string) float64 {
	bytes, err := strconv.ParseFloat(c.param("payload"), 64)
	if err != nil {
		return 0
	}
	ps := pointsFor(cal, c, place)
	if len(ps) == 0 {
		return 0
	}
	last := ps[len(ps)-1]
	switch at := slices.IndexFunc(ps, func(p point) bool { return p.bytes >= bytes }); {
	case at < 0 && last.bytes < leastScaled:
		return 0
	case at < 0:
		return 1e9 / (last.ns * bytes / last.bytes)
	case at == 0:
		return 1e9 / ps[0].ns
	default:
		a, b := ps[at-1], ps[at]
		return 1e9 / (a.ns + (b.ns-a.ns)*(bytes-a.bytes)/(b.bytes-a.bytes))
	}
}

// BestPerSec is the messages per second of the fastest actual iteration, 0 if there
// is none. A ceiling is the best that was reached: other rounds may have had to share
// the machine.
func (c *Case) BestPerSec() float64 {
	if c.Summary.MinNS == nil || *c.Summary.MinNS <= 0 {
		return 0
	}
	return 1e9 / *c.Summary.MinNS / float64(max(c.OperationsPerMessage, 1))
}

// pointsFor are the costs at the calibrated payloads, ascending.
func pointsFor(cal *Report, c *Case, place string) (ps []point) {
	for i := range cal.Cases {
		k := &cal.Cases[i]
		best := k.BestPerSec()
		bytes, err := strconv.ParseFloat(k.param("payload"), 64)
		if err != nil || best <= 0 || k.param(ParamWork) != WorkEngine || k.param(ParamPlace) != place ||
			k.param("qos") != c.param("qos") || transportOf(k) != transportOf(c) {
			continue
		}
		at := slices.IndexFunc(ps, func(p point) bool { return p.bytes == bytes })
		if at < 0 {
			ps = append(ps, point{bytes, 1e9 / best})
			continue
		}
		ps[at].ns = min(ps[at].ns, 1e9/best) // several protocols: the cheapest
	}
	slices.SortFunc(ps, func(a, b point) int { return int(a.bytes - b.bytes) })
	return ps
}

// transportOf is the case's transport, TCP if its parameters name none.
func transportOf(c *Case) string {
	if t := c.param("transport"); t != "" {
		return t
	}
	return TransportTCP
}
