package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/internal/preflight"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/scenarios"
)

// spareDescriptors is the number of files that the process needs in addition to
// its connections: standard streams, reports, listeners, the poller.
const spareDescriptors = 64

// needs are the resources that a case takes.
type needs struct {
	descriptors               int
	memory                    float64 // bytes, a rough upper bound
	bytesPerSecond, delivered float64 // of payload, at an open loop's highest rate
}

// Memory in bytes of the account of one message in flight, and of one time of
// sending.
const (
	accountMemory = 64
	timeMemory    = 8
)

// needsOf adds up what c needs. With the embedded broker, both ends of each
// connection are in this process.
func needsOf(c scenarios.Case, embedded bool) needs {
	l := &c.Load
	ends, connections := 1, l.Connections()
	if embedded {
		ends = 2
	}
	n := needs{descriptors: ends * connections}
	idle := float64(c.Transport.Memory())
	flows := float64(l.Topics) * float64(l.Publishers)
	// A publisher holds its message and one being written, a subscriber one being read.
	buffers := float64(2*l.PublisherClients()+l.SubscriberClients()) * float64(c.Payload.Max())
	n.memory = float64(ends) * (float64(connections)*idle + buffers)
	n.memory += flows * float64(max(1, l.Subscribers)) * float64(l.Inflight) * accountMemory
	if len(l.Stages) == 0 {
		n.memory += float64(l.PublisherClients()) * float64(load.SendTimes(&c)) * timeMemory
	}
	if len(l.Stages) > 0 && l.Shape.Publishes() {
		top := 0.0
		for _, st := range l.Stages {
			top = max(top, st.From, st.To)
		}
		copies := float64(l.Subscribers)
		if l.Share != "" {
			copies = 1
		}
		n.bytesPerSecond = top * c.Payload.Mean()
		n.delivered = n.bytesPerSecond * copies
	}
	return n
}

// descriptors is the largest number of files that any case keeps open.
func descriptors(cases []scenarios.Case, embedded bool) uint64 {
	most := 0
	for _, c := range cases {
		most = max(most, needsOf(c, embedded).descriptors)
	}
	return uint64(most) + spareDescriptors
}

// checkHost refuses a run that would end in "too many open files" or "cannot
// assign requested address", and returns the checks that deserve a warning.
func checkHost(cases []scenarios.Case, embedded bool, h preflight.Host, bad *Faults) (warnings []preflight.Line) {
	for _, l := range h.Check(cases, descriptors(cases, embedded)) {
		switch l.Status {
		case preflight.Fail:
			bad.Usage(l.Hint, "%s", l.Message)
		case preflight.Warn:
			warnings = append(warnings, l)
		}
	}
	return warnings
}

// thisHost raises the limit of open files and returns the limits of this machine.
func thisHost() preflight.Host {
	h := preflight.ThisHost()
	h.Soft, h.Hard = RaiseNoFile(), hardNoFile()
	return h
}

// checkMemory refuses a run that would use up the memory of the machine.
// available is in bytes, 0 if unknown.
func checkMemory(cases []scenarios.Case, embedded bool, available float64, bad *Faults) {
	for _, c := range cases {
		if n := needsOf(c, embedded); available > 0 && n.memory > available {
			bad.Usage("ask for fewer clients, a smaller payload or a smaller --inflight; --force runs it anyway",
				"%s needs about %s of memory, but only %s is available", c.ID, siBytes(n.memory), siBytes(available))
			return
		}
	}
}

// availableMemory is the memory that programs can still use, as the kernel
// estimates it, in bytes; 0 if unknown.
func availableMemory() float64 {
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kib * 1024
		}
	}
	return 0
}

// siBytes prints bytes with a decimal unit: "2.0 TB".
func siBytes(v float64) string {
	const units = "kMGTPE"
	if v < 1000 {
		return strconv.FormatFloat(v, 'f', -1, 64) + " B"
	}
	i := -1
	for ; v >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	decimals := 0
	if v < 10 {
		decimals = 1
	}
	return fmt.Sprintf("%.*f %cB", decimals, v, units[i])
}
