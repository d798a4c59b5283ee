package main

import (
	"errors"
	"io"
	"net"

	"github.com/mqttload/mqttload/mqtt/packet"
)

// rawBytes is not a client, but the lower bound of all clients: it writes a window
// of PUBLISH packets encoded beforehand, and reads as many bytes of
// acknowledgements as these cause, without looking at them. It costs what two
// processes need to wake each other once per window.
const rawBytes = "raw bytes"

type raw struct {
	nc        net.Conn
	qos       byte
	window    int
	windowOut []byte // a window of PUBLISH
	pubrel    []byte // a window of PUBREL
	in        []byte
}

func connectRaw(c *conf, id string, _ func([]byte)) (session, error) {
	nc, err := net.Dial("tcp", c.addr)
	if err != nil {
		return nil, err
	}
	hello, err := (&packet.Connect{Version: packet.V311, ClientID: id, CleanStart: true}).Append(nil)
	if err != nil {
		return nil, err
	}
	s := &raw{nc: nc, qos: c.qos, window: c.window, in: make([]byte, 4*c.window)}
	for i := range c.window {
		p := packet.Publish{Topic: []byte(topic), QoS: c.qos, Payload: make([]byte, c.payload), PacketID: uint16(i + 1)}
		if s.windowOut, err = p.Append(s.windowOut, packet.V311); err != nil {
			return nil, err
		}
		s.pubrel = packet.AppendAck(s.pubrel, packet.PUBREL, p.PacketID)
	}
	if _, err = nc.Write(hello); err == nil {
		_, err = io.ReadFull(nc, s.in[:4]) // CONNACK
	}
	return s, err
}

func (s *raw) subscribe(string, byte) error { return errors.ErrUnsupported }

func (s *raw) publish(n int, _ gate) error {
	size := len(s.windowOut) / s.window
	for n > 0 {
		k := min(n, s.window)
		n -= k
		if err := s.round(s.windowOut[:k*size], k); err != nil {
			return err
		}
		if s.qos == 2 {
			if err := s.round(s.pubrel[:4*k], k); err != nil {
				return err
			}
		}
	}
	return nil
}

// round writes out and reads k acknowledgements of four bytes.
func (s *raw) round(out []byte, k int) error {
	if _, err := s.nc.Write(out); err != nil {
		return err
	}
	_, err := io.ReadFull(s.nc, s.in[:4*k])
	return err
}

func (s *raw) close() { _ = s.nc.Close() }
