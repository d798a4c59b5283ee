package tlsconf

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// testCA is a test's own CA, whose leaves may be as wrong as a case needs.
type testCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCA(t *testing.T, now time.Time) testCA {
	t.Helper()
	cert, key, err := authority(now)
	if err != nil {
		t.Fatal(err)
	}
	return testCA{cert, key}
}

// leaf returns a server certificate for localhost, changed by edit.
func (ca testCA) leaf(t *testing.T, edit func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	template := leafTemplate("broker.example", time.Now(), x509.ExtKeyUsageServerAuth)
	template.DNSNames = []string{"localhost"}
	if edit != nil {
		edit(template)
	}
	pair, err := sign(template, ca.cert, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair[0], pair[1])
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func (ca testCA) options() Options { return Options{CAPEM: certPEM(ca.cert.Raw)} }

// handshake runs client against server over loopback up to the client's first
// read, and returns the client's error and state.
func handshake(t *testing.T, client, server *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	return serve(t, client, func(raw net.Conn) {
		conn := tls.Server(raw, server)
		if conn.Handshake() == nil {
			_, _ = conn.Write([]byte{0x20})
		}
	})
}

// serve lets the client talk to what peer does with its end of the connection.
func serve(t *testing.T, client *tls.Config, peer func(net.Conn)) (tls.ConnectionState, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		peer(conn)
	}()
	raw, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
	conn := tls.Client(raw, client)
	if err = conn.Handshake(); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	state := conn.ConnectionState()
	_ = raw.Close()
	<-done
	return state, err
}

func clientConfig(t *testing.T, o Options, host string) *tls.Config {
	t.Helper()
	c, err := o.ClientConfig(host)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serverConfig(cert tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10}
}

