package broker

import (
	"context"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// The exchange of RFC 7677 section 3.
const (
	clientFirst = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
	serverFirst = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
	clientFinal = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
	serverFinal = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
)

// pencil is the server of RFC 7677.
func pencil(t testing.TB) scramServer {
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := newScramKeys("pencil", salt)
	if err != nil {
		t.Fatal(err)
	}
	users := &Users{keys: map[string]scramKeys{"user": keys}, secret: []byte("secret")}
	return scramServer{users: users, nonce: func() string { return "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0" }}
}

func TestSCRAM(t *testing.T) {
	s := pencil(t)
	if first, err := s.begin(clientFirst); err != nil || first != serverFirst {
		t.Fatalf("%q %v", first, err)
	}
	if final, err := s.end(clientFinal); err != nil || final != serverFinal {
		t.Errorf("%q %v", final, err)
	}
}

func TestSCRAMRefuses(t *testing.T) {
	for first, want := range map[string]string{
		"":                         "is not n,,",
		"n":                        "is not n,,",
		"n,,":                      "is not n,,",
		"n,,n=user":                "is not n,,",
		"n,,r=x,n=user":            "is not n,,",
		"n,,m=ext,n=user,r=x":      "is not n,,",
		"p=tls-unique,,n=user,r=x": "channel binding",
		"x,,n=user,r=x":            "flag",
		"n,a=root,n=user,r=x":      "another user",
		"n,,n=,r=x":                "bad user name",
		"n,,n=us=er,r=x":           "bad user name",
		"n,,n=us=2cer,r=x":         "bad user name",
		"n,,n=user,r=":             "nonce",
		"n,,n=user,r=a\x01":        "nonce",
	} {
		s := pencil(t)
		if _, err := s.begin(first); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", first, err, want)
		}
	}
	for final, want := range map[string]string{
		"": "no proof",
		strings.Replace(clientFinal, "c=biws", "c=eSws", 1):           "channel binding", // y,, where the first was n,,
		strings.Replace(clientFinal, "r=rOpr", "r=rOps", 1):           "nonce",
		strings.Replace(clientFinal, "$k0,p=", "$k,p=", 1):            "nonce",
		"c=biws,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=":       "nonce",
		strings.Replace(clientFinal, "p=dHzb", "p=dHz", 1):            "malformed proof",
		strings.Replace(clientFinal, "p=dHzb", "p=", 1):               "malformed proof",
		strings.Replace(clientFinal, "p=dHzb", "p=eHzb", 1):           "is wrong",
		strings.Replace(clientFinal, ",p=", ",x=extension,p=", 1):     "is wrong", // the proof is of everything
		strings.Replace(clientFinal, "p=dHzbZapW", "p=AAAAAAAAAA", 1): "malformed proof",
	} {
		s := pencil(t)
		_, _ = s.begin(clientFirst)
		if _, err := s.end(final); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", final, err, want)
		}
	}
}

// exchangeWith runs the client of package mqtt against a server.
func exchangeWith(t *testing.T, users *Users, user, password string) (server, client error) {
	t.Helper()
	c, err := mqtt.NewSCRAM(user, password)
	if err != nil {
		t.Fatal(err)
	}
	s := scramServer{users: users, nonce: func() string { return "SERVER" }}
	data, err := c.Start()
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.begin(string(data))
	if err != nil || s.user != user {
		t.Fatalf("%q: the server takes %q for %q: %v", data, s.user, user, err)
	}
	if data, err = c.Continue([]byte(first)); err != nil {
		t.Fatal(err)
	}
	final, err := s.end(string(data))
	return err, c.Finish([]byte(final))
}

// TestSCRAMDifferential: the two sides are of different packages, and agree on
// every name and password that is printable.
func TestSCRAMDifferential(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, 1+r.IntN(12))
		for i := range b {
			b[i] = byte(' ' + r.IntN('~'-' '+1))
		}
		return string(b)
	}
	list := []User{{"a=b,c", "=2C,"}, {"=", ","}, {"=2C", "p"}}
	for range 10 {
		list = append(list, User{word(), word()})
	}
	users, err := NewUsers(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range list {
		if server, client := exchangeWith(t, users, u.Name, u.Password); server != nil || client != nil {
			t.Errorf("%q: %v, %v", u, server, client)
		}
	}
	server, client := exchangeWith(t, users, list[0].Name, "other")
	if !errors.Is(server, errBadProof) || client == nil {
		t.Errorf("wrong password: %v, %v", server, client)
	}
	if server, _ = exchangeWith(t, users, "nobody", "p"); !errors.Is(server, errBadProof) {
		t.Errorf("nobody: %v", server)
	}
	// The answers do not tell that a user is unknown: its salt stays the same, too.
	a := scramServer{users: users, nonce: func() string { return "S" }}
	b := a
	one, _ := a.begin("n,,n=nobody,r=x")
	two, _ := b.begin("n,,n=nobody,r=x")
	if one != two || !strings.Contains(one, ",i=4096") {
		t.Errorf("%q, then %q", one, two)
	}
}

