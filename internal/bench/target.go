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

// Aim picks for every case those of its targets that speak its transport, and
// reads its certificates now rather than when clients connect. Cases without a
// target are left to the embedded broker.
func Aim(cases []scenarios.Case) Faults {
	var bad Faults
	both := mixed(cases)
	for i := range cases {
		c := &cases[i]
		if len(c.Target.URLs) > 0 {
			c.Target.URLs = suiting(c, both, &bad)
		}
		if c.Transport.Secure() {
			checkTLS(c, &bad)
		}
	}
	return bad
}

// mixed reports whether the matrix has both transports.
func mixed(cases []scenarios.Case) bool {
	return slices.ContainsFunc(cases, func(c scenarios.Case) bool { return c.Transport != cases[0].Transport })
}

// suiting picks the targets that speak the case's transport. --tls turns
// mqtt:// into mqtts:// and moves a port that was not written; the other way
// round is never taken: who wrote mqtts:// does not want a password in the clear.
func suiting(c *scenarios.Case, both bool, bad *Faults) []scenarios.URL {
	wanted := c.Transport
	var list []scenarios.URL
	for _, u := range c.Target.URLs {
		switch {
		case u.Transport() == wanted:
		case u.Transport().Secured() == wanted && (!u.HasPort || !both):
			u = u.Over(wanted)
		default:
			continue
		}
		if !slices.Contains(list, u) {
			list = append(list, u)
		}
	}
	if len(list) == 0 {
		first := c.Target.URLs[0]
		hint := "write mqtt://HOST to use ports 1883 and 8883, or give one --url for each: mqtt://HOST:PORT and mqtts://HOST:PORT"
		if !both {
			hint = "leave --transport out: mqtts:// means TLS"
		}
		bad.Usage(hint, "transport %s cannot use %s: one port speaks either plain MQTT or TLS", c.Transport, first)
		return c.Target.URLs
	}
	return list
}

// checkTLS reads the certificates now rather than when clients connect.
func checkTLS(c *scenarios.Case, bad *Faults) {
	host := "localhost"
	if len(c.Target.URLs) > 0 {
		host = c.Target.URLs[0].Host
	}
	_, err := c.TLS.ClientConfig(host)
	for _, one := range tlsconf.Faults(err) {
		bad.Usage("", "%v", one)
	}
}

// Embedded reports whether any case runs against the embedded broker.
func Embedded(cases []scenarios.Case) bool {
	return slices.ContainsFunc(cases, func(c scenarios.Case) bool { return len(c.Target.URLs) == 0 })
}

// StartEmbedded starts the embedded broker on free ports of the loopback
// address, with the listeners that the cases need, and aims them at it. Their
// clients verify a certificate that is made for this run and thrown away.
func StartEmbedded(cases []scenarios.Case) (*broker.Broker, error) {
	b := broker.New(broker.Config{})
	listeners := map[scenarios.Transport]scenarios.URL{}
	var bundle *tlsconf.Bundle
	for i := range cases {
		c := &cases[i]
		if len(c.Target.URLs) > 0 {
			continue
		}
		u, ok := listeners[c.Transport]
		if !ok {
			var err error
			if c.Transport.Secure() && bundle == nil {
				bundle, err = tlsconf.ThrowAway(serverNames(cases), time.Now())
			}
			if err == nil {
				u, err = listenEmbedded(b, c.Transport, bundle)
			}
			if err != nil {
				_ = b.Close()
				return nil, fmt.Errorf("start the embedded broker: %w", err)
			}
			listeners[c.Transport] = u
		}
		c.Target.URLs = []scenarios.URL{u}
		if c.Transport.Secure() {
			c.TLS.CAPEM = slices.Concat(c.TLS.CAPEM, bundle.CAPEM())
		}
	}
	return b, nil
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

func listenEmbedded(b *broker.Broker, t scenarios.Transport, bundle *tlsconf.Bundle) (scenarios.URL, error) {
	u := scenarios.URL{Scheme: t.Scheme(), Host: "127.0.0.1", HasPort: true}
	var conf *tls.Config
	if t.Secure() {
		conf = bundle.ServerConfig()
	}
	l, err := broker.Listen(t.Scheme(), "127.0.0.1:0", conf)
	if err != nil {
		return u, err
	}
	u.Port = l.Addr().(*net.TCPAddr).Port
	go func() { _ = b.Serve(l) }() // ends with ErrClosed when the broker does
	return u, nil
}

// TargetLine names the targets with the addresses that their names resolve to,
// so that nobody loads a machine that was not meant.
func TargetLine(ctx context.Context, cases []scenarios.Case, embedded bool) string {
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

// resolveWait bounds how long the target line may take; who connects later
// finds out about names that do not resolve.
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
