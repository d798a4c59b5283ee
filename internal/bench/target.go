package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// onEmbedded reports whether any case runs against the embedded broker.
func onEmbedded(cases []scenarios.Case) bool {
	return slices.ContainsFunc(cases, func(c scenarios.Case) bool { return len(c.Target.URLs) == 0 })
}

// firstURL is the target in the report until a connection knows more.
func firstURL(cases []scenarios.Case) string {
	if i := slices.IndexFunc(cases, func(c scenarios.Case) bool { return len(c.Target.URLs) > 0 }); i >= 0 {
		return cases[i].Target.URLs[0].String()
	}
	return ""
}

// StartEmbedded starts the embedded broker on free ports of the loopback
// address, with the listeners that the cases need, and returns the cases with
// these listeners as their targets. TLS listeners use a temporary certificate,
// which clients verify.
func StartEmbedded(cases []scenarios.Case) (*broker.Broker, []scenarios.Case, error) {
	b := broker.New(broker.Config{})
	at := map[scenarios.Transport]scenarios.Endpoint{}
	var bundle *tlsconf.Bundle
	for i := range cases {
		t := cases[i].Transport
		if _, listens := at[t]; listens || len(cases[i].Target.URLs) > 0 {
			continue
		}
		var err error
		if t.Secure() && bundle == nil {
			bundle, err = tlsconf.ThrowAway(serverNames(cases), time.Now())
		}
		if err == nil {
			at[t], err = listenEmbedded(b, t, bundle)
		}
		if err != nil {
			_ = b.Close()
			return nil, nil, fmt.Errorf("start the embedded broker: %w", err)
		}
	}
	return b, scenarios.At(cases, at), nil
}

func serverNames(cases []scenarios.Case) []string {
	var list []string
	for _, c := range cases {
		if name := c.TLS.ServerName; name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

func listenEmbedded(b *broker.Broker, t scenarios.Transport, bundle *tlsconf.Bundle) (end scenarios.Endpoint, err error) {
	var conf *tls.Config
	if t.Secure() {
		conf, end.CAPEM = bundle.ServerConfig(), bundle.CAPEM()
	}
	l, err := broker.Listen(t.Scheme(), "127.0.0.1:0", conf)
	if err != nil {
		return end, err
	}
	end.URL = scenarios.URL{Scheme: t.Scheme(), Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, HasPort: true}
	go func() { _ = b.Serve(l) }() // ends with ErrClosed when the broker does
	return end, nil
}

// targetLine names the targets and the addresses that their names resolve to, so
// that the user notices a wrong machine before it is loaded.
func targetLine(ctx context.Context, cases []scenarios.Case, embedded bool) string {
	var parts []string
	for _, c := range cases {
		for _, u := range c.Target.URLs {
			s := u.String()
			if addrs := resolve(ctx, u.Host); len(addrs) > 0 && !slices.Equal(addrs, []string{u.Host}) {
				s += " (" + strings.Join(addrs, ", ") + ")"
			}
			if !slices.Contains(parts, s) {
				parts = append(parts, s)
			}
		}
	}
	line := "target: " + strings.Join(parts, ", ")
	if embedded {
		line += ", the embedded broker: give --url to measure another one"
	}
	return line
}

// resolveWait bounds the time of the target line. Names that do not resolve are
// reported when clients connect.
const resolveWait = 3 * time.Second

func resolve(ctx context.Context, host string) []string {
	ctx, cancel := context.WithTimeout(ctx, resolveWait)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil
	}
	return addrs
}
