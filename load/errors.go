package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
	"sync"
	"syscall"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/tlsconf"
)

// connectError is a connection that did not come about.
type connectError struct {
	url string
	way []string // the servers that have referred the client there
	tls bool
	err error
}

func (e *connectError) Error() string {
	var referral *referralError
	if len(e.way) == 0 || errors.As(e.err, &referral) { // that one names them
		return fmt.Sprintf("connect %s: %s", e.url, e.cause())
	}
	return fmt.Sprintf("connect %s (referred to by %s): %s", e.url, strings.Join(e.way, ", then by "), e.cause())
}
func (e *connectError) Unwrap() error { return e.err }

// cause says why, and what a broker that just hangs up may mean by it: one that
// wants TLS takes a plain CONNECT for garbage, and one that wants a client
// certificate says so only after the handshake, if it is heard at all.
func (e *connectError) cause() string {
	gone := errors.Is(e.err, mqtt.ErrNoConnack) || errors.Is(e.err, syscall.ECONNRESET) || errors.Is(e.err, syscall.EPIPE)
	cause := causeOf(e.err)
	switch {
	case gone && e.tls:
		return cause + "; after the TLS handshake this is how a server refuses a missing or unknown client certificate"
	case gone:
		return cause + "; does this port speak TLS?"
	}
	return cause
}

// tlsError is a handshake that failed.
type tlsError struct{ err error }

func (e *tlsError) Error() string { return tlsconf.Explain(e.err) }
func (e *tlsError) Unwrap() error { return e.err }

// causeOf says why a connection did not come about, without addresses, which
// the caller names.
func causeOf(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	var te *tlsError
	var sys syscall.Errno
	switch {
	case errors.Is(err, mqtt.ErrAwaitConnack) && errors.Is(err, errConnectTimeout):
		return "no CONNACK within the connect timeout"
	case errors.Is(err, errConnectTimeout):
		return errConnectTimeout.Error()
	case errors.As(err, &te):
		return te.Error()
	case isAlert(err):
		// TLS 1.3: what the server thinks of our certificate comes after the handshake.
		return tlsconf.Explain(err)
	case errors.As(err, &dns) && !dns.IsNotFound:
		return fmt.Sprintf("cannot resolve %q: %s", dns.Name, dns.Err)
	case errors.As(err, &dns):
		return fmt.Sprintf("cannot resolve %q: no such host", dns.Name)
	case errors.As(err, &op) && errors.As(op.Err, &sys):
		return sys.Error()
	case errors.As(err, &op) && errors.Is(op.Err, os.ErrDeadlineExceeded):
		return errConnectTimeout.Error()
	}
	return err.Error()
}

// isAlert reports whether err is a TLS alert of the broker. crypto/tls gives it
// no exported type outside of QUIC, only this operation.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// kindOf and reasonOf classify a failure so that the same fault of many
// clients is counted under one name.
func kindOf(err error) string {
	var refused *mqtt.RefusedError
	var referral *referralError
	var sub *mqtt.SubscribeError
	var limit *mqtt.LimitError
	var proto *mqtt.ProtocolError
	var te *tlsError
	switch {
	case errors.As(err, &refused), errors.As(err, &referral):
		return "connack"
	case errors.Is(err, mqtt.ErrAwaitConnack) && errors.Is(err, errConnectTimeout):
		return "connack timeout"
	case errors.As(err, &sub):
		return "subscribe"
	case errors.As(err, &limit):
		return "limit"
	case errors.As(err, &proto):
		return "protocol"
	case errors.As(err, &te), isAlert(err):
		return "tls"
	case errors.Is(err, ErrAllLost):
		return "disconnect"
	case errors.Is(err, ErrNothingReceived), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "connect"
}

func reasonOf(err error) string {
	var c *connectError
	var sub *mqtt.SubscribeError
	switch {
	case errors.As(err, &c):
		return c.cause()
	case errors.As(err, &sub):
		// Without the filter, which every client may have another of.
		return fmt.Sprintf("subscription refused: %s (0x%02X)", sub.Code, byte(sub.Code))
	}
	return err.Error()
}

// Unreachable reports whether err means that the broker could not be reached
// or refused to be measured, as opposed to a run that went wrong later.
func Unreachable(err error) bool {
	var c *connectError
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
