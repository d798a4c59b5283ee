package mqtt

import (
	"context"
	"errors"
	"fmt"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// An Authenticator implements one method of enhanced authentication [MQTT5 4.12],
// for example [SCRAM]. An error that it returns ends the connection. The client
// calls it from one goroutine at a time.
type Authenticator interface {
	// Method returns the Authentication Method, such as "SCRAM-SHA-256".
	Method() string
	// Start begins an exchange and returns its first Authentication Data; nil sends
	// none. It is called for CONNECT and for every reauthentication.
	Start() ([]byte, error)
	// Continue returns the answer to the Authentication Data of an AUTH.
	Continue(data []byte) ([]byte, error)
	// Finish checks the Authentication Data of the packet with which the broker
	// accepts. data is nil if there is none.
	Finish(data []byte) error
}

// ErrNoAuthenticator is returned by [Client.Reauthenticate] without [Config.Auth].
var ErrNoAuthenticator = errors.New("reauthenticate: the connection was made without an authentication method")

// ErrReauthenticate is returned by [Client.Reauthenticate] if the broker does not
// finish the exchange in time.
var ErrReauthenticate = errors.New("reauthenticate: the exchange did not finish in time")

// ErrAuthenticating is returned by [Client.Reauthenticate] during an exchange.
var ErrAuthenticating = errors.New("reauthenticate: an exchange is already in progress")

// authentication is the enhanced authentication of one connection.
type authentication struct {
	Authenticator
	success chan struct{} // closed when Reauthenticate succeeds; nil without one; guarded by Client.mu
}

// startAuth puts the method and its first data into the properties of CONNECT.
func (cfg *Config) startAuth(p *packet.Properties) error {
	if cfg.Version != packet.V5 {
		return fmt.Errorf("connect: the authentication method %s needs MQTT 5", cfg.Auth.Method())
	}
	data, err := cfg.Auth.Start()
	if err != nil {
		return fmt.Errorf("authenticate by %s: %w", cfg.Auth.Method(), err)
	}
	p.AuthMethod, p.AuthData = new(cfg.Auth.Method()), data
	return nil
}

// answerAuth decodes an AUTH and returns the AUTH that answers it, or nil if the
// broker's ends the exchange.
func (c *Client) answerAuth(f packet.Frame) (answer []byte, err error) {
	var p packet.Auth
	if err := p.Decode(f, c.cfg.Version); err != nil {
		return nil, malformed(err)
	}
	if err := c.checkMethod(&p.Properties, "AUTH"); err != nil {
		return nil, err
	}
	if err := c.checkInfo(f.Type(), &p.Properties); err != nil {
		return nil, err
	}
	switch p.Code {
	case packet.ReasonSuccess:
		return nil, c.authError(c.auth.Finish(p.Properties.AuthData))
	case packet.ReasonContinueAuthentication:
		data, err := c.auth.Continue(p.Properties.AuthData)
		if err != nil {
			return nil, c.authError(err)
		}
		// [MQTT-4.12.0-3]
		return c.appendAuth(nil, packet.ReasonContinueAuthentication, data)
	}
	return nil, protocolErrorf(packet.ReasonProtocolError, "AUTH %s from the broker", p.Code)
}

// checkMethod enforces that every AUTH, and CONNACK, names the method of CONNECT
// [MQTT-4.12.0-5], and no method if CONNECT has none [MQTT-4.12.0-6].
func (c *Client) checkMethod(p *packet.Properties, where string) error {
	asked, got := "", ""
	if c.auth != nil {
		asked = c.auth.Method()
	}
	if p.AuthMethod != nil {
		got = *p.AuthMethod
	}
	if got != asked {
		return protocolErrorf(packet.ReasonProtocolError, "%s with authentication method %q, CONNECT had %q", where, got, asked)
	}
	return nil
}

// authError makes an authenticator's error a ProtocolError; nil stays nil.
func (c *Client) authError(err error) error {
	if err == nil {
		return nil
	}
	return protocolErrorf(packet.ReasonUnspecifiedError, "%s: %w", c.auth.Method(), err)
}

func (c *Client) appendAuth(dst []byte, code packet.ReasonCode, data []byte) ([]byte, error) {
	p := packet.Auth{Code: code, Properties: packet.Properties{AuthMethod: new(c.auth.Method()), AuthData: data}}
	return p.Append(dst, c.cfg.Version)
}

// authenticate answers an AUTH that came before CONNACK.
func (c *Client) authenticate(f packet.Frame) error {
	answer, err := c.answerAuth(f)
	if err == nil && answer == nil {
		err = protocolErrorf(packet.ReasonProtocolError, "AUTH with success before CONNACK")
	}
	if err != nil {
		return c.fail(err)
	}
	c.conn.End(append(c.conn.Begin(), answer...))
	return c.conn.Flush()
}

// acceptAuth checks the CONNACK that ends the exchange. CONNACK may have
// Authentication Data without a method: the standard forbids that in CONNECT and
// AUTH only. [MQTT5 3.2.2.3.18]
func (c *Client) acceptAuth() error {
	p := &c.connack.Properties
	err := c.checkMethod(p, "CONNACK")
	if err == nil && c.auth != nil {
		err = c.authError(c.auth.Finish(p.AuthData))
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// Reauthenticate repeats the exchange on the open connection and waits until it
// has succeeded. Messages still flow in both directions. If the exchange fails, or
// if ctx ends first (error [ErrReauthenticate]), the connection is closed.
func (c *Client) Reauthenticate(ctx context.Context) error {
	// [MQTT-4.12.0-7]
	if c.auth == nil {
		return ErrNoAuthenticator
	}
	success, err := c.sendReauth()
	if err != nil {
		return err
	}
	select {
	case <-success:
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
	}
	err = fmt.Errorf("%w: %w", ErrReauthenticate, context.Cause(ctx))
	c.failAuth(err)
	return err
}

// failAuth ends the connection because an exchange has failed. [MQTT-4.12.1-2]
func (c *Client) failAuth(err error) {
	c.appendDisconnect(packet.ReasonUnspecifiedError)
	_ = c.conn.Shutdown(err, disconnectTimeout)
}

func (c *Client) sendReauth() (chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// With mu held, a link cannot use the authenticator for its next connection: it
	// does so only after the reader has locked mu at the end of this one.
	if err := c.conn.Err(); err != nil {
		return nil, err
	}
	if c.auth.success != nil {
		return nil, ErrAuthenticating
	}
	data, err := c.auth.Start()
	if err != nil {
		return nil, fmt.Errorf("authenticate by %s: %w", c.auth.Method(), err)
	}
	// [MQTT-4.12.1-1]
	msg, err := c.appendAuth(nil, packet.ReasonReAuthenticate, data)
	if err != nil {
		return nil, err
	}
	out := c.conn.Begin()
	if c.closing {
		c.conn.End(out)
		return nil, ErrClosed
	}
	c.auth.success = make(chan struct{})
	c.conn.End(append(out, msg...))
	return c.auth.success, c.conn.Flush()
}

// onAuth continues an exchange that Reauthenticate has begun.
func (c *Client) onAuth(f packet.Frame) error {
	if c.auth == nil {
		return protocolErrorf(packet.ReasonProtocolError, "unexpected %s", f.Type())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.auth.success == nil {
		return protocolErrorf(packet.ReasonProtocolError, "unexpected %s", f.Type())
	}
	answer, err := c.answerAuth(f)
	if err != nil {
		return err // [MQTT-4.12.1-2] DISCONNECT with the reason
	}
	if answer == nil {
		close(c.auth.success)
		c.auth.success = nil
	}
	c.replies = append(c.replies, answer...)
	return nil
}
