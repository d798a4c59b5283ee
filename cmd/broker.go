package cmd

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/tlsconf"
)

var brokerFlags = []flagGroup{{"Flags", []flagSpec{
	{name: "listen", help: "`ADDRESS` to listen on (default 127.0.0.1:1883, with --tls 127.0.0.1:8883)"},
	{name: "tls-listen", help: "`ADDRESS` to listen on with TLS, besides --listen"},
	{name: "tls", kind: toggle, help: "TLS on --listen"},
	{name: "cert", aliases: []string{"certfile", "cert-file"}, help: "`FILE` of the server certificate and its chain (default one to be thrown away)"},
	{name: "key", aliases: []string{"keyfile", "key-file"}, help: "`FILE` of its key, unless in the same file"},
	{name: "ca-out", help: "write the throw-away certificate's CA to `FILE`"},
	{name: "addr-file", help: "write the addresses to `FILE` once they are listened on, one URL a line"},
	{name: "quiet", kind: toggle, help: "do not say why connections end"},
}}}

// brokerOptions is what the broker command was asked to do.
type brokerOptions struct {
	listen, tlsListen          string
	cert, key, caOut, addrFile string
	quiet                      bool
}

func (a *app) brokerCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "broker [flags]", Short: "Serve the embedded broker", Args: noArgs,
		Long: "Broker serves the broker that mqttload measures when no other target is given.\n" +
			"It is made for measuring, not for production: it lives in memory, and everybody\n" +
			"who reaches it may connect, publish and subscribe.",
		Example: "  mqttload broker --listen 127.0.0.1:1883",
	}
	define(c, brokerFlags)
	c.RunE = func(c *cobra.Command, _ []string) error {
		o, err := readBrokerOptions(c)
		if err != nil {
			return err
		}
		return a.serve(c.Context(), o)
	}
	return c
}

func readBrokerOptions(c *cobra.Command) (brokerOptions, error) {
	fs := c.Flags()
	get := func(name string) string { return fs.Lookup(name).Value.String() }
	o := brokerOptions{
		listen: get("listen"), tlsListen: get("tls-listen"), cert: get("cert"), key: get("key"),
		caOut: get("ca-out"), addrFile: get("addr-file"), quiet: get("quiet") == "true",
	}
	var bad faults
	if get("tls") == "true" {
		if o.tlsListen != "" {
			bad.usage("give --listen with --tls, or --tls-listen", "--tls and --tls-listen both say where to serve TLS")
		}
		o.listen, o.tlsListen = "", o.listen
		if o.tlsListen == "" {
			o.tlsListen = "127.0.0.1:8883"
		}
	} else if o.listen == "" && o.tlsListen == "" {
		o.listen = "127.0.0.1:1883"
	}
	for _, name := range []string{"cert", "key", "ca-out"} {
		if fs.Changed(name) && o.tlsListen == "" {
			bad.usage("add --tls or --tls-listen", "--%s without TLS", name)
		}
	}
	if o.caOut != "" && o.cert != "" {
		bad.usage("leave one of them out", "--ca-out is for the throw-away certificate, and --cert gives another one")
	}
	if o.key != "" && o.cert == "" {
		bad.usage("give the certificate with --cert", "--key without --cert")
	}
	return o, bad.err()
}

// serve runs the broker until it is told to stop.
func (a *app) serve(ctx context.Context, o brokerOptions) error {
	var conf *tls.Config
	if o.tlsListen != "" {
		var err error
		if conf, err = serverTLS(o); err != nil {
			return err
		}
	}
	var cfg broker.Config
	if !o.quiet {
		cfg.Logf = func(format string, args ...any) { a.warn(format, args...) }
	}
	raiseNoFile()
	b := broker.New(cfg)
	defer b.Close()
	urls, err := a.listenAll(b, o, conf)
	if err != nil {
		return err
	}
	if o.addrFile != "" {
		if err := result.WriteFile(o.addrFile, []byte(strings.Join(urls, "\n")+"\n")); err != nil {
			return usageError("choose a file in a directory that exists", "--addr-file %s: %v", o.addrFile, osCause(err))
		}
	}
	a.warn("this broker is made for measuring, not for production: everybody may connect, and it keeps nothing")
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
	a.warn("stopped after %s: %s messages in, %s out, %s dropped", plural(int(s.Connections), "connection"),
		result.FormatInt(s.MessagesIn), result.FormatInt(s.MessagesOut), result.FormatInt(s.Dropped))
	return nil
}

// listenAll opens the listeners and serves them; none serves if one fails.
func (a *app) listenAll(b *broker.Broker, o brokerOptions, conf *tls.Config) ([]string, error) {
	var urls []string
	var listeners []net.Listener
	for _, l := range []struct {
		scheme, addr string
		conf         *tls.Config
	}{{"mqtt", o.listen, nil}, {"mqtts", o.tlsListen, conf}} {
		if l.addr == "" {
			continue
		}
		a.warnPublic(l.addr)
		nl, err := broker.Listen(l.addr, l.conf)
		if err != nil {
			for _, other := range listeners {
				_ = other.Close()
			}
			return nil, usageError("", "%v", err)
		}
		listeners = append(listeners, nl)
		urls = append(urls, l.scheme+"://"+nl.Addr().String())
	}
	for _, l := range listeners {
		go func() {
			if err := b.Serve(l); err != nil && err != broker.ErrClosed {
				a.warn("error: %v", err)
			}
		}()
	}
	return urls, nil
}

// warnPublic warns of an address that others can reach.
func (a *app) warnPublic(addr string) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "localhost" {
		return
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		a.warn("warning: %s is not a loopback address: everybody who reaches it may publish and subscribe", addr)
	}
}

// serverTLS is the listener's configuration: from files, or thrown away afterwards.
func serverTLS(o brokerOptions) (*tls.Config, error) {
	if o.cert != "" {
		// A server's key pair is read as a client's is, with the same words
		// about the same faults in files.
		conf, err := tlsconf.Options{CertFile: o.cert, KeyFile: o.key}.ClientConfig("")
		if err != nil {
			return nil, usageError("", "%v", err)
		}
		return &tls.Config{Certificates: conf.Certificates, MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}, nil
	}
	host, _, _ := net.SplitHostPort(o.tlsListen)
	var hosts []string
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		hosts = append(hosts, host)
	}
	bundle, err := tlsconf.ThrowAway(hosts, time.Now())
	if err != nil {
		return nil, fmt.Errorf("make a throw-away certificate: %w", err)
	}
	if o.caOut != "" {
		if err := result.WriteFile(o.caOut, bundle.CAPEM()); err != nil {
			return nil, usageError("choose a file in a directory that exists", "--ca-out %s: %v", o.caOut, osCause(err))
		}
	}
	return bundle.ServerConfig(), nil
}
