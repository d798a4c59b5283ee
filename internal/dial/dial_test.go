package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
)

// TestTurns: targets take turns, and source addresses with each of them.
func TestTurns(t *testing.T) {
	c := &scenarios.Case{Target: scenarios.Target{
		URLs:      []scenarios.URL{{Scheme: "mqtt", Host: "a"}, {Scheme: "mqtt", Host: "b"}},
		SourceIPs: []string{"127.0.0.2", "127.0.0.3"},
	}}
	r := NewRoutes(c, nil)
	var got []string
	for i := range 5 {
		d := r.Dialer(i)
		got = append(got, d.URL.Host+d.Source[8:])
	}
	if want := []string{"a2", "b2", "a3", "b3", "a2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// listen accepts connections and hands out where they come from.
func listen(t *testing.T, address string) (port uint16, from chan netip.Addr) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("cannot listen on %s: %v", address, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	from = make(chan netip.Addr, 100)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			from <- nc.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
			_ = nc.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort().Port(), from
}

func routesTo(host string, port uint16, sources ...string) *Routes {
	return NewRoutes(&scenarios.Case{Target: scenarios.Target{
		URLs: []scenarios.URL{{Scheme: "mqtt", Host: host, Port: int(port)}}, SourceIPs: sources,
	}}, nil)
}

func TestSourceAddresses(t *testing.T) {
	port, from := listen(t, "127.0.0.1:0")
	r := routesTo("127.0.0.1", port, "127.0.0.2", "127.0.0.3")
	for i, want := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.2"} {
		d := r.Dialer(i)
		nc, err := d.Dial(t.Context())
		if err != nil {
			t.Skipf("cannot connect from %s: %v", d.Source, err)
		}
		_ = nc.Close()
		if got := (<-from).String(); got != want {
			t.Errorf("client %d came from %s, want %s", i, got, want)
		}
		if d.Steps.TCP <= 0 || d.Steps.DNS != 0 || d.Steps.TLS != 0 {
			t.Errorf("steps %+v of a plain connection to an address", d.Steps)
		}
	}
	if _, err := routesTo("127.0.0.1", port, "::1").Dialer(0).Dial(t.Context()); err == nil {
		t.Error("an IPv6 source address reached an IPv4 broker")
	}
}

// TestFallback: a broker on IPv4 only is found behind a name that is IPv6
// first, and found at once by the next client.
func TestFallback(t *testing.T) {
	port, from := listen(t, "127.0.0.1:0")
	n := &name{host: "broker", addrs: []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}}
	for range 2 {
		nc, err := n.connect(t.Context(), port, "")
		if err != nil {
			t.Fatal(err)
		}
		_ = nc.Close()
		<-from
		if n.good.Load() != 2 {
			t.Errorf("address %d is taken for the good one", n.good.Load())
		}
	}
	n.good.Store(1) // it was on ::1 before, and has moved
	if _, err := n.connect(t.Context(), port, ""); err == nil {
		t.Fatal("the old address still answers")
	}
	nc, err := n.connect(t.Context(), port, "")
	if err != nil {
		t.Fatalf("the new address is not found: %v", err)
	}
	_ = nc.Close()
}

// TestResolveOnce: many clients at once ask the resolver once.
func TestResolveOnce(t *testing.T) {
	r := routesTo("localhost", 1)
	var asked atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			n, took, err := r.resolve(t.Context(), "localhost")
			if err != nil || len(n.addrs) == 0 {
				t.Errorf("localhost: %v", err)
			}
			if took > 0 {
				asked.Add(1)
			}
		})
	}
	wg.Wait()
	if asked.Load() != 1 {
		t.Errorf("the resolver was asked %d times", asked.Load())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(mqtt.ErrConnectTimeout)
	for range 2 { // a failure is not kept
		_, _, err := r.resolve(ctx, "no.such.host.invalid")
		if !errors.Is(err, mqtt.ErrConnectTimeout) {
			t.Errorf("a look-up whose time is up: %v", err)
		}
	}
	if len(r.names) != 1 {
		t.Errorf("%d names are kept, want that of localhost", len(r.names))
	}
}

// TestConnackTimeout: a broker that accepts and says nothing fails a client
// after the connect timeout, not sooner and not later, under a name of its own.
func TestConnackTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := scenarios.Case{Protocol: packet.V311, Transport: scenarios.TCP, Target: scenarios.Target{
			URLs: []scenarios.URL{{Scheme: "mqtt", Host: "broker", Port: 1883}},
		}}
		r := NewRoutes(&c, func(context.Context, string, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = far.Read(make([]byte, 64)) }()
			t.Cleanup(func() { _ = far.Close() })
			return near, nil
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, mqtt.ErrConnectTimeout)
		defer cancel()
		began := time.Now()
		d := r.Dialer(0)
		_, err := mqtt.Connect(ctx, mqtt.Config{Dial: d.Dial, Version: packet.V311, ClientID: "c", CleanStart: true})
		if time.Since(began) != 2*time.Second {
			t.Errorf("failed after %v", time.Since(began))
		}
		err = d.Fault(err)
		var failed *Error
		if KindOf(err) != "connack timeout" || !errors.As(err, &failed) || failed.Cause() != "no CONNACK within the connect timeout" {
			t.Errorf("%s: %v", KindOf(err), err)
		}
		if want := fmt.Sprintf("connect %s: no CONNACK within the connect timeout", d.URL); err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	})
}
