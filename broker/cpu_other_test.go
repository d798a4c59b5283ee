//go:build !unix

package broker

import "time"

// cpuTime is not known here: the benchmark reports 0.
func cpuTime() time.Duration { return 0 }