func TestExplainHandshakes(t *testing.T) {
	now := time.Now()
	day := 24 * time.Hour
	ca := newCA(t, now)
	good := ca.leaf(t, nil)
	oldCA := newCA(t, now.Add(-40*day))
	otherCA := newCA(t, now)
	mutual := serverConfig(good)
	mutual.ClientAuth = tls.RequireAndVerifyClientCert
	mutual12 := mutual.Clone()
	mutual12.MaxVersion = tls.VersionTLS12
	tls11 := serverConfig(good)
	tls11.MaxVersion = tls.VersionTLS11
	tls12 := serverConfig(good)
	tls12.MaxVersion = tls.VersionTLS12
	alpn := serverConfig(good)
	alpn.NextProtos = []string{"mqtt"}
	p384 := serverConfig(good)
	p384.CurvePreferences = []tls.CurveID{tls.CurveP384}

	foreign, err := sign(leafTemplate("foreign client", now, x509.ExtKeyUsageClientAuth), otherCA.cert, otherCA.key)
	if err != nil {
		t.Fatal(err)
	}
	foreignOptions := ca.options()
	foreignOptions.CertPEM, foreignOptions.KeyPEM = foreign[0], foreign[1]
	mutual.ClientCAs = x509.NewCertPool()
	mutual.ClientCAs.AddCert(ca.cert)
	mutual12.ClientCAs = mutual.ClientCAs

	with := func(edit func(*Options)) Options {
		o := ca.options()
		edit(&o)
		return o
	}
	tests := []struct {
		name    string
		options Options
		host    string
		server  *tls.Config
		want    string
	}{
		{"expired", ca.options(), "localhost", serverConfig(ca.leaf(t, func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Date(2024, 12, 3, 0, 0, 0, 0, time.UTC), time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
		})), "server certificate expired 2025-01-02: renew it, or check this machine's clock"},
		{"not yet valid", ca.options(), "localhost", serverConfig(ca.leaf(t, func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Date(2090, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(2091, 1, 2, 0, 0, 0, 0, time.UTC)
		})), "server certificate not valid before 2090-01-02: check this machine's clock"},
		{"CA expired", oldCA.options(), "localhost", serverConfig(oldCA.leaf(t, nil)),
			`CA certificate "mqttload throw-away CA" expired ` + date(oldCA.cert.NotAfter) + ": renew it, or check this machine's clock"},
		{"unknown authority", Options{}, "localhost", serverConfig(good),
			`server certificate is signed by an unknown authority ("mqttload throw-away CA"): give its CA with --cafile`},
		{"unknown authority, sent along", Options{}, "localhost", serverConfig(withCA(good, ca)),
			`server certificate "broker.example" is signed by an unknown authority ("mqttload throw-away CA"): give its CA with --cafile`},
		{"CA of the same name", otherCA.options(), "localhost", serverConfig(good),
			`server certificate is signed by a CA with the name "mqttload throw-away CA" but another key than the one trusted: give the right CA with --cafile`},
		{"self-signed", ca.options(), "localhost", serverConfig(selfSigned(t)),
			`server certificate "alone" is self-signed by an unknown authority: give it with --cafile to trust it`},
		{"wrong host", ca.options(), "broker.test", serverConfig(ca.leaf(t, func(c *x509.Certificate) {
			c.DNSNames = []string{"localhost", "b.example"}
			c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		})), `server certificate is for localhost, b.example, 127.0.0.1, not for "broker.test": connect by one of its names, or give it with --servername`},
		{"wrong IP", ca.options(), "127.0.0.1", serverConfig(good),
			`server certificate is for localhost, not for "127.0.0.1": connect by one of its names, or give it with --servername`},
		{"common name only", ca.options(), "broker.example", serverConfig(ca.leaf(t, func(c *x509.Certificate) { c.DNSNames = nil })),
			`server certificate has no SAN for "broker.example", only the common name "broker.example", which is ignored: reissue it with subjectAltName=DNS:broker.example`},
		{"common name only, IP", ca.options(), "127.0.0.1", serverConfig(ca.leaf(t, func(c *x509.Certificate) { c.DNSNames = nil })),
			`server certificate has no SAN for "127.0.0.1", only the common name "broker.example", which is ignored: reissue it with subjectAltName=IP:127.0.0.1`},
		{"client certificate served", ca.options(), "localhost", serverConfig(ca.leaf(t, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})), "server certificate is not made for servers: it needs the extended key usage serverAuth"},
		{"client certificate missing, TLS 1.3", ca.options(), "localhost", mutual,
			"server requires a client certificate: give --cert and --key"},
		{"client certificate missing, TLS 1.2", ca.options(), "localhost", mutual12,
			"server refused the handshake: it requires a client certificate (--cert and --key), or shares no cipher or curve (--curves, --tls-min, --tls-max)"},
		// The foreign CA has the name that the server lists, so Go's client sends its certificate.
		{"client certificate of another CA", foreignOptions, "localhost", mutual,
			"server does not know the CA of the client certificate: give one it trusts with --cert and --key"},
		{"server too old", ca.options(), "localhost", tls11,
			"server speaks none of the TLS versions offered: widen --tls-min and --tls-max"},
		{"client too new", with(func(o *Options) { o.MinVersion = tls.VersionTLS13 }), "localhost", tls12,
			"server speaks none of the TLS versions offered: widen --tls-min and --tls-max"},
		{"ALPN", with(func(o *Options) { o.ALPN = []string{"h2"} }), "localhost", alpn,
			"server speaks none of the ALPN protocols offered: change or remove --alpn"},
		{"curves", with(func(o *Options) { o.Curves = []tls.CurveID{tls.X25519} }), "localhost", p384,
			"server refused the handshake: it requires a client certificate (--cert and --key), or shares no cipher or curve (--curves, --tls-min, --tls-max)"},
		{"good", ca.options(), "localhost", serverConfig(good), ""},
		{"good, by --servername", with(func(o *Options) { o.ServerName = "localhost" }), "127.0.0.1", serverConfig(good), ""},
		{"insecure", Options{Insecure: true}, "wrong.example", serverConfig(good), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := handshake(t, clientConfig(t, tt.options, tt.host), tt.server)
			if got := Explain(err, asFlag); got != tt.want {
				t.Errorf("Explain(%v)\n got %s\nwant %s", err, got, tt.want)
			}
		})
	}
}

// withCA is the certificate of a server that sends its CA's along.
func withCA(cert tls.Certificate, ca testCA) tls.Certificate {
	cert.Certificate = [][]byte{cert.Certificate[0], ca.cert.Raw}
	return cert
}

