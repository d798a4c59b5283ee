package mqtt

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// The exchange of RFC 7677 section 3.
const (
	clientFirst = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
	serverFirst = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
	clientFinal = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
	serverFinal = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
)

func pencil(t testing.TB) *SCRAM {
	s, err := NewSCRAM("user", "pencil")
	if err != nil {
		t.Fatal(err)
	}
	s.nonce = func() string { return "rOprNGfwEbeRWgbNEkqO" }
	return s
}

func TestSCRAM(t *testing.T) {
	for range 2 { // the second time is a reauthentication
		s := pencil(t)
		first, err := s.Start()
		if err != nil || string(first) != clientFirst {
			t.Fatalf("%q %v", first, err)
		}
		final, err := s.Continue([]byte(serverFirst))
		if err != nil || string(final) != clientFinal {
			t.Fatalf("%q %v", final, err)
		}
		if err := s.Finish([]byte(serverFinal)); err != nil {
			t.Error(err)
		}
	}
}

// TestSCRAMKeepsKeys: a second exchange with the same salt and iteration count uses
// the keys of the first; with another salt it derives new ones.
func TestSCRAMKeepsKeys(t *testing.T) {
	s := pencil(t)
	exchange := func(first string) string {
		_, _ = s.Start()
		final, err := s.Continue([]byte(first))
		if err != nil {
			t.Fatal(err)
		}
		return string(final)
	}
	if exchange(serverFirst) != clientFinal {
		t.Fatal("not the proof of RFC 7677")
	}
	kept := &s.keys.client[0]
	if exchange(serverFirst) != clientFinal || &s.keys.client[0] != kept {
		t.Error("derived anew")
	}
	for _, first := range []string{strings.Replace(serverFirst, "s=W", "s=X", 1), strings.Replace(serverFirst, "4096", "4097", 1)} {
		got := exchange(first)
		fresh, _ := NewSCRAM("user", "pencil")
		fresh.nonce = s.nonce
		_, _ = fresh.Start()
		if want, _ := fresh.Continue([]byte(first)); got != string(want) {
			t.Errorf("%s: the keys of another salt", first)
		}
	}
}

// TestSCRAMKeysAreShared: authenticators with the same password and salt share their
// keys, and no others do.
func TestSCRAMKeysAreShared(t *testing.T) {
	var keys SCRAMKeys
	proof := func(password, first string) string {
		t.Helper()
		s := pencil(t)
		s.Keys, s.password = &keys, password
		_, _ = s.Start()
		final, err := s.Continue([]byte(first))
		if err != nil {
			t.Fatal(err)
		}
		return string(final)
	}
	other := strings.Replace(serverFirst, "4096", "4097", 1)
	for range 2 {
		if got := proof("pencil", serverFirst); got != clientFinal {
			t.Errorf("got %s", got)
		}
		if proof("pen", serverFirst) == clientFinal {
			t.Error("another password has the same proof")
		}
		if proof("pencil", other) == proof("pen", other) {
			t.Error("two passwords have the same proof")
		}
		if n := len(keys.cache); n != 4 {
			t.Errorf("%d keys", n)
		}
	}
	derived := 0
	for i := range maxCached + 10 {
		for range 2 {
			_, _ = keys.get(keyID{byte(i), byte(i >> 8), byte(i >> 16)}, func() (scramKeys, error) {
				derived++
				return scramKeys{}, nil
			})
		}
	}
	if derived != maxCached+10 || len(keys.cache) > maxCached {
		t.Errorf("derived %d, cached %d", derived, len(keys.cache))
	}
}

// TestSCRAMFinalInAuth: the broker may send its server-final-message in an AUTH
// before CONNACK.
func TestSCRAMFinalInAuth(t *testing.T) {
	s := pencil(t)
	_, _ = s.Start()
	_, _ = s.Continue([]byte(serverFirst))
	if answer, err := s.Continue([]byte(serverFinal)); len(answer) != 0 || err != nil {
		t.Errorf("%q %v", answer, err)
	}
	if err := s.Finish(nil); err != nil {
		t.Error(err)
	}
}

