// Nats serves the MQTT of nats-server on a loopback port, in a process of its own,
// for tests that measure it. It prints the address, and ends with its standard
// input, so that it cannot outlive the test.
//
//	nats PORT STORE
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: nats PORT STORE")
	}
	port, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "interop", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		// nats-server stores MQTT sessions in JetStream.
		JetStream: true, StoreDir: args[1],
		// More than the window of a run, and few enough for several subscriptions of
		// one client, which share 65,535.
		MQTT: server.MQTTOpts{Host: "127.0.0.1", Port: port, MaxAckPending: 10_000},
	})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return errors.New("not ready within a minute")
	}
	fmt.Printf("127.0.0.1:%d\n", port)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}
