package broker

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// exchange is the enhanced authentication of one connection. [MQTT5 4.12]
type exchange struct {
	connect *packet.Connect // accepted at the end of the first exchange
	scram   scramServer
	started bool   // the client's first message of an exchange has come
	user    string // of the connection, after the first exchange
	final   []byte // Authentication Data of CONNACK
}

// identify checks the user name and password of a CONNECT without Authentication
// Method.
func (b *Broker) identify(p *packet.Connect) packet.ReasonCode {
	switch {
	case b.cfg.Users == nil:
	case !p.HasUsername || !p.HasPassword:
		return packet.ReasonNotAuthorized
	case !b.cfg.Users.check(p.Username, string(p.Password)):
		return packet.ReasonBadUserNameOrPassword
	}
	return packet.ReasonSuccess
}

// startExchange begins the exchange of a CONNECT with an Authentication Method.
func (c *client) startExchange(p *packet.Connect) error {
	// [MQTT-4.12.0-1]
	if c.b.cfg.Users == nil || *p.Properties.AuthMethod != scramMethod {
		return c.deny(packet.ReasonBadAuthenticationMethod, errors.New("the client asks for an authentication method that the broker does not support"))
	}
	c.auth = &exchange{connect: p}
	if p.Properties.AuthData == nil {
		// Some clients send their first message only when asked.
		return c.sendAuth(packet.ReasonContinueAuthentication, nil)
	}
	return c.challenge(p.Properties.AuthData)
}

// onExchange handles the packets between CONNECT and CONNACK.
func (c *client) onExchange(f packet.Frame) error {
	switch f.Type() {
	case packet.AUTH:
		return c.onAuth(f)
	case packet.DISCONNECT:
		var p packet.Disconnect
		if err := p.Decode(f, c.version); err != nil {
			return err
		}
		return errDisconnected
	}
	// [MQTT-3.1.2-30]
	return c.deny(packet.ReasonProtocolError, fmt.Errorf("%s before the end of the authentication", f.Type()))
}

// onAuth handles an AUTH, of CONNECT's exchange or of a later one.
func (c *client) onAuth(f packet.Frame) error {
	var p packet.Auth
	if err := p.Decode(f, c.version); err != nil {
		var malformed *packet.MalformedError
		if c.sess == nil && errors.As(err, &malformed) {
			return c.deny(malformed.Code, err)
		}
		return err
	}
	again := p.Code == packet.ReasonReAuthenticate
	switch {
	case c.auth == nil:
		// [MQTT-4.12.0-7]
		return c.deny(packet.ReasonProtocolError, errors.New("AUTH without an authentication method in CONNECT"))
	case p.Properties.AuthMethod == nil || *p.Properties.AuthMethod != scramMethod:
		// [MQTT-4.12.0-5] [MQTT-4.12.1-1]
		return c.deny(packet.ReasonBadAuthenticationMethod, errors.New("AUTH has a different authentication method from CONNECT"))
	case again == (c.auth.connect != nil || c.auth.started), !again && p.Code != packet.ReasonContinueAuthentication:
		// [MQTT-4.12.0-3] The client continues an exchange with 0x18, and starts another with 0x19.
		return c.deny(packet.ReasonProtocolError, fmt.Errorf("unexpected AUTH %s", p.Code))
	case c.auth.started:
		return c.finishExchange(p.Properties.AuthData)
	}
	return c.challenge(p.Properties.AuthData)
}

// challenge answers the first message of an exchange.
func (c *client) challenge(data []byte) error {
	c.auth.scram = scramServer{users: c.b.cfg.Users, nonce: rand.Text}
	first, err := c.auth.scram.begin(string(data))
	if err == nil && c.auth.user != "" && c.auth.scram.user != c.auth.user {
		err = errors.New("re-authentication as a different user")
	}
	if err != nil {
		return c.deny(packet.ReasonNotAuthorized, err)
	}
	c.auth.started = true
	// [MQTT-4.12.0-2]
	return c.sendAuth(packet.ReasonContinueAuthentication, []byte(first))
}

// finishExchange checks the client's last message of an exchange and accepts the
// client.
func (c *client) finishExchange(data []byte) error {
	a := c.auth
	a.started = false
	final, err := a.scram.end(string(data))
	switch {
	case errors.Is(err, errBadProof) && a.connect != nil:
		return c.deny(packet.ReasonBadUserNameOrPassword, err)
	case err != nil:
		return c.deny(packet.ReasonNotAuthorized, err)
	}
	a.user, a.scram = a.scram.user, scramServer{}
	connect := a.connect
	if connect == nil {
		return c.sendAuth(packet.ReasonSuccess, []byte(final))
	}
	a.connect, a.final = nil, []byte(final)
	return c.accept(connect)
}

// deny ends the connection with a reason, in CONNACK before the client has a
// session [MQTT-4.12.0-4], in DISCONNECT afterwards [MQTT-4.12.1-2].
func (c *client) deny(code packet.ReasonCode, err error) error {
	if c.sess != nil {
		return &closeError{code, err.Error()}
	}
	c.refuse(c.version, code)
	return fmt.Errorf("%w: %s: %w", errRefused, code, err)
}

func (c *client) sendAuth(code packet.ReasonCode, data []byte) error {
	method := scramMethod
	p := packet.Auth{Code: code, Properties: packet.Properties{AuthMethod: &method, AuthData: data}}
	out, err := p.Append(nil, c.version)
	if err != nil {
		return fmt.Errorf("send AUTH: %w", err)
	}
	// [MQTT-3.1.2-24]
	if len(out) > c.maxPacket {
		return fmt.Errorf("send AUTH: %d bytes exceed the client's Maximum Packet Size of %d", len(out), c.maxPacket)
	}
	buf := c.ackBuffer()
	*buf = append(*buf, out...)
	return nil
}