// TestExplainRefusedCertificates: the alerts arrive after a TLS 1.3 handshake,
// within the errors of whoever reads by then.
func TestExplainRefusedCertificates(t *testing.T) {
	alert := func(code uint8) error {
		return fmt.Errorf("mqtt: read CONNACK: %w", &net.OpError{Op: "remote error", Err: tls.AlertError(code)})
	}
	// RFC 8446 section 6.2
	for code, want := range map[uint8]string{
		42:  "server refused the client certificate, or requires one: give --cert and --key",
		43:  "server does not accept this kind of client certificate",
		44:  "server says the client certificate is revoked",
		45:  "server says the client certificate is expired",
		46:  "server refused the client certificate: give one it accepts",
		48:  "server does not know the CA of the client certificate",
		49:  "server refused the client certificate's owner",
		116: "server requires a client certificate: give --cert and --key",
	} {
		if got := Explain(alert(code), asFlag); !strings.HasPrefix(got, want) {
			t.Errorf("alert %d, %v: %s, want %s", code, alert(code), got, want)
		}
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := leafTemplate("alone", time.Now(), x509.ExtKeyUsageServerAuth)
	template.DNSNames = []string{"localhost"}
	template.Subject = pkix.Name{CommonName: "alone"}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestExplainPeersWithoutTLS(t *testing.T) {
	config := clientConfig(t, Options{}, "localhost")
	tests := []struct {
		name string
		peer func(net.Conn)
		want string
	}{
		{"answers in plain MQTT", func(c net.Conn) { _, _ = c.Write([]byte("\x20\x02\x00\x01\x20\x02\x00\x01")) },
			"first record does not look like a TLS handshake"},
		{"closes", func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) }, "server closed the connection during the TLS handshake"},
		{"resets", func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0)
		}, "server closed the connection during the TLS handshake"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := serve(t, config, tt.peer)
			if got := Explain(err, asFlag); !strings.HasPrefix(got, tt.want) || !strings.Contains(got, "remove --tls") {
				t.Errorf("Explain(%v) = %q", err, got)
			}
		})
	}
}

func TestExplainTimeout(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	_ = client.SetDeadline(time.Now().Add(-time.Second))
	err := tls.Client(client, clientConfig(t, Options{}, "localhost")).Handshake()
	if got := Explain(err, asFlag); got != "no answer to the TLS handshake in time: does this port speak TLS?" {
		t.Errorf("Explain(%v) = %q", err, got)
	}
}

func TestStateNames(t *testing.T) {
	bundle, err := ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	options := bundle.ClientOptions()
	state, err := handshake(t, clientConfig(t, options, "localhost"), bundle.ServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	version, cipher, curve, resumed := State(state)
	if version != "TLS 1.3" || !strings.HasPrefix(cipher, "TLS_") || curve != "X25519MLKEM768" || resumed {
		t.Errorf("State = %q %q %q %v", version, cipher, curve, resumed)
	}

	options.MaxVersion, options.Curves = tls.VersionTLS12, []tls.CurveID{tls.CurveP256}
	state, err = handshake(t, clientConfig(t, options, "localhost"), bundle.ServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	version, cipher, curve, _ = State(state)
	if version != "TLS 1.2" || !strings.HasPrefix(cipher, "TLS_ECDHE_ECDSA_") || curve != "CurveP256" {
		t.Errorf("State = %q %q %q", version, cipher, curve)
	}
	if version, cipher, curve, resumed = State(tls.ConnectionState{}); version+cipher+curve != "" || resumed {
		t.Errorf("State of nothing = %q %q %q %v", version, cipher, curve, resumed)
	}
}

func TestStateResumed(t *testing.T) {
	bundle, err := ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	client := clientConfig(t, bundle.ClientOptions(), "localhost")
	client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	server := bundle.ServerConfig()
	for i, want := range []bool{false, true} {
		state, err := handshake(t, client, server)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, resumed := State(state); resumed != want {
			t.Errorf("handshake %d: resumed = %v", i, resumed)
		}
	}
}

// TestResume: the second connection of one configuration takes up the session
// of the first where that is asked for, and not otherwise.
func TestResume(t *testing.T) {
	ca := newCA(t, time.Now())
	server := &tls.Config{Certificates: []tls.Certificate{ca.leaf(t, nil)}}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, resume := range []bool{false, true} {
			o := ca.options()
			o.Resume, o.MaxVersion = resume, version
			conf, err := o.ClientConfig("localhost")
			if err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				state, err := handshake(t, conf, server)
				if want := resume && i == 1; err != nil || state.DidResume != want {
					t.Errorf("%s, resume %v, connection %d: resumed %v, %v", tls.VersionName(version), resume, i, state.DidResume, err)
				}
			}
		}
	}
}
