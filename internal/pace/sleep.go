package pace

import (
	"sync"
	"time"
)

// sleepTimer waits on one runtime timer.
type sleepTimer struct {
	t    *time.Timer
	done chan struct{}
	once sync.Once
}

func newSleepTimer() *sleepTimer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &sleepTimer{t: t, done: make(chan struct{})}
}

func (s *sleepTimer) wait(d time.Duration) bool {
	s.t.Reset(d)
	select {
	case <-s.done:
		s.t.Stop()
		return false
	case <-s.t.C:
		return true
	}
}

func (s *sleepTimer) stop() { s.once.Do(func() { close(s.done) }) }
