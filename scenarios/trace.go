package scenarios

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/file"
	"github.com/mqttload/mqttload/internal/text"
)

const (
	maxTraceRows = 10_000_000
	// traceSteps is the number of stages of one rate that a trace is cut into: the
	// precision of its times.
	traceSteps = 1000
)

// parseTrace reads a recorded trace: CSV whose first row names the columns time (a
// duration, or seconds, from any origin) and size (bytes). Each further row is one
// message, sorted by time.
func parseTrace(path, dir string) (Payload, error) {
	p := Payload{Kind: PayloadTrace, Name: "trace:" + path, path: resolve(dir, path)}
	fail := func(err error) (Payload, error) { return p, fmt.Errorf("trace %s: %w", text.Quote(path), err) }
	f, err := file.Open(p.path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	times, sizes, err := readTrace(f)
	if err != nil {
		return fail(err)
	}
	sizes.least, sizes.most = slices.Min(sizes.list), slices.Max(sizes.list)
	p.sizes, p.Size = sizes, sizes.most
	if p.stages = traceStages(times); stagesTime(p.stages) > MaxDuration {
		return fail(fmt.Errorf("is longer than %s", text.Duration(MaxDuration)))
	}
	return p, nil
}

func readTrace(r io.Reader) (times []time.Duration, z *sizes, err error) {
	rows := csv.NewReader(skipMark(bufio.NewReader(r)))
	rows.ReuseRecord = true
	head, err := rows.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	timeAt, sizeAt := slices.Index(head, "time"), slices.Index(head, "size")
	if timeAt < 0 || sizeAt < 0 {
		return nil, nil, errors.New("line 1: the first row must name the columns time and size")
	}
	z = &sizes{}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		line, _ := rows.FieldPos(0)
		at, err := parseOffset(row[timeAt])
		if err == nil && len(times) > 0 && at < times[len(times)-1] {
			err = errors.New("time goes back: sort the rows")
		}
		size, sizeErr := parseSize(row[sizeAt])
		if err = errors.Join(err, sizeErr); err == nil && len(times) == maxTraceRows {
			err = fmt.Errorf("more than %d rows", maxTraceRows)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
		times, z.list = append(times, at), append(z.list, size)
	}
	if len(times) == 0 {
		return nil, nil, errors.New("has no rows")
	}
	return times, z, nil
}

// parseOffset reads "1.5s", or "1.5" as seconds.
func parseOffset(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if isNumber(s) {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s is not a time: write seconds such as 0.25, or a duration such as 250ms", text.Quote(s))
	}
	return d, nil
}

// traceStages cuts the trace into steps of one rate each, of at least 1 ms. It ends
// one average gap after the last message.
func traceStages(times []time.Duration) []Stage {
	first, n := times[0], len(times)
	length := times[n-1] - first
	if n > 1 {
		length += length / time.Duration(n-1)
	}
	step := max(length/traceSteps, time.Millisecond)
	counts := make([]int, max(1, int(math.Ceil(float64(length)/float64(step)))))
	for _, at := range times {
		counts[min(int((at-first)/step), len(counts)-1)]++
	}
	var stages []Stage
	for _, k := range counts {
		rate := float64(k) / step.Seconds()
		if i := len(stages) - 1; i >= 0 && stages[i].From == rate {
			stages[i].Duration += step
			continue
		}
		stages = append(stages, Stage{step, rate, rate})
	}
	return stages
}

func stagesTime(stages []Stage) (sum time.Duration) {
	for _, st := range stages {
		sum += st.Duration
	}
	return sum
}

// settleTrace takes the stages of the load from the trace.
func (s *Scenario) settleTrace(c *Case, fail failer) {
	l := &c.Load
	p := l.asked.pace
	switch {
	case l.Topics*l.Publishers != 1:
		fail("payload", "a trace has one publisher: ask for one topic with one publisher, not %d", l.Topics*l.Publishers)
	case p.totalRate(l) > 0 || p.steps != nil || p.ramp > 0 || p.duration > 0 || l.Messages > 0 || l.Arrival != Constant:
		fail("payload", "a trace sets both duration and rate: remove rate, interval, stages, ramp, duration, messages and arrival")
	default:
		if s.places["warmup"].flag == "" {
			l.Warmup = 0
		}
		l.Stages = c.Payload.stages
		s.settleWindows(l, stagesTime(l.Stages), fail)
	}
}
