//go:build !unix

package load

import "time"

// cpuTime is not known on this system; 0 stands for that in the report.
func cpuTime() (user, system time.Duration) { return 0, 0 }
