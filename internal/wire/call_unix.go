//go:build unix && (!linux || race)

package wire

import "syscall"

// The race detector knows the order that these calls establish, but not that of
// RawSyscall.
func read(fd int, p []byte) (int, error)  { return syscall.Read(fd, p) }
func write(fd int, p []byte) (int, error) { return syscall.Write(fd, p) }