func TestUsers(t *testing.T) {
	users, err := NewUsers([]User{{"u", "p"}, {"v", "q"}, {"u", "p"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		name, password string
		want           bool
	}{{"u", "p", true}, {"v", "q", true}, {"u", "q", false}, {"u", "", false}, {"w", "p", false}, {"", "", false}} {
		for range 2 {
			if users.check(one.name, one.password) != one.want {
				t.Errorf("%q %q: not %v", one.name, one.password, one.want)
			}
		}
	}
	if string(users.keys["u"].salt) == string(users.keys["v"].salt) {
		t.Error("two users have the same salt")
	}
	users.keys["u"] = users.keys["v"] // what is derived from now on shows
	if !users.check("u", "p") || users.check("u", "s") {
		t.Error("a password that was right is derived again, or another one taken for it")
	}
	for want, list := range map[string][]User{
		"user 2 of 2: an earlier user has this name": {{"u", "p"}, {"u", "s3cret"}},
		"user 1 of 1: name":                          {{"\u00fc", "s3cret"}},
		"user 1 of 2: name":                          {{"s3cret", ""}, {"v", "q"}},
	} {
		if _, err := NewUsers(list); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestSaltsTellNothing: the salts of users and those for unknown names consist of any
// bytes, and have the same length.
func TestSaltsTellNothing(t *testing.T) {
	users, err := NewUsers([]User{{"a", "p"}, {"b", "p"}, {"c", "p"}, {"d", "p"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range []string{"abcd", "efgh"} {
		high := 0
		for _, name := range names {
			keys, _ := users.find(string(name))
			if len(keys.salt) != saltSize {
				t.Errorf("%c: %d bytes of salt", name, len(keys.salt))
			}
			for _, b := range keys.salt {
				high += int(b >> 7)
			}
		}
		if high == 0 { // by chance once in 2^64
			t.Errorf("the salts of %s are text", names)
		}
	}
}

// FuzzSCRAM: no message of a client causes a panic, or succeeds without the password.
func FuzzSCRAM(f *testing.F) {
	f.Add(clientFirst, clientFinal)
	f.Add("y,,n=user,r=x", "c=eSws,r=x,p=")
	f.Add("n,,n==2C=3D,r=x,a=b", "c=biws,r=x%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=AAAA")
	base := pencil(f)
	f.Fuzz(func(t *testing.T, first, final string) {
		s := base
		answer, err := s.begin(first)
		if err != nil {
			return
		}
		if s.user == "" || !strings.HasPrefix(answer, "r="+s.whole+",s=") {
			t.Fatalf("%q: %q for %q", first, answer, s.user)
		}
		if _, err := s.end(final); err == nil && (first != clientFirst || final != clientFinal) {
			t.Fatalf("let in %q %q", first, final)
		}
	})
}

// wantRefused checks the answer to a CONNECT that must be refused.
func wantRefused(t *testing.T, addr string, p packet.Connect, code packet.ReasonCode) packet.Connack {
	t.Helper()
	c := join(t, addr)
	ack := c.connect(p)
	if ack.Code != code {
		t.Errorf("CONNACK %s, want %s", ack.Code, code)
	}
	c.wantEOF()
	return ack
}

func TestPlainUsers(t *testing.T) {
	users, err := NewUsers([]User{{"u", "p"}})
	if err != nil {
		t.Fatal(err)
	}
	addr := listen(t, startBroker(t, Config{Users: users}))
	login := func(v packet.Version, user, password string) packet.Connect {
		p := clean(v, "c")
		p.Username, p.HasUsername = user, user != "" || password != ""
		p.Password, p.HasPassword = []byte(password), password != ""
		return p
	}
	for _, v := range []packet.Version{packet.V31, packet.V311, packet.V5} {
		bad, none := packet.ReasonBadUserNameOrPassword, packet.ReasonNotAuthorized
		if v != packet.V5 {
			bad, none = 4, 5
		}
		connect(t, addr, login(v, "u", "p")).sync()
		wantRefused(t, addr, login(v, "u", "q"), bad)
		wantRefused(t, addr, login(v, "w", "p"), bad)
		wantRefused(t, addr, login(v, "u", ""), none)
		wantRefused(t, addr, login(v, "", ""), none)
	}
	method := clean(packet.V5, "c")
	method.Properties.AuthMethod = ptr("PLAIN")
	wantRefused(t, addr, method, packet.ReasonBadAuthenticationMethod)
	method.Properties.AuthMethod = ptr(scramMethod)
	wantRefused(t, listen(t, startBroker(t, Config{})), method, packet.ReasonBadAuthenticationMethod)
}

// scramConnect is a CONNECT by SCRAM of the user of RFC 7677.
func scramConnect(id string) packet.Connect {
	p := clean(packet.V5, id)
	p.Properties.AuthMethod, p.Properties.AuthData = ptr(scramMethod), []byte(clientFirst)
	return p
}

// authOf is an AUTH, with another method if one is given.
func authOf(code packet.ReasonCode, data string, method ...string) *packet.Auth {
	a := &packet.Auth{Code: code, Properties: packet.Properties{AuthMethod: ptr(scramMethod), AuthData: []byte(data)}}
	if len(method) > 0 {
		a.Properties.AuthMethod = &method[0]
	}
	return a
}

// TestAuthStates: [MQTT-3.1.2-30, MQTT-4.12.0-3, MQTT-4.12.0-5, MQTT-4.12.1-1]
// packets that no client may send during an exchange, or without one.
func TestAuthStates(t *testing.T) {
	users := pencil(t).users
	addr := listen(t, startBroker(t, Config{Users: users}))
	proof := "c=biws,r=x,p=" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	for name, tc := range map[string]struct {
		send encoder
		code packet.ReasonCode
	}{
		"SUBSCRIBE":     {&packet.Subscribe{PacketID: 1, Subscriptions: []packet.Subscription{sub("a", 0)}}, packet.ReasonProtocolError},
		"another":       {ptr(scramConnectEncoder{scramConnect("d")}), packet.ReasonProtocolError},
		"again":         {authOf(packet.ReasonReAuthenticate, clientFirst), packet.ReasonProtocolError},
		"success":       {authOf(packet.ReasonSuccess, clientFinal), packet.ReasonProtocolError},
		"other method":  {authOf(packet.ReasonContinueAuthentication, proof, "PLAIN"), packet.ReasonBadAuthenticationMethod},
		"other nonce":   {authOf(packet.ReasonContinueAuthentication, proof), packet.ReasonNotAuthorized},
		"nothing":       {authOf(packet.ReasonContinueAuthentication, ""), packet.ReasonNotAuthorized},
		"first message": {authOf(packet.ReasonContinueAuthentication, clientFirst), packet.ReasonNotAuthorized},
	} {
		c := join(t, addr)
		p := scramConnect("c")
		c.write(p.Append(nil))
		c.v = packet.V5
		var a packet.Auth
		c.must(a.Decode(c.frame(packet.AUTH), packet.V5))
		if a.Code != packet.ReasonContinueAuthentication || *a.Properties.AuthMethod != scramMethod {
			t.Fatalf("%s: %+v", name, a)
		}
		c.send(tc.send)
		var ack packet.Connack
		c.must(ack.Decode(c.frame(packet.CONNACK), packet.V5))
		if ack.Code != tc.code || ack.Properties.AuthMethod != nil {
			t.Errorf("%s: CONNACK %s %+v, want %s", name, ack.Code, ack.Properties, tc.code)
		}
		c.wantEOF()
	}
	// A client that does not wait for the challenge is refused after it.
	c := join(t, addr)
	early := scramConnect("c")
	both, err := early.Append(nil)
	c.must(err)
	c.write(packet.AppendPingreq(both), nil)
	c.v = packet.V5
	c.frame(packet.AUTH)
	c.frame(packet.CONNACK)
	c.wantEOF()
	// The client may send its first message when asked; then it disconnects.
	c = join(t, addr)
	p := scramConnect("c")
	p.Properties.AuthData = nil
	c.write(p.Append(nil))
	c.v = packet.V5
	for range 2 {
		var a packet.Auth
		c.must(a.Decode(c.frame(packet.AUTH), packet.V5))
		if a.Properties.AuthData == nil {
			c.send(authOf(packet.ReasonContinueAuthentication, clientFirst))
			continue
		}
		c.raw("e0 00")
	}
	c.wantEOF()
}

type scramConnectEncoder struct{ packet.Connect }

func (e *scramConnectEncoder) Append(dst []byte, _ packet.Version) ([]byte, error) {
	return e.Connect.Append(dst)
}

// dialer dials addr.
func dialer(addr string) mqtt.Dialer {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
}

func scramClient(t *testing.T, addr, id, password string) (*mqtt.Client, error) {
	t.Helper()
	auth, err := mqtt.NewSCRAM("user", password)
	if err != nil {
		t.Fatal(err)
	}
	c, err := mqtt.Connect(t.Context(), mqtt.Config{
		Dial: dialer(addr), Version: packet.V5, ClientID: id, CleanStart: true, Auth: auth, Username: "user", HasUsername: true,
	})
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

// TestAuthenticate: the client of package mqtt authenticates by SCRAM, and
// re-authenticates several times on its connection.
func TestAuthenticate(t *testing.T) {
	users, err := NewUsers([]User{{"user", "pencil"}})
	if err != nil {
		t.Fatal(err)
	}
	addr := listen(t, startBroker(t, Config{Users: users}))
	c, err := scramClient(t, addr, "c", "pencil")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := c.Reauthenticate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// A client without the password does not take over the session of another.
	var refused *mqtt.RefusedError
	if _, err := scramClient(t, addr, "c", "pencil2"); !errors.As(err, &refused) || refused.Code != packet.ReasonBadUserNameOrPassword {
		t.Errorf("wrong password: %v", err)
	}
	if err := c.Reauthenticate(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestReauthenticateRefused: [MQTT-4.12.1-2]
func TestReauthenticateRefused(t *testing.T) {
	users, err := NewUsers([]User{{"user", "pencil"}, {"other", "pencil"}})
	if err != nil {
		t.Fatal(err)
	}
	addr := listen(t, startBroker(t, Config{Users: users}))
	for name, tc := range map[string]struct {
		first, last string
		code        packet.ReasonCode
	}{
		"no message":   {"", "", packet.ReasonNotAuthorized},
		"another user": {"n,,n=other,r=x", "", packet.ReasonNotAuthorized},
		"no proof":     {"n,,n=user,r=x", "c=biws,r=x", packet.ReasonNotAuthorized},
		"twice":        {"n,,n=user,r=x", "again", packet.ReasonProtocolError},
	} {
		c := authenticated(t, addr)
		c.send(authOf(packet.ReasonReAuthenticate, tc.first))
		if tc.last != "" {
			c.frame(packet.AUTH)
			code := packet.ReasonContinueAuthentication
			if tc.last == "again" {
				code = packet.ReasonReAuthenticate
			}
			c.send(authOf(code, tc.last))
		}
		t.Log(name)
		c.wantClosed(tc.code)
	}
	c := authenticated(t, addr)
	c.send(authOf(packet.ReasonContinueAuthentication, clientFinal)) // nothing is under way
	c.wantClosed(packet.ReasonProtocolError)
	c = authenticated(t, addr)
	c.send(authOf(packet.ReasonReAuthenticate, clientFirst, "PLAIN"))
	c.wantClosed(packet.ReasonBadAuthenticationMethod)
}

// authenticated is a peer that has authenticated by SCRAM, step by step.
func authenticated(t *testing.T, addr string) *peer {
	t.Helper()
	s, err := mqtt.NewSCRAM("user", "pencil")
	if err != nil {
		t.Fatal(err)
	}
	c := join(t, addr)
	p := scramConnect("c")
	p.Properties.AuthData, _ = s.Start()
	c.write(p.Append(nil))
	c.v = packet.V5
	var a packet.Auth
	c.must(a.Decode(c.frame(packet.AUTH), packet.V5))
	final, err := s.Continue(a.Properties.AuthData)
	c.must(err)
	c.send(authOf(packet.ReasonContinueAuthentication, string(final)))
	var ack packet.Connack
	c.must(ack.Decode(c.frame(packet.CONNACK), packet.V5))
	if m := ack.Properties.AuthMethod; m == nil || *m != scramMethod || s.Finish(ack.Properties.AuthData) != nil {
		t.Fatalf("CONNACK %+v", ack)
	}
	return c
}

// TestServerReference: MQTT 5 clients are referred to another server, 3.x clients are
// served.
func TestServerReference(t *testing.T) {
	for _, code := range []packet.ReasonCode{0, packet.ReasonServerMoved} {
		addr := listen(t, startBroker(t, Config{ServerReference: "[::1]:1884", ServerReferenceCode: code}))
		want := code
		if want == 0 {
			want = packet.ReasonUseAnotherServer
		}
		ack := wantRefused(t, addr, clean(packet.V5, "c"), want)
		if r := ack.Properties.ServerReference; r == nil || *r != "[::1]:1884" {
			t.Errorf("reference %v", r)
		}
		connect(t, addr, clean(packet.V311, "c")).sync()
		// [MQTT-3.1.2-24] There is no CONNACK if it would be larger than the client allows.
		small := clean(packet.V5, "c")
		small.Properties.MaximumPacketSize = ptr(uint32(10))
		c := join(t, addr)
		c.write(small.Append(nil))
		c.wantEOF()
	}
}
