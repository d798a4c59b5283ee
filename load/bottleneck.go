package load

import (
	"fmt"
	"runtime"

	"github.com/mqttload/mqttload/result"
)

// Own CPU above this share of what the process may use makes the generator the
// limit; a median latency this many times the least means that messages queue.
const (
	cpuLimit   = 0.9
	queueLimit = 3
)

// bottleneck says what limited a closed loop, with the figure that says so;
// nil before anything was measured.
func (c *caseRun) bottleneck(r *result.Case) *result.Bottleneck {
	e2e := r.Latency.EndToEnd
	if c.busy <= 0 {
		return nil
	}
	used := float64(c.cpu.UserNS+c.cpu.SystemNS) / float64(c.busy) / float64(runtime.GOMAXPROCS(0))
	cpu := fmt.Sprintf("CPU %.0f %% of %d cores", 100*used, runtime.GOMAXPROCS(0))
	switch {
	case used >= cpuLimit && c.x.cfg.Embedded:
		return &result.Bottleneck{Kind: "generator", Detail: cpu + ", the embedded broker's included"}
	case used >= cpuLimit:
		return &result.Bottleneck{Kind: "generator", Detail: cpu}
	case e2e == nil:
		return &result.Bottleneck{Kind: "window", Detail: cpu}
	}
	ratio := float64(e2e.P50NS) / float64(max(e2e.MinNS, 1))
	if ratio >= queueLimit {
		return &result.Bottleneck{Kind: "broker", Detail: fmt.Sprintf("the median latency is %.1f times the least: messages queue; own %s", ratio, cpu)}
	}
	return &result.Bottleneck{Kind: "window", Detail: fmt.Sprintf("%d in flight, the median latency is %.1f times the least; own %s", c.window, ratio, cpu)}
}
