//go:build linux && !race

package wire

import (
	"syscall"
	"unsafe"
)

// read and write are system calls on a non-blocking socket, made without
// telling the scheduler, which need not know what cannot block: it would start
// a monitor thread that wakes up every 20 µs, and hand the processor on. That
// took a fifth of the CPU time of a message; it is worth the one use of unsafe.
func read(fd int, p []byte) (int, error)  { return call(syscall.SYS_READ, fd, p) }
func write(fd int, p []byte) (int, error) { return call(syscall.SYS_WRITE, fd, p) }

// call passes memory of p, which stays alive and where it is for as long as
// the expression that takes its address.
func call(trap uintptr, fd int, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
