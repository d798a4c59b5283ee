// Package cputime is the CPU time that this process has taken so far.
package cputime

import "time"

// Total is user and system time in one.
func Total() time.Duration {
	user, system := Now()
	return user + system
}
