package mqtt

import (
	"context"
	"errors"
	"fmt"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// An Authenticator is one method of enhanced authentication. [MQTT5 4.12] Its
// errors end the connection. It is used by one goroutine at a time.
type Authenticator interface {
	// Method is the Authentication Method.
	Method() string
	// Start begins an exchange, that of CONNECT or a later one, and returns its
	// first Authentication Data; nil sends none.
	Start() ([]byte, error)
	// Continue answers the Authentication Data of an AUTH.
	Continue(data []byte) ([]byte, error)
	// Finish judges the Authentication Data, if any, with which the broker
	// accepts.
	Finish(data []byte) error
}

// ErrNoAuthenticator: [Client.Reauthenticate] without [Config.Auth].
var ErrNoAuthenticator = errors.New("authenticate again: the connection was made without an authentication method")

// ErrReauthenticate: an exchange of [Client.Reauthenticate] has not ended in time.
var ErrReauthenticate = errors.New("authenticate again: no end of the exchange in time")

// ErrAuthenticating: an exchange is under way already.
var ErrAuthenticating = errors.New("authenticate again: an exchange is under way")

// authentication is the enhanced authentication of one connection.
type authentication struct {
	Authenticator
	again chan struct{} // of Reauthenticate, closed by success; under Client.mu
}

// startAuth puts method and first data into the properties of CONNECT.
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

// challenge reads an AUTH and returns its answer, nil after the last.
func (c *Client) challenge(f packet.Frame) (answer []byte, err error) {
	var p packet.Auth
	if err := p.Decode(f, c.cfg.Version); err != nil {
		return nil, malformed(err)
	}
	if err := c.sameMethod(&p.Properties, "AUTH"); err != nil {
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

// sameMethod: [MQTT-4.12.0-5] every AUTH, and CONNACK, names CONNECT's method,
// [MQTT-4.12.0-6] or none when CONNECT had none.
func (c *Client) sameMethod(p *packet.Properties, where string) error {
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

// authError is what the authenticator has against the broker.
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
	answer, err := c.challenge(f)
	if err == nil && answer == nil {
		err = protocolErrorf(packet.ReasonProtocolError, "AUTH with success before CONNACK")
	}
	if err != nil {
		return c.sayGoodbye(err)
	}
	c.conn.End(append(c.conn.Begin(), answer...))
	return c.conn.Flush()
}

// acceptAuth judges the CONNACK that ends the exchange. Authentication Data
// without a method is an error in CONNECT and AUTH alone: in CONNACK its meaning
// is left to the method, and without one it has none. [MQTT5 3.2.2.3.18]
func (c *Client) acceptAuth() error {
	p := &c.connack.Properties
	err := c.sameMethod(p, "CONNACK")
	if err == nil && c.auth != nil {
		err = c.authError(c.auth.Finish(p.AuthData))
	}
	if err != nil {
		return c.sayGoodbye(err)
	}
	return nil
}

// Reauthenticate repeats the exchange on the living connection and waits for
// its success. Failure ends the connection, and so does the end of ctx before
// there is one, with [ErrReauthenticate]. Everything else goes on meanwhile.
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
	c.giveUp(err)
	return err
}

// giveUp ends the connection over an exchange that has failed. [MQTT-4.12.1-2]
func (c *Client) giveUp(err error) {
	c.lastWord(packet.ReasonUnspecifiedError)
	_ = c.conn.Shutdown(err, goodbyeTimeout)
}

func (c *Client) sendReauth() (chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The reader passes through mu when the connection has ended, and only then
	// does a link use the authenticator for the next one.
	if err := c.conn.Err(); err != nil {
		return nil, err
	}
	if c.auth.again != nil {
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
	c.auth.again = make(chan struct{})
	c.conn.End(append(out, msg...))
	return c.auth.again, c.conn.Flush()
}

// onAuth goes on with an exchange that Reauthenticate has begun.
func (c *Client) onAuth(f packet.Frame) error {
	if c.auth == nil {
		return protocolErrorf(packet.ReasonProtocolError, "unexpected %s", f.Type())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.auth.again == nil {
		return protocolErrorf(packet.ReasonProtocolError, "unexpected %s", f.Type())
	}
	answer, err := c.challenge(f)
	if err != nil {
		return err // [MQTT-4.12.1-2] DISCONNECT with the reason
	}
	if answer == nil {
		close(c.auth.again)
		c.auth.again = nil
	}
	c.replies = append(c.replies, answer...)
	return nil
}
