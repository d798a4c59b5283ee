package mqtt

import (
	"errors"
	"fmt"

	"github.com/mqttload/mqttload/internal/wire"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// Reasons why a connection has ended or a publish has failed, for errors.Is.
var (
	// ErrClosed means that this side has closed or disconnected.
	ErrClosed = wire.ErrClosed
	// ErrKeepAlive means that the broker sent nothing for one and a half keep-alive
	// intervals, despite a PINGREQ.
	ErrKeepAlive = errors.New("keep alive: no answer from the broker")
	// ErrAwaitConnack means that the connection or ctx ended before CONNACK.
	ErrAwaitConnack = errors.New("wait for CONNACK")
	// ErrNoConnack means that the broker closed the connection instead of answering
	// CONNECT.
	ErrNoConnack = errors.New("the broker closed the connection without a CONNACK")
	// ErrWantsTLS means that the broker answered CONNECT with a TLS alert.
	ErrWantsTLS = errors.New("the broker answered with a TLS alert: this port wants TLS")
	// ErrWindowFull means that ctx ended while a publish waited for room.
	ErrWindowFull = errors.New("in-flight window full")
)

// A RefusedError is a CONNACK with an error code.
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

// Error names the code, and the broker's reason and server reference if it gave any.
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

// Error names the code, the broker's reason and server reference if it gave any, and
// for some codes a remedy.
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

// OurFault reports whether the broker blames this client: for a malformed packet,
// a protocol error, or a limit of its CONNACK that was exceeded.
func (e *DisconnectedError) OurFault() bool {
	switch e.Code {
	case packet.ReasonMalformedPacket, packet.ReasonProtocolError, packet.ReasonReceiveMaximumExceeded,
		packet.ReasonTopicAliasInvalid, packet.ReasonPacketTooLarge:
		return true
	}
	return false
}

// Is reports true for [ErrTakenOver] if the code is Session taken over.
func (e *DisconnectedError) Is(target error) bool {
	return target == ErrTakenOver && e.Code == packet.ReasonSessionTakenOver
}

// A ProtocolError means that the broker has sent something that the standard
// forbids.
type ProtocolError struct {
	Code packet.ReasonCode // of the client's DISCONNECT
	Err  error
}

// Error returns the text of Err, after the words "protocol error of the broker".
func (e *ProtocolError) Error() string { return "protocol error of the broker: " + e.Err.Error() }

// Unwrap returns Err.
func (e *ProtocolError) Unwrap() error { return e.Err }

func protocolErrorf(code packet.ReasonCode, format string, args ...any) error {
	return &ProtocolError{code, fmt.Errorf(format, args...)}
}

// malformed makes a ProtocolError of a decoding error of package packet.
func malformed(err error) error {
	code := packet.ReasonMalformedPacket
	var m *packet.MalformedError
	if errors.As(err, &m) {
		code = m.Code
	}
	return &ProtocolError{code, err}
}

// A LimitError means that the client did not send a packet because the broker's
// CONNACK does not allow it.
type LimitError struct{ Msg string }

// Error returns Msg.
func (e *LimitError) Error() string { return e.Msg }

func limitErrorf(format string, args ...any) error {
	return &LimitError{fmt.Sprintf(format, args...)}
}
