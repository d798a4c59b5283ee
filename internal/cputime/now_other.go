//go:build !unix

package cputime

import "time"

// Now returns zeros: this system does not tell.
func Now() (user, system time.Duration) { return 0, 0 }
