package mqtt

import (
	"errors"
	"fmt"

	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// Errors of a connection's end that callers tell apart.
var (
	// ErrClosed: this side has closed or disconnected.
	ErrClosed = wire.ErrClosed
	// ErrKeepAlive: the peer sent nothing within the keep-alive after a PINGREQ.
	ErrKeepAlive = errors.New("keep alive: no answer from the broker")
	// ErrAwaitConnack: the connection ended, or time was up, before a CONNACK.
	ErrAwaitConnack = errors.New("wait for CONNACK")
	// ErrNoConnack: the broker closed the connection instead of answering CONNECT.
	ErrNoConnack = errors.New("the broker closed the connection without a CONNACK")
	// ErrWantsTLS: the broker answered CONNECT with a TLS alert.
	ErrWantsTLS = errors.New("the broker answered with a TLS alert: this port wants TLS")
	// ErrWindowFull: a publish had to wait but its context has ended.
	ErrWindowFull = errors.New("in-flight window full")
)

// A RefusedError is a CONNACK that refuses the connection.
type RefusedError struct {
	Version         packet.Version
	Code            packet.ReasonCode
	Reason          string // Reason String property, if any
	ServerReference string // with codes 0x9C and 0x9D
}

// Name returns the specification's name of the code.
func (e *RefusedError) Name() string {
	if e.Version == packet.V5 {
		return e.Code.String()
	}
	return packet.ConnackReturnString(e.Code)
}

func (e *RefusedError) Error() string {
	s := fmt.Sprintf("refused by the broker: %s (0x%02X)", e.Name(), byte(e.Code))
	if e.Reason != "" {
		s += fmt.Sprintf(": %q", e.Reason)
	}
	if e.ServerReference != "" {
		s += fmt.Sprintf(", it refers to %q", e.ServerReference)
	}
	return s
}

// A DisconnectedError is a DISCONNECT that the broker sent. [MQTT5 3.14]
type DisconnectedError struct {
	Code            packet.ReasonCode
	Reason          string // Reason String property, if any
	ServerReference string // with codes 0x9C and 0x9D
}

func (e *DisconnectedError) Error() string {
	s := fmt.Sprintf("disconnected by the broker: %s (0x%02X)", e.Code, byte(e.Code))
	if e.Reason != "" {
		s += fmt.Sprintf(": %q", e.Reason)
	}
	switch {
	case e.ServerReference != "":
		s += fmt.Sprintf(", it refers to %q", e.ServerReference)
	case e.Code == packet.ReasonSessionTakenOver:
		s += ": another client uses this id; give every client its own"
	case e.OurFault():
		s += "; if this client is at fault, please report it"
	}
	return s
}

// OurFault reports whether the broker blames what this client has sent: a
// malformed packet, a protocol error, or a limit of its CONNACK not kept.
func (e *DisconnectedError) OurFault() bool {
	switch e.Code {
	case packet.ReasonMalformedPacket, packet.ReasonProtocolError, packet.ReasonReceiveMaximumExceeded,
		packet.ReasonTopicAliasInvalid, packet.ReasonPacketTooLarge:
		return true
	}
	return false
}

// Is makes a Session taken over be [ErrTakenOver].
func (e *DisconnectedError) Is(target error) bool {
	return target == ErrTakenOver && e.Code == packet.ReasonSessionTakenOver
}

// A ProtocolError is something that the broker must not send. Code is what the
// client said in its DISCONNECT.
type ProtocolError struct {
	Code packet.ReasonCode
	Err  error
}

func (e *ProtocolError) Error() string { return "protocol error of the broker: " + e.Err.Error() }
func (e *ProtocolError) Unwrap() error { return e.Err }

func protocolErrorf(code packet.ReasonCode, format string, args ...any) error {
	return &ProtocolError{code, fmt.Errorf(format, args...)}
}

// malformed wraps an error of package packet about what the broker sent.
func malformed(err error) error {
	code := packet.ReasonMalformedPacket
	var m *packet.MalformedError
	if errors.As(err, &m) {
		code = m.Code
	}
	return &ProtocolError{code, err}
}

// A LimitError refuses locally what the broker's CONNACK does not allow.
type LimitError struct{ Msg string }

func (e *LimitError) Error() string { return e.Msg }

func limitErrorf(format string, args ...any) error {
	return &LimitError{fmt.Sprintf(format, args...)}
}
