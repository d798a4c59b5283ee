package broker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// settle waits until cond holds, and fails the test if it never does.
func settle(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("%s: still not so after %v", what, patience)
		}
		runtime.Gosched()
	}
}

// TestShutdown: clients get a DISCONNECT, all goroutines end, later connections are
// refused.
func TestShutdown(t *testing.T) {
	before := runtime.NumGoroutine()
	b := New(Config{})
	l, err := Listen("mqtt", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.Serve(l) }()
	addr := l.Addr().String()
	five := connect(t, addr, clean(packet.V5, "five"))
	four := connect(t, addr, kept(packet.V311, "four"))
	idle := join(t, addr)
	four.subscribe(sub("#", 1))
	five.publish1("a", "x")
	four.wantPublish("a", "x", 1)
	settle(t, "three connections", func() bool { return b.Stats().Connections == 3 })
	if err := b.shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-served; !errors.Is(err, ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	five.wantClosed(packet.ReasonServerShuttingDown)
	four.wantClosed(0)
	idle.wantEOF()
	for _, c := range []*peer{five, four, idle} {
		_ = c.nc.Close()
	}
	settle(t, "goroutines", func() bool { return runtime.NumGoroutine() <= before })
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the port is still open")
	}
	here, there := net.Pipe()
	b.ServeConn(there)
	if _, err := here.Write([]byte{0}); err == nil {
		t.Error("a closed broker serves a connection")
	}
	if err := b.Serve(l); !errors.Is(err, ErrClosed) {
		t.Errorf("Serve after Shutdown: %v", err)
	}
	if s := b.Stats(); s.Connected != 0 || s.Connections != 3 || s.MessagesIn != 1 || s.MessagesOut != 1 ||
		s.BytesIn == 0 || s.BytesOut == 0 || s.Reads == 0 || s.Writes == 0 {
		t.Errorf("%+v", s)
	}
}

// TestShutdownCuts: a client that reads nothing cannot hold up the end for
// longer than the context allows.
func TestShutdownCuts(t *testing.T) {
	virtual(t, Config{}, func(t *testing.T, b *Broker) {
		c := connectPipe(t, b, clean(packet.V5, "c"))
		_ = c
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := b.shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		}
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("took %v", d)
		}
	})
}

// TestChurn: many clients connect, subscribe, publish to each other and end in every
// possible way. The broker keeps nothing of them.
func TestChurn(t *testing.T) {
	const rounds, parallel = 50, 20
	b := startBroker(t, Config{})
	addr := listen(t, b)
	watcher := connect(t, addr, clean(packet.V5, "watcher"))
	base := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for worker := range parallel {
		wg.Go(func() {
			for round := range rounds {
				v := versions[(worker+round)%3]
				c := connect(t, addr, clean(v, fmt.Sprint("churn", worker)))
				c.subscribe(sub(fmt.Sprint("t/", worker%4, "/#"), byte(round%3)), sub("$share/g/t/+/x", 1))
				c.publish(fmt.Sprint("t/", (worker+1)%4, "/x"), "payload", byte(round%3), uint16(min(round%3, 1)))
				switch round % 4 {
				case 0:
					c.send(&packet.Disconnect{})
				case 1:
					c.raw("f3 00")
				case 2:
					_ = c.nc.(*net.TCPConn).SetLinger(0)
				}
				_ = c.nc.Close()
			}
		})
	}
	wg.Wait()
	watcher.sync()
	settle(t, "connections", func() bool { return b.Stats().Connected == 1 })
	settle(t, "goroutines", func() bool { return runtime.NumGoroutine() <= base })
	s := b.Stats()
	if s.Sessions != 1 || s.Subscriptions != 0 || s.Dropped != 0 || s.Connections != rounds*parallel+1 {
		t.Errorf("%+v", s)
	}
	if !b.subs.root.empty() {
		t.Error("the subscription tree is not empty")
	}
}

// TestIdleBroker: a broker without connections runs no goroutine.
func TestIdleBroker(t *testing.T) {
	before := runtime.NumGoroutine()
	b := New(Config{})
	here, there := net.Pipe()
	go b.ServeConn(there)
	c := peerOf(t, here)
	c.connect(clean(packet.V311, "c"))
	_ = here.Close()
	settle(t, "goroutines", func() bool { return runtime.NumGoroutine() <= before })
}

// certificate makes one for 127.0.0.1, for this run.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// TestListeners serves plain and TLS listeners at once. A silent TLS peer does not
// keep others from connecting.
func TestListeners(t *testing.T) {
	cert, pool := certificate(t)
	b := startBroker(t, Config{})
	plain := listen(t, b)
	secure, err := Listen("mqtts", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = b.Serve(secure) }()
	silent, err := net.Dial("tcp", secure.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()

	overTLS, err := tls.Dial("tcp", secure.Addr().String(), &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	s := connect(t, plain, clean(packet.V5, "plain"))
	s.subscribe(sub("#", 1))
	c := peerOf(t, overTLS)
	c.connect(clean(packet.V5, "secure"))
	c.subscribe(sub("echo", 0))
	c.publish1("to/plain", "x")
	s.sendAck(packet.PUBACK, s.wantPublish("to/plain", "x", 1).PacketID)
	s.publish("echo", "y", 0, 0)
	c.wantPublish("echo", "y", 0)
	s.wantPublish("echo", "y", 0)
	c.raw("f0 00")
	c.wantClosed(packet.ReasonProtocolError)
	if _, err := Listen("mqtt", "127.0.0.1:99999", nil); err == nil {
		t.Error("listening on port 99999 succeeds")
	}
	for _, scheme := range []string{"", "ws"} {
		if _, err := Listen(scheme, "127.0.0.1:0", nil); err == nil || !strings.Contains(err.Error(), "does not serve scheme") {
			t.Errorf("scheme %q: %v", scheme, err)
		}
	}
}

// TestTLSHandshakeTimeout: the broker closes the connection of a silent TLS peer.
func TestTLSHandshakeTimeout(t *testing.T) {
	cert, _ := certificate(t)
	b := startBroker(t, Config{ConnectTimeout: 50 * time.Millisecond})
	l, err := Listen("mqtts", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = b.Serve(l) }()
	join(t, l.Addr().String()).wantEOF()
}

// TestSlowExchange: the timeout for CONNECT also applies to an exchange that the
// client does not continue, and the log says so.
func TestSlowExchange(t *testing.T) {
	lines := make(chan string, 1)
	addr := listen(t, startBroker(t, Config{
		Users: pencil(t).users, ConnectTimeout: 50 * time.Millisecond,
		Logf: func(format string, args ...any) { lines <- fmt.Sprintf(format, args...) },
	}))
	c := join(t, addr)
	p := scramConnect("c")
	c.write(p.Append(nil))
	c.v = packet.V5
	c.frame(packet.AUTH)
	c.wantEOF()
	if line := <-lines; !strings.Contains(line, "authentication not complete in time") {
		t.Error(line)
	}
}
