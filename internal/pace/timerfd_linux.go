package pace

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerFD is a timerfd that the runtime's poller waits for.
type timerFD struct {
	file *os.File
	raw  syscall.RawConn
	arm  func(fd uintptr) // settime, bound once: a wait then allocates nothing
	spec unix.ItimerSpec
	err  error
	buf  [8]byte // what a read of a timerfd returns: how often it has run out
}

func newTimerFD() (*timerFD, error) {
	// Only a descriptor that is non-blocking goes to the poller.
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	t := &timerFD{file: os.NewFile(uintptr(fd), "timerfd")}
	t.arm = t.settime
	if t.raw, err = t.file.SyscallConn(); err != nil {
		_ = t.file.Close()
		return nil, err
	}
	return t, nil
}

func (t *timerFD) settime(fd uintptr) {
	t.err = unix.TimerfdSettime(int(fd), 0, &t.spec, nil)
}

// wait arms the timer through Control, which keeps stop from closing, and the
// system from giving away, the descriptor meanwhile.
func (t *timerFD) wait(d time.Duration) bool {
	t.spec.Value = unix.NsecToTimespec(int64(d))
	if t.raw.Control(t.arm) != nil || t.err != nil {
		return false
	}
	_, err := t.file.Read(t.buf[:])
	return err == nil
}

// stop closes the descriptor, which ends a read that waits.
func (t *timerFD) stop() { _ = t.file.Close() }
