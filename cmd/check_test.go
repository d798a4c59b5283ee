//go:build unix

package cmd

import (
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/tlsconf"
)

// expired serves TLS with a certificate that ended yesterday, sets a variable to
// its URL and writes its CA: expired NAME FILE
func expired(ts *testscript.TestScript, _ bool, args []string) {
	b, err := tlsconf.ThrowAway(nil, time.Now().Add(-31*24*time.Hour))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.CAPEM(), 0o644))
	l, err := broker.Listen("mqtts", "127.0.0.1:0", b.ServerConfig())
	ts.Check(err)
	srv := broker.New(broker.Config{})
	go func() { _ = srv.Serve(l) }()
	ts.Defer(func() { _ = srv.Close() })
	ts.Setenv(args[0], "mqtts://"+l.Addr().String())
}
