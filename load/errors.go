package load

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
)

// kindOf and reasonOf classify a failure so that the same fault of many
// clients is counted under one name.
func kindOf(err error) string {
	if kind := dial.KindOf(err); kind != "" {
		return kind
	}
	var sub *mqtt.SubscribeError
	var limit *mqtt.LimitError
	var proto *mqtt.ProtocolError
	switch {
	case errors.As(err, &sub):
		return "subscribe"
	case errors.As(err, &limit):
		return "limit"
	case errors.As(err, &proto):
		return "protocol"
	case errors.Is(err, ErrAllLost):
		return "disconnect"
	case errors.Is(err, ErrNothingReceived), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "connect"
}

func reasonOf(err error) string {
	var c *dial.Error
	var sub *mqtt.SubscribeError
	switch {
	case errors.As(err, &c):
		return c.Cause()
	case errors.As(err, &sub):
		// Without the filter, which every client may have another of.
		return fmt.Sprintf("subscription refused: %s (0x%02X)", sub.Code, byte(sub.Code))
	}
	return err.Error()
}

// Unreachable reports whether err means that the broker could not be reached
// or refused to be measured, as opposed to a run that went wrong later.
func Unreachable(err error) bool {
	var c *dial.Error
	var sub *mqtt.SubscribeError
	var limit *mqtt.LimitError
	return errors.As(err, &c) || errors.As(err, &sub) || errors.As(err, &limit)
}

// errorSet counts faults by kind and reason and keeps one example of each.
type errorSet struct {
	mu  sync.Mutex
	set map[[2]string]*result.Error
}

// maxReasons bounds the reasons that are told apart; the rest count as "other".
const maxReasons = 100

func (e *errorSet) add(kind, reason, example string) { e.addN(kind, reason, example, 1) }

func (e *errorSet) addN(kind, reason, example string, n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.set == nil {
		e.set = make(map[[2]string]*result.Error)
	}
	key := [2]string{kind, reason}
	r := e.set[key]
	if r == nil && len(e.set) >= maxReasons {
		key[1] = "other"
		r = e.set[key]
	}
	if r == nil {
		r = &result.Error{Kind: kind, Reason: key[1], Example: example}
		e.set[key] = r
	}
	r.Count += n
}

func (e *errorSet) list() []result.Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]result.Error, 0, len(e.set))
	for _, r := range e.set {
		out = append(out, *r)
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Count != out[j].Count {
			return out[i].Count > out[j].Count
		}
		return out[i].Kind+out[i].Reason < out[j].Kind+out[j].Reason
	})
	return out
}
