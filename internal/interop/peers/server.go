package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/tlsconf"
)

// runServer runs the other end: it prints "addr HOST:PORT", and answers "count"
// with "count MESSAGES_IN MESSAGES_OUT CONNECTIONS". It ends with its input. kind
// is sink, ack, flood or broker. With a dir it uses TLS and writes the certificate
// authority to dir.
func runServer(kind, dir string, in io.Reader, out io.Writer) error {
	scheme, tc := "mqtt", (*tls.Config)(nil)
	if dir != "" {
		bundle, err := tlsconf.ThrowAway(nil, time.Now())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "ca.pem"), bundle.CAPEM(), 0o600); err != nil {
			return err
		}
		scheme, tc = "mqtts", bundle.ServerConfig()
	}
	l, err := broker.Listen(scheme, "127.0.0.1:0", tc)
	if err != nil {
		return err
	}
	counted := &countingListener{Listener: l}
	count, err := serve(kind, counted)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "addr", l.Addr())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		in, sent := count()
		fmt.Fprintln(out, "count", in, sent, counted.n.Load())
	}
	return nil
}

// serve starts a server of the kind, and returns a function with its counts of
// messages.
func serve(kind string, l net.Listener) (count func() (in, out int64), err error) {
	if kind == "broker" {
		b := broker.New(broker.Config{})
		go b.Serve(l)
		return func() (int64, int64) { s := b.Stats(); return s.MessagesIn, s.MessagesOut }, nil
	}
	kinds := map[string]mqtttest.Kind{"sink": mqtttest.Sink, "ack": mqtttest.AckingSink, "flood": mqtttest.Flood}
	k, ok := kinds[kind]
	if !ok {
		return nil, errors.New("server must be sink, ack, flood or broker")
	}
	t := &mqtttest.Target{Kind: k}
	go t.Serve(l)
	if k == mqtttest.Flood {
		return func() (int64, int64) { return 0, t.Messages() }, nil
	}
	return func() (int64, int64) { return t.Messages(), 0 }, nil
}

// countingListener counts connections.
type countingListener struct {
	net.Listener
	n atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return nc, err
}
