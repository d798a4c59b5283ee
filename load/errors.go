package load

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
)

// ErrNothingReceived means that an iteration sent messages and received none of
// them. Going on would measure nothing.
var ErrNothingReceived = errors.New("nothing received")

// ErrAllRejected means that the broker rejected every message of an iteration.
var ErrAllRejected = errors.New("the broker rejected every message")

// ErrAllLost means that every publisher and subscriber pair has lost a
// connection.
var ErrAllLost = errors.New("every publisher and subscriber pair has lost a connection")

// ErrorOf is err as a report counts it: the same fault of many clients has one
// kind, cause and reason.
func ErrorOf(err error) result.Error {
	return result.Error{Kind: kindOf(err), Cause: dial.CauseOf(err), Reason: reasonOf(err), Count: 1, Example: err.Error()}
}

// lossOf is the end of a connection as a report counts it. Before MQTT 5 a broker
// can only close a connection, whatever the reason.
func lossOf(err error, v packet.Version) result.Error {
	e := result.Error{Kind: result.ErrorDisconnect, Cause: dial.CauseOf(err), Reason: mqtt.EndOf(err), Count: 1}
	e.Example = e.Reason
	switch {
	case e.Cause != "" || !mqtt.EndedSilently(err):
	case v == packet.V5:
		e.Cause = result.CauseClosed
	default:
		e.Cause = result.CauseClosedBefore5
	}
	return e
}

// rejectionOf is a message that the broker acknowledged with an error code.
func rejectionOf(code packet.ReasonCode) result.Error {
	e := result.Error{Kind: result.ErrorPublish, Reason: fmt.Sprintf("%s (0x%02X)", code, byte(code)), Count: 1}
	e.Example = string(e.Kind) + ": " + e.Reason
	switch code {
	case packet.ReasonNotAuthorized:
		e.Cause = result.CauseNotAuthorized
	case packet.ReasonQuotaExceeded:
		e.Cause = result.CauseQuota
	case packet.ReasonTopicNameInvalid:
		e.Cause = result.CauseTopicName
	}
	return e
}

func kindOf(err error) result.ErrorKind {
	if kind := dial.KindOf(err); kind != "" {
		return kind
	}
	var sub *mqtt.SubscribeError
	var limit *mqtt.LimitError
	var proto *mqtt.ProtocolError
	switch {
	case errors.As(err, &sub):
		return result.ErrorSubscribe
	case errors.As(err, &limit):
		return result.ErrorLimit
	case errors.As(err, &proto):
		return result.ErrorProtocol
	case errors.Is(err, ErrAllLost):
		return result.ErrorDisconnect
	case errors.Is(err, ErrNothingReceived), errors.Is(err, context.DeadlineExceeded):
		return result.ErrorTimeout
	}
	return result.ErrorConnect
}

func reasonOf(err error) string {
	var c *dial.Error
	var sub *mqtt.SubscribeError
	switch {
	case errors.As(err, &c):
		return c.Cause()
	case errors.As(err, &sub):
		// Without the filter, which may differ from client to client.
		return fmt.Sprintf("subscription refused: %s (0x%02X)", sub.Code, byte(sub.Code))
	}
	return err.Error()
}

// interrupted reports whether err only says that the run was told to end.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
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
	set map[errorKey]*result.Error
}

type errorKey struct {
	kind   result.ErrorKind
	reason string
}

// maxReasons is how many reasons are distinguished; further ones count as
// "other".
const maxReasons = 100

// add counts one fault, or one.Count of them.
func (e *errorSet) add(one result.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.set == nil {
		e.set = make(map[errorKey]*result.Error)
	}
	key := errorKey{one.Kind, one.Reason}
	if e.set[key] == nil && len(e.set) >= maxReasons {
		one.Cause, one.Reason, key.reason = "", "other", "other"
	}
	if r := e.set[key]; r != nil {
		r.Count += one.Count
		return
	}
	e.set[key] = &one
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
		return string(out[i].Kind)+out[i].Reason < string(out[j].Kind)+out[j].Reason
	})
	return out
}

// warnings are what the reader of a case's results should know.
type warnings struct {
	mu   sync.Mutex
	list []result.Warning
}

// add adds a warning once.
func (ws *warnings) add(code, message, hint string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.list {
		if w.Code == code && w.Message == message {
			return
		}
	}
	ws.list = append(ws.list, result.Warning{Code: code, Message: message, Hint: hint})
}
