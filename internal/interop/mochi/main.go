// Mochi serves the broker of mochi-mqtt/server in a process of its own, for tests
// that measure it: it panics on a SUBSCRIBE that lacks its last byte, and a test must
// survive that. It prints its address, and ends with its standard input, so that it
// cannot outlive the test.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "mochi:", err)
		os.Exit(1)
	}
}

func serve() error {
	caps := mqtt.NewDefaultServerCapabilities()
	// With the defaults a burst of QoS 2 fills these, and mochi silently drops
	// messages. Every client gets a channel of this size.
	caps.MaximumClientWritesPending = 1 << 14
	caps.MaximumInflight = 1<<16 - 1
	caps.ReceiveMaximum = 1<<16 - 1
	s := mqtt.New(&mqtt.Options{
		Capabilities:             caps,
		ClientNetReadBufferSize:  64 << 10,
		ClientNetWriteBufferSize: 64 << 10,
		Logger:                   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err := s.AddHook(new(auth.AllowHook), nil); err != nil {
		return err
	}
	l := listeners.NewTCP(listeners.Config{ID: "tcp", Address: "127.0.0.1:0"})
	if err := s.AddListener(l); err != nil {
		return err
	}
	if err := s.Serve(); err != nil {
		return err
	}
	fmt.Println(l.Address())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return s.Close()
}
