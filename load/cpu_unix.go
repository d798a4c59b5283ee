//go:build unix

package load

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of this process.
func cpuTime() (user, system time.Duration) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano()), time.Duration(r.Stime.Nano())
}