func TestSCRAMRefuses(t *testing.T) {
	for first, want := range map[string]string{
		"":                      "is not r=NONCE",
		"e=unknown-user":        `reports the error "unknown-user"`,
		"r=other,s=W22Z,i=4096": "nonce",
		"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096":         "adds nothing",
		"r=rOprNGfwEbeRWgbNEkqO1,s=W,i=4096":                               "salt",
		"r=rOprNGfwEbeRWgbNEkqO1,s=,i=4096":                                "salt",
		"r=rOprNGfwEbeRWgbNEkqO1,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095":        "4096..1000000",
		"r=rOprNGfwEbeRWgbNEkqO1,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999999": "4096..1000000",
		"r=rOprNGfwEbeRWgbNEkqO1,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1000001":     "4096..1000000",
		"r=rOprNGfwEbeRWgbNEkqO1,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=many":        "4096..1000000",
	} {
		s := pencil(t)
		_, _ = s.Start()
		if _, err := s.Continue([]byte(first)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", first, err, want)
		}
	}
	for final, want := range map[string]string{
		"":              "without proving",
		"e=other-error": `reports the error "other-error"`,
		"v=":            "signature is wrong",
		"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=": "signature is wrong",
		"welcome": `"welcome" is not v=SIGNATURE`,
	} {
		s := pencil(t)
		_, _ = s.Start()
		_, _ = s.Continue([]byte(serverFirst))
		if err := s.Finish([]byte(final)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("signature %q: got %v, want %q", final, err, want)
		}
	}
	// Success without any exchange proves nothing about the broker.
	s := pencil(t)
	_, _ = s.Start()
	if s.Finish(nil) == nil || s.Finish([]byte(serverFinal)) == nil {
		t.Error("accepted without a challenge")
	}
	if _, err := NewSCRAM("", "p"); err == nil {
		t.Error("accepted an empty user name")
	}
	if _, err := NewSCRAM("us\u00e9r", "p"); err == nil || strings.Contains(err.Error(), "us") && strings.Contains(err.Error(), "\u00e9") {
		t.Errorf("got %v", err)
	}
	s, _ = NewSCRAM("a=b,c", "p")
	s.nonce = func() string { return "N" }
	if first, _ := s.Start(); string(first) != "n,,n=a=3Db=2Cc,r=N" {
		t.Errorf("got %q", first)
	}
}

// auth encodes an AUTH or, of type CONNACK, its answer as hex.
func auth(t *testing.T, typ packet.Type, code packet.ReasonCode, method, data string) string {
	t.Helper()
	props := packet.Properties{AuthMethod: &method}
	if data != "" {
		props.AuthData = []byte(data)
	}
	var b []byte
	var err error
	if typ == packet.CONNACK {
		b, err = (&packet.Connack{Code: code, Properties: props}).Append(nil, packet.V5)
	} else {
		b, err = (&packet.Auth{Code: code, Properties: props}).Append(nil, packet.V5)
	}
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(b)
}

const scram = "SCRAM-SHA-256"

// authenticate does the broker's part of the exchange, up to CONNACK.
func authenticate(t *testing.T, p *mqtttest.Peer) {
	var connect packet.Connect
	if err := connect.Decode(p.ExpectType(packet.CONNECT)); err != nil {
		t.Error(err)
	}
	if m := connect.Properties.AuthMethod; m == nil || *m != scram || string(connect.Properties.AuthData) != clientFirst {
		t.Errorf("CONNECT with %v %q", m, connect.Properties.AuthData)
	}
	p.Send(auth(t, packet.AUTH, 0x18, scram, serverFirst))
	p.Expect(auth(t, packet.AUTH, 0x18, scram, clientFinal))
	p.Send(auth(t, packet.CONNACK, 0, scram, serverFinal))
}

// TestAuthenticate: an exchange before CONNACK, one while messages flow, and both
// again on the next connection.
func TestAuthenticate(t *testing.T) {
	peer, nc := mqtttest.Pipe(t, packet.V5)
	cfg := Config{Dial: func(context.Context) (net.Conn, error) { return nc, nil }, Version: packet.V5, CleanStart: true, Auth: pencil(t)}
	go authenticate(t, peer)
	c, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	again := make(chan error)
	go func() { again <- c.Reauthenticate(t.Context()) }()
	peer.Expect(auth(t, packet.AUTH, 0x19, scram, clientFirst))
	if err := c.Reauthenticate(t.Context()); !errors.Is(err, ErrAuthenticating) {
		t.Errorf("a second exchange: %v", err)
	}
	peer.Send(auth(t, packet.AUTH, 0x18, scram, serverFirst) + "32 08 0001 61 0001 00 6869")
	peer.Expect(auth(t, packet.AUTH, 0x18, scram, clientFinal))
	peer.Expect("40 02 0001")
	peer.Send(auth(t, packet.AUTH, 0, scram, serverFinal))
	if err := <-again; err != nil {
		t.Error(err)
	}
	// An unexpected AUTH.
	peer.Send(auth(t, packet.AUTH, 0x18, scram, serverFirst))
	peer.Expect("e0 01 82")
	peer.ExpectEnd()
}

