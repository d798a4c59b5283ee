package wire

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"
)

// frames is a layer over another connection. Unlike TLS it does not survive the error
// nothingYet.
type frames struct {
	net.Conn
	t *testing.T
}

func (f frames) NetConn() net.Conn { return f.Conn }

func (f frames) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if errors.As(err, new(nothingYet)) {
		f.t.Error("a read of a layer did not wait")
	}
	return n, err
}

func layeredPair(t *testing.T) (net.Conn, net.Conn) {
	near, far := tlsPair(t)
	return frames{near, t}, frames{frames{far, t}, t}
}

func TestTLSOf(t *testing.T) {
	near, far := tlsPair(t)
	plain, _ := net.Pipe()
	for _, c := range []struct{ nc, want net.Conn }{
		{nil, nil}, {plain, nil}, {frames{plain, t}, nil}, {near, near}, {frames{near, t}, near}, {frames{frames{far, t}, t}, far},
	} {
		got := TLSOf(c.nc)
		if c.want == nil && got != nil || c.want != nil && got != c.want.(TLSConn) {
			t.Errorf("TLS below %T is %v", c.nc, got)
		}
		if got != nil && got.ConnectionState().Version != tls.VersionTLS13 {
			t.Errorf("state %+v", got.ConnectionState())
		}
	}
}

// TestCloseLayers: closing a connection to a peer that does not read takes no time,
// even if layers would send something on Close.
func TestCloseLayers(t *testing.T) {
	for name, end := range map[string]func(nc net.Conn){
		"the connection": func(nc net.Conn) {
			c := New(nc, Options{})
			c.End(append(c.Begin(), make([]byte, 32<<20)...))
			_ = c.Flush()
			_ = c.Close()
		},
		"the socket": func(nc net.Conn) { _ = CloseSocket(nc) },
	} {
		t.Run(name, func(t *testing.T) {
			near, _ := layeredPair(t)
			began := time.Now()
			end(near)
			if took := time.Since(began); took > 4*time.Second { // crypto/tls waits 5 s to write its alert
				t.Errorf("took %v", took)
			}
			if _, err := near.Read(make([]byte, 1)); err == nil {
				t.Error("it is still open")
			}
		})
	}
}
