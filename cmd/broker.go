package cmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/file"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// brokerOptions is what the broker command was asked to do.
type brokerOptions struct {
	listen, tlsListen          string
	cert, key, caOut, addrFile string
	users                      string
	reference, referenceCode   string
	limits                     broker.Config
	quiet                      bool
}

func (a *app) brokerCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "broker [flags]", Short: "Run the embedded broker", Args: noArgs,
		Long: "Broker serves the embedded broker, which run measures when no target is given.\n" +
			"It is made for measuring, not for production: it keeps everything in memory, and\n" +
			"anyone who can reach it may publish and subscribe, unless --users lists who may.\n\n" +
			"Precedence, highest first: flag, environment (MQTTLOAD_TLS_LISTEN is --tls-listen),\n" +
			"configuration file (tls-listen: ...), default. In the environment and the file,\n" +
			"--tls, --cert, --key, --receive-maximum, --max-keepalive and --refuse-filter have\n" +
			"the prefix \"broker\": MQTTLOAD_BROKER_TLS, broker-tls. Without it, these names\n" +
			"belong to the clients of run.",
		Example: "  mqttload broker --listen 127.0.0.1:1883",
	}
	define(c, brokerFlags)
	complete(c, "server-reference-code", []string{"use-another", "moved"})
	c.RunE = func(c *cobra.Command, _ []string) error {
		o, err := a.readBrokerOptions(c)
		if err != nil {
			return err
		}
		return a.serve(c.Context(), o)
	}
	return c
}

func (a *app) readBrokerOptions(c *cobra.Command) (brokerOptions, error) {
	s, bad := a.gather(c, brokerFlags)
	if s["tls"].source == s["tls-listen"].source && s["tls"].on() {
		bad.Usage("give --listen with --tls, or --tls-listen", "%s and %s both say where to serve TLS", s["tls"].place, s["tls-listen"].place)
	} else if s["tls"].on() {
		s.settle("tls", []string{"tls-listen"}, &bad)
	}
	if s["ca-out"].source != s["cert"].source {
		s.settle("ca-out", []string{"cert"}, &bad)
	} else if s["cert"].source > 0 {
		bad.Usage("remove one of them", "%s writes the CA of the temporary certificate, but %s gives another certificate", s["ca-out"].place, s["cert"].place)
	}
	o := brokerOptions{
		listen: s["listen"].value(), tlsListen: s["tls-listen"].value(), cert: s["cert"].value(), key: s["key"].value(),
		caOut: s["ca-out"].value(), addrFile: s["addr-file"].value(), users: s["users"].value(),
		reference: s["server-reference"].value(), referenceCode: s["server-reference-code"].value(), quiet: s["quiet"].on(),
	}
	switch {
	case s["tls"].on():
		o.listen, o.tlsListen = "", cmp.Or(o.listen, "127.0.0.1:8883")
	case o.listen == "" && o.tlsListen == "":
		o.listen = "127.0.0.1:1883"
	}
	for _, name := range []string{"cert", "key", "ca-out"} {
		if s[name].source > 0 && o.tlsListen == "" {
			bad.Usage("add --tls or --tls-listen", "%s without TLS", s[name].place)
		}
	}
	if o.key != "" && o.cert == "" {
		bad.Usage("give the certificate with --cert", "%s without --cert", s["key"].place)
	}
	if s["users"].source > 0 && o.users == "" {
		bad.Usage("name the file, or leave it out to let anyone connect", "%s: the file name is missing", s["users"].place)
	}
	checkReference(s, &bad)
	o.limits = brokerLimits(s, &bad)
	return o, bad.Err()
}

// serve runs the broker until it is stopped.
func (a *app) serve(ctx context.Context, o brokerOptions) error {
	var conf *tls.Config
	if o.tlsListen != "" {
		var err error
		if conf, err = serverTLS(o); err != nil {
			return err
		}
	}
	cfg := o.limits
	cfg.ServerReference, cfg.ServerReferenceCode = o.reference, referenceCodes[o.referenceCode]
	access := "no authentication"
	if o.users != "" {
		var err error
		if cfg.Users, err = a.readUsers(o.users); err != nil {
			return err
		}
		access = "every user may publish and subscribe to everything"
	}
	if !o.quiet {
		cfg.Logf = func(format string, args ...any) { a.warn(format, args...) }
	}
	bench.RaiseNoFile()
	b := broker.New(cfg)
	defer b.Close()
	urls, err := a.listenAll(b, o, conf)
	if err != nil {
		return err
	}
	if o.addrFile != "" {
		if err := result.WriteFile(o.addrFile, []byte(strings.Join(urls, "\n")+"\n")); err != nil {
			return bench.Faultf(bench.Usage, "choose a file in a directory that exists", "--addr-file %s: %v", o.addrFile, file.Cause(err))
		}
	}
	a.warn("this broker is made for measuring, not for production: %s, nothing persisted", access)
	ctx, stop := a.interruptible(ctx, func() {})
	defer stop()
	for _, u := range urls {
		a.warn("listening on %s", u)
	}
	<-ctx.Done()
	s := b.Stats()
	if err := b.Close(); err != nil {
		a.warn("warning: some connections had to be cut")
	}
	a.warn("stopped after %s: %s messages in, %s out, %s dropped", text.Count(s.Connections, "connection"),
		result.FormatInt(s.MessagesIn), result.FormatInt(s.MessagesOut), result.FormatInt(s.Dropped))
	return nil
}