// TestAuthenticationFails: [MQTT-4.12.0-5, MQTT-4.12.0-6, MQTT-4.12.1-2] and a
// broker that does not know the password.
func TestAuthenticationFails(t *testing.T) {
	wrong := strings.Replace(serverFinal, "v=6", "v=7", 1)
	for name, tt := range map[string]struct {
		method bool
		send   []string // each is answered but the last
		want   string
	}{
		"other method":    {true, []string{auth(t, packet.AUTH, 0x18, "PLAIN", serverFirst)}, `AUTH with authentication method "PLAIN"`},
		"no method":       {true, []string{auth(t, packet.AUTH, 0x18, scram, serverFirst), "20 03 00 00 00"}, `CONNACK with authentication method ""`},
		"not asked for":   {false, []string{auth(t, packet.CONNACK, 0, scram, "")}, `CONNACK with authentication method "SCRAM-SHA-256"`},
		"AUTH unasked":    {false, []string{auth(t, packet.AUTH, 0x18, scram, serverFirst)}, "AUTH before CONNACK"},
		"wrong signature": {true, []string{auth(t, packet.AUTH, 0x18, scram, serverFirst), auth(t, packet.CONNACK, 0, scram, wrong)}, "signature is wrong"},
		"too early":       {true, []string{auth(t, packet.CONNACK, 0, scram, serverFinal)}, "is not v=SIGNATURE"},
		"success in AUTH": {true, []string{auth(t, packet.AUTH, 0x18, scram, serverFirst), auth(t, packet.AUTH, 0, scram, serverFinal)}, "success before CONNACK"},
		"from the client": {true, []string{auth(t, packet.AUTH, 0x19, scram, serverFirst)}, "Re-authenticate from the broker"},
		"wrong nonce":     {true, []string{auth(t, packet.AUTH, 0x18, scram, "r=x,s=W22Z,i=4096")}, "nonce"},
	} {
		t.Run(name, func(t *testing.T) {
			peer, nc := mqtttest.Pipe(t, packet.V5)
			cfg := Config{Dial: func(context.Context) (net.Conn, error) { return nc, nil }, Version: packet.V5, CleanStart: true}
			if tt.method {
				cfg.Auth = pencil(t)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				peer.ExpectType(packet.CONNECT)
				for i, send := range tt.send {
					if i > 0 {
						peer.ExpectType(packet.AUTH)
					}
					peer.Send(send)
				}
				peer.ExpectType(packet.DISCONNECT)
				peer.ExpectEnd()
			}()
			_, err := Connect(t.Context(), cfg)
			var pe *ProtocolError
			if !errors.As(err, &pe) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			<-done
		})
	}
}

// TestReauthenticateEnds: by a failure, by the context, without a method.
func TestReauthenticateEnds(t *testing.T) {
	c, _ := start(t, Config{Version: packet.V5, CleanStart: true}, connack5)
	// [MQTT-4.12.0-7]
	if err := c.Reauthenticate(t.Context()); !errors.Is(err, ErrNoAuthenticator) {
		t.Errorf("got %v", err)
	}
	peer, nc := mqtttest.Pipe(t, packet.V5)
	cfg := Config{Dial: func(context.Context) (net.Conn, error) { return nc, nil }, Version: packet.V5, CleanStart: true, Auth: pencil(t)}
	go authenticate(t, peer)
	c, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		peer.ExpectType(packet.AUTH)
		peer.Send("e0 01 87")
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var de *DisconnectedError
	if err := c.Reauthenticate(ctx); !errors.As(err, &de) || de.Code != packet.ReasonNotAuthorized {
		t.Errorf("got %v", err)
	}
	// [MQTT-4.12.1-2] If the exchange does not finish in time, the connection ends.
	peer, nc = mqtttest.Pipe(t, packet.V5)
	cfg.Dial = func(context.Context) (net.Conn, error) { return nc, nil }
	go authenticate(t, peer)
	if c, err = Connect(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		peer.ExpectType(packet.AUTH)
		cancel()
		peer.Expect("e0 01 80")
		peer.ExpectEnd()
	}()
	if err := c.Reauthenticate(ctx); !errors.Is(err, ErrReauthenticate) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-gone
	<-c.Done()
	if err := c.Reauthenticate(t.Context()); !errors.Is(err, ErrReauthenticate) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := Connect(t.Context(), Config{Version: packet.V311, Auth: pencil(t), ClientID: "c"}); err == nil || !strings.Contains(err.Error(), "needs MQTT 5") {
		t.Errorf("3.1.1: %v", err)
	}
}
