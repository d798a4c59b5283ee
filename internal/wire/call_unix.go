//go:build unix && (!linux || race)

package wire

import "syscall"

// The race detector sees what these order, and not what RawSyscall does.
func read(fd int, p []byte) (int, error)  { return syscall.Read(fd, p) }
func write(fd int, p []byte) (int, error) { return syscall.Write(fd, p) }
