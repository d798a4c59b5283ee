//go:build !unix

package calibrate

import "time"

// cpuTime is not known here: what rests on it is not measured.
func cpuTime() time.Duration { return 0 }
