//go:build !linux

package pace

import "errors"

// newTimerFD fails: only Linux has timerfds.
func newTimerFD() (*sleepTimer, error) { return nil, errors.ErrUnsupported }
