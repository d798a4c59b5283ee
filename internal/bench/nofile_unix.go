//go:build unix

package bench

import "syscall"

// RaiseNoFile raises this process's limit of open files as far as allowed and
// returns the new limit; 0 if unknown.
func RaiseNoFile() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	if l.Cur < l.Max {
		raised := l
		raised.Cur = raised.Max
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
			l = raised
		}
	}
	return uint64(l.Cur)
}

// hardNoFile is the highest value of the limit; 0 if unknown.
func hardNoFile() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Max)
}
