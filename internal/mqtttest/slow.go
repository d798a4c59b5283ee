package mqtttest

import (
	"net"
	"time"
)

// Slow is a connection that carries Speed bytes per second in each direction.
// After the time Stops, unless that is zero, every call blocks for a minute.
type Slow struct {
	net.Conn
	Speed int
	Stops time.Time
}

// piece is how many bytes a Slow carries at a time.
const piece = 64 << 10

func (s *Slow) pass(n int) {
	time.Sleep(time.Duration(n) * time.Second / time.Duration(s.Speed))
	if !s.Stops.IsZero() && time.Now().After(s.Stops) {
		time.Sleep(time.Minute)
	}
}

// Read reads at most one piece.
func (s *Slow) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b[:min(len(b), piece)])
	s.pass(n)
	return n, err
}

// Write writes b in pieces.
func (s *Slow) Write(b []byte) (sent int, err error) {
	for len(b) > 0 && err == nil {
		var n int
		n, err = s.Conn.Write(b[:min(len(b), piece)])
		s.pass(n)
		sent, b = sent+n, b[n:]
	}
	return sent, err
}