// listenAll opens the listeners and serves them. If one cannot be opened, it closes the
// others.
func (t *terminal) listenAll(b *broker.Broker, o brokerOptions, conf *tls.Config) ([]string, error) {
	var urls []string
	var listeners []net.Listener
	for _, l := range []struct {
		scheme, addr string
		conf         *tls.Config
	}{{"mqtt", o.listen, nil}, {"mqtts", o.tlsListen, conf}} {
		if l.addr == "" {
			continue
		}
		if o.users == "" {
			t.warnPublic(l.addr)
		}
		nl, err := broker.Listen(l.scheme, l.addr, l.conf)
		if err != nil {
			for _, other := range listeners {
				_ = other.Close()
			}
			return nil, bench.Faultf(bench.Usage, "", "%v", err)
		}
		listeners = append(listeners, nl)
		urls = append(urls, l.scheme+"://"+nl.Addr().String())
	}
	for _, l := range listeners {
		go func() {
			if err := b.Serve(l); err != nil && err != broker.ErrClosed {
				t.warn("error: %v", err)
			}
		}()
	}
	return urls, nil
}

// warnPublic warns of an address that other machines can reach.
func (t *terminal) warnPublic(addr string) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "localhost" {
		return
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		t.warn("warning: %s is not a loopback address: anyone who can reach it may publish and subscribe", addr)
	}
}

// keyPairFaults are the faults of the broker's key pair, with the flags to blame.
func keyPairFaults(err error) (bad bench.Faults) {
	name := func(f tlsconf.Field) string {
		if f == tlsconf.KeyPasswordFile {
			return "one without a password" // the broker has no flag for it
		}
		return scenarios.Flag(string(f))
	}
	for _, one := range tlsconf.Faults(err) {
		msg := one.Error()
		var fault *tlsconf.FieldError
		if errors.As(one, &fault) {
			msg = fault.Named(name)
		}
		bad.Usage("", "%s", msg)
	}
	return bad
}

// serverTLS is the configuration of the TLS listener: from files, or with a
// temporary certificate.
func serverTLS(o brokerOptions) (*tls.Config, error) {
	if o.cert != "" {
		// The key pair is read like that of a client, so that the messages
		// about bad files are the same.
		pair, err := tlsconf.Options{}.KeyPair(o.cert, o.key)
		if err != nil {
			return nil, keyPairFaults(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}, nil
	}
	host, _, _ := net.SplitHostPort(o.tlsListen)
	var hosts []string
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		hosts = append(hosts, host)
	}
	bundle, err := tlsconf.ThrowAway(hosts, time.Now())
	if err != nil {
		return nil, fmt.Errorf("make a temporary certificate: %w", err)
	}
	if o.caOut != "" {
		if err := checkReplaceable(o.caOut); err != nil {
			return nil, err
		}
		if err := result.WriteFile(o.caOut, bundle.CAPEM()); err != nil {
			return nil, bench.Faultf(bench.Usage, "choose a file in a directory that exists", "--ca-out %s: %v", o.caOut, file.Cause(err))
		}
	}
	return bundle.ServerConfig(), nil
}

// checkReplaceable refuses to overwrite a file that holds anything but
// certificates: a typo in --ca-out must not destroy it.
func checkReplaceable(path string) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil // nothing can be lost, or writing reports the error
	}
	b, err := file.Read(path, maxSmallFile)
	if err == nil && onlyCertificates(b) {
		return nil
	}
	return bench.Faultf(bench.Usage, "remove it, or choose another file", "--ca-out %s: exists and holds something other than certificates", path)
}

// onlyCertificates reports whether b is PEM certificates and white space, or
// nothing at all.
func onlyCertificates(b []byte) bool {
	b = bytes.TrimSpace(b)
	for len(b) > 0 {
		block, rest := pem.Decode(b)
		// Decode skips any text before the block.
		if block == nil || block.Type != "CERTIFICATE" || !bytes.HasPrefix(b, []byte("-----BEGIN CERTIFICATE-----")) {
			return false
		}
		b = bytes.TrimSpace(rest)
	}
	return true
}
