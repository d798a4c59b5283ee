package dial

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// Error is a failed attempt to connect. Its text names the server, the servers that
// referred the client there, and the cause.
type Error struct {
	url string
	way []string // the servers that have referred the client there
	tls bool
	err error
}

// Error returns server and cause in one line.
func (e *Error) Error() string {
	var referral *referralError
	if len(e.way) == 0 || errors.As(e.err, &referral) { // that one names them
		return fmt.Sprintf("connect %s: %s", e.url, e.Cause())
	}
	return fmt.Sprintf("connect %s (referred to by %s): %s", e.url, strings.Join(e.way, ", then by "), e.Cause())
}

// Unwrap returns the error of the step that failed.
func (e *Error) Unwrap() error { return e.err }

// Cause returns why the attempt failed, without the server. If the broker closed the
// connection without an answer, it adds the usual reason: a TLS port rejects a plain
// CONNECT, and a missing client certificate is rejected only after the handshake.
func (e *Error) Cause() string {
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

// Error returns the cause and a remedy in one line.
func (e *tlsError) Error() string { return tlsconf.Explain(e.err, flagOf) }

// Unwrap returns the error of crypto/tls, or of the connection under it.
func (e *tlsError) Unwrap() error { return e.err }

// flagOf names a field in a remedy: flags override whatever a file says.
func flagOf(f tlsconf.Field) string { return scenarios.Flag(string(f)) }

// causeOf returns why an attempt to connect failed, without addresses: the caller
// names them.
func causeOf(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	var te *tlsError
	var sys syscall.Errno
	switch {
	case errors.Is(err, mqtt.ErrAwaitConnack) && errors.Is(err, mqtt.ErrConnectTimeout):
		return "no CONNACK within the connect timeout"
	case errors.Is(err, mqtt.ErrConnectTimeout):
		return mqtt.ErrConnectTimeout.Error()
	case errors.As(err, &te):
		return te.Error()
	case isAlert(err):
		// With TLS 1.3 the server rejects a client certificate after the handshake.
		return tlsconf.Explain(err, flagOf)
	case errors.As(err, &dns) && !dns.IsNotFound:
		return fmt.Sprintf("cannot resolve %q: %s", dns.Name, dns.Err)
	case errors.As(err, &dns):
		return fmt.Sprintf("cannot resolve %q: no such host", dns.Name)
	case errors.As(err, &op) && errors.As(op.Err, &sys):
		return sys.Error()
	case errors.As(err, &op) && errors.Is(op.Err, os.ErrDeadlineExceeded):
		return mqtt.ErrConnectTimeout.Error()
	}
	return err.Error()
}

// isAlert reports whether err is a TLS alert of the broker. crypto/tls gives it
// no exported type outside of QUIC, only this operation.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// KindOf returns the kind under which a report counts err, a failed attempt to
// connect, or "" if the fault is not one of connecting.
func KindOf(err error) result.ErrorKind {
	var refused *mqtt.RefusedError
	var referral *referralError
	var te *tlsError
	switch {
	case errors.As(err, &refused), errors.As(err, &referral):
		return result.ErrorConnack
	case errors.Is(err, mqtt.ErrAwaitConnack) && errors.Is(err, mqtt.ErrConnectTimeout):
		return result.ErrorConnackTimeout
	case errors.As(err, &te), isAlert(err):
		return result.ErrorTLS
	}
	return ""
}

// CauseOf returns the cause by which a report chooses a remedy for err, or "" if the
// kind alone decides.
func CauseOf(err error) result.ErrorCause {
	var e *Error
	var refused *mqtt.RefusedError
	var end *mqtt.DisconnectedError
	var referral *referralError
	var proto *mqtt.ProtocolError
	switch {
	case errors.As(err, &referral):
		return result.CauseReference
	case errors.As(err, &refused) && refused.Temporary():
		return result.CauseBusy
	case errors.As(err, &refused):
		return causeOfCode(refused.Code, refused.ServerReference)
	case errors.As(err, &e) && len(e.way) > 0:
		return result.CauseReference
	case errors.As(err, &end):
		return causeOfCode(end.Code, end.ServerReference)
	case errors.As(err, &proto) && proto.Code == packet.ReasonReceiveMaximumExceeded:
		return result.CauseReceiveMaximum
	case StepOf(err) == "dns":
		return result.CauseName
	case errors.Is(err, syscall.ECONNREFUSED):
		return result.CauseNotListening
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return result.CauseNoLocalPort
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return result.CauseOpenFiles
	}
	return ""
}

// causeOfCode is the cause of a CONNACK or DISCONNECT.
func causeOfCode(code packet.ReasonCode, reference string) result.ErrorCause {
	switch {
	case reference != "":
		return result.CauseReferred
	case code == packet.ReasonUseAnotherServer, code == packet.ReasonServerMoved:
		return result.CauseSentAway
	case code == packet.ReasonBadAuthenticationMethod:
		return result.CauseAuthMethod
	}
	return ""
}

// StepOf returns the step in which err occurred: "dns", "tcp" or "tls".
func StepOf(err error) string {
	var dns *net.DNSError
	var gaveUp *resolveError
	var te *tlsError
	switch {
	case errors.As(err, &dns), errors.As(err, &gaveUp):
		return "dns"
	case errors.As(err, &te), isAlert(err):
		return "tls"
	}
	return "tcp"
}
