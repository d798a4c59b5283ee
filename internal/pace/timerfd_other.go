//go:build !linux

package pace

import "errors"

func newTimerFD() (*sleepTimer, error) { return nil, errors.ErrUnsupported }
