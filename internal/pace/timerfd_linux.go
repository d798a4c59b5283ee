package pace

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerFD waits for a timerfd through the runtime's poller.
type timerFD struct {
	file *os.File
	raw  syscall.RawConn
	arm  func(fd uintptr) // settime as a value, so that wait allocates nothing
	spec unix.ItimerSpec
	err  error
	buf  [8]byte // read from the timerfd: how often it has expired
}

func newTimerFD() (*timerFD, error) {
	// os.NewFile uses the poller only for a non-blocking descriptor.
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

// wait arms the timer, then reads until it expires. Control holds the descriptor open:
// stop cannot close it, nor the system reuse its number, while the timer is set.
func (t *timerFD) wait(d time.Duration) bool {
	t.spec.Value = unix.NsecToTimespec(int64(d))
	if t.raw.Control(t.arm) != nil || t.err != nil {
		return false
	}
	_, err := t.file.Read(t.buf[:])
	return err == nil
}

// stop closes the descriptor, which ends a read in progress.
func (t *timerFD) stop() { _ = t.file.Close() }
