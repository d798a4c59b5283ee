//go:build linux && !race

package wire

import (
	"syscall"
	"unsafe"
)

// read and write are system calls on a non-blocking socket. They do not tell the
// scheduler, because they cannot block. Otherwise it would run a monitor thread every
// 20 µs and hand the processor to another thread. That took a fifth of the CPU time
// of a message, which justifies the one use of unsafe.
func read(fd int, p []byte) (int, error)  { return call(syscall.SYS_READ, fd, p) }
func write(fd int, p []byte) (int, error) { return call(syscall.SYS_WRITE, fd, p) }

// call makes a system call with p as the buffer. The garbage collector keeps p in
// place, because its address is taken in the argument list of the call.
func call(trap uintptr, fd int, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
