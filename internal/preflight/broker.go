package preflight

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/dial"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/scenarios"
	"github.com/mqttload/mqttload/tlsconf"
)

// fewDays is the rest of a certificate's validity below which it gets a warning.
const fewDays = 14

// probe connects as the first client of the run, sends messages, and disconnects. The
// error says why no connection could be opened.
func (r *route) probe(ctx context.Context) error {
	p := load.NewProbe(r.lead(), r.opts.Open, r.index, r.opts.RunID)
	nc, err := r.dial(ctx, p)
	if err != nil {
		return err
	}
	ctx, cancel := p.Bound(ctx)
	defer cancel()
	inbox := make(inbox, 16)
	client, err := p.Connect(ctx, nc, inbox.handler())
	if err != nil {
		r.add("connect", Fail, Unreachable, remedy(err), "MQTT %s: %v", r.lead().Protocol, err)
		r.removeTarget(err)
		return nil
	}
	defer client.Close()
	if way := p.Arrived(); way != "" {
		r.ok("reference", "sent from %s", way)
	}
	_, connack := client.Timing()
	r.ok("connect", "MQTT %s accepted in %s", r.lead().Protocol, took(connack))
	r.limits(client)
	r.cells(client, p)
	if !r.opts.Short {
		r.exchange(client, p, inbox)
	}
	_ = client.Disconnect(ctx, packet.ReasonSuccess)
	return nil
}

// dial opens the connection and reports its steps.
func (r *route) dial(ctx context.Context, p *load.Probe) (net.Conn, error) {
	ctx, cancel := p.Bound(ctx)
	defer cancel()
	nc, err := p.Dial(ctx)
	step := ""
	if err != nil {
		step, err = dial.StepOf(err), p.Fault(err)
	}
	if r.first {
		r.steps(p.Steps, step)
	}
	if err != nil {
		r.unreachable(step, remedy(err), err)
		return nil, err
	}
	if state := mqtt.TLSState(nc); state != nil && r.first {
		r.certificate(*state, p.Steps.TLS)
	}
	return nc, nil
}

// steps reports the steps that succeeded. failed is the step that did not, or "".
func (r *route) steps(l dial.Steps, failed string) {
	if l.DNS > 0 && failed != "dns" {
		r.ok("dns", "resolved in %s", took(l.DNS))
	}
	if failed != "dns" && failed != "tcp" {
		r.ok("tcp", "connected in %s", took(l.TCP))
	}
}

// remedy returns the remedy that a run gives for err.
func remedy(err error) string {
	e := load.ErrorOf(err)
	return e.Remedy()
}

// certificate reports the result of the TLS handshake, and how long the server's
// certificates are valid.
func (r *route) certificate(cs tls.ConnectionState, handshake time.Duration) {
	version, cipher, curve, _ := tlsconf.State(cs)
	agreed := strings.Join(without("", version, cipher, curve), ", ")
	r.ok("tls", "%s in %s", agreed, took(handshake))
	chain := cs.PeerCertificates
	if len(chain) == 0 {
		return
	}
	end := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	days := int(time.Until(end).Hours() / 24)
	msg := fmt.Sprintf("%q, %s in the chain, valid until %s, %s left", chain[0].Subject.CommonName, count(len(chain), "certificate"),
		end.UTC().Format(time.DateOnly), count(days, "day"))
	switch {
	case r.lead().TLS.Insecure:
		r.add("certificate", Warn, None, "remove --insecure and give the CA with --cafile", "%s, not verified", msg)
	case days < fewDays:
		r.add("certificate", Warn, None, "renew the broker's certificate", "%s", msg)
	default:
		r.ok("certificate", "%s", msg)
	}
}

func without(what string, list ...string) (kept []string) {
	for _, s := range list {
		if s != what {
			kept = append(kept, s)
		}
	}
	return kept
}

// limits reports the limits of the CONNACK. An absent property has its default.
// [MQTT5 3.2.2.3]
func (r *route) limits(c *mqtt.Client) {
	if r.lead().Protocol != packet.V5 {
		r.ok("limits", "MQTT %s brokers do not announce limits", r.lead().Protocol)
		return
	}
	p := &c.Connack().Properties
	yes := func(b *byte) string {
		if b != nil && *b == 0 {
			return "no"
		}
		return "yes"
	}
	size, keepAlive := "any", "as requested"
	if m := p.MaximumPacketSize; m != nil {
		size = fmtInt(int(*m)) + " B"
	}
	if k := p.ServerKeepAlive; k != nil {
		keepAlive = (time.Duration(*k) * time.Second).String()
	}
	r.ok("limits", "Maximum QoS %d, Receive Maximum %s, Maximum Packet Size %s, Topic Alias Maximum %s, Server Keep Alive %s, retain %s, wildcard subscriptions %s, shared %s, identifiers %s",
		orElse(p.MaximumQoS, 2), fmtInt(int(orElse(p.ReceiveMaximum, 65535))), size, fmtInt(int(orElse(p.TopicAliasMaximum, 0))), keepAlive,
		yes(p.RetainAvailable), yes(p.WildcardSubAvailable), yes(p.SharedSubAvailable), yes(p.SubIDAvailable))
}

func orElse[T any](v *T, absent T) T {
	if v == nil {
		return absent
	}
	return *v
}

// cells excludes the cases that exceed the limits of the CONNACK, and warns of
// windows that the CONNACK reduces.
func (r *route) cells(c *mqtt.Client, p *load.Probe) {
	narrow := 0
	r.each(func(i int, k *scenarios.Case) {
		if err := allowed(c, k, p); err != nil {
			r.exclude(i, err)
		}
		if m := c.Connack().Properties.ReceiveMaximum; m != nil && k.QoS > 0 && k.Load.Inflight > int(*m) {
			narrow = max(narrow, k.Load.Inflight)
		}
	})
	if narrow > 0 {
		r.add("window", Warn, None, "the smaller window limits throughput at QoS 1 and 2", "--inflight %s is reduced to the broker's Receive Maximum of %s",
			fmtInt(narrow), fmtInt(int(*c.Connack().Properties.ReceiveMaximum)))
	}
}

// allowed checks a case's messages and subscriptions against the broker's limits.
func allowed(c *mqtt.Client, k *scenarios.Case, p *load.Probe) error {
	limits := &c.Connack().Properties
	l := &k.Load
	if l.PublisherClients() > 0 {
		m, err := p.Message(k)
		if err != nil {
			return err
		}
		if _, err := c.Template(m); err != nil {
			return err
		}
	}
	no := func(b *byte) bool { return b != nil && *b == 0 }
	switch {
	case l.SubscriberClients() == 0:
	case l.Share != "" && no(limits.SharedSubAvailable):
		return errors.New("the broker does not allow shared subscriptions")
	case strings.ContainsAny(l.Filter, "+#") && no(limits.WildcardSubAvailable):
		return errors.New("the broker does not allow wildcards in subscriptions")
	}
	return nil
}
