//go:build !linux

package pace

func newTimerFD() (*sleepTimer, error) { return nil, errUnsupported }
