package bench

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/report"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// measuredCase is a case of one iteration that went well.
func measuredCase(id string) result.Case {
	return result.Case{
		ID: id, Iterations: []result.Iteration{{Stage: result.StageActual}},
		Delivery: result.Delivery{Scheduled: 100, Sent: 100, Expected: 100, Received: 100, Delivered: 100},
		Clients:  result.Clients{Planned: 2, Connected: 2},
	}
}

// TestLossHint: what may help is another thing where the broker lost sessions, or
// connections ended, or messages may have expired.
func TestLossHint(t *testing.T) {
	expiring := func(c *scenarios.Case, protocol packet.Version) {
		c.Protocol, c.Clients.Properties.MessageExpiry = protocol, time.Minute
	}
	for want, spoil := range map[string]func(c *result.Case, plan *scenarios.Case){
		"max_queued_messages": func(_ *result.Case, plan *scenarios.Case) { expiring(plan, packet.V311) },
		"persistence true": func(c *result.Case, _ *scenarios.Case) {
			c.Warnings = []result.Warning{{Code: result.CodeSessionNotKept}}
		},
		"--reconnect":            func(c *result.Case, _ *scenarios.Case) { c.Clients.Lost = 1 },
		"--message-expiry, 1m0s": func(_ *result.Case, plan *scenarios.Case) { expiring(plan, packet.V5) },
	} {
		c, plan := measuredCase("a"), scenarios.Case{ID: "a"}
		c.QoS, c.Delivery.Lost, c.Delivery.Delivered, c.Delivery.Received = new(byte(1)), 1, 99, 99
		spoil(&c, &plan)
		bad := outcome{planned: []scenarios.Case{plan}, cases: []result.Case{c}}.verdict()
		if last := bad[len(bad)-1]; last.Class != Delivery || !strings.Contains(last.Hint, want) {
			t.Errorf("%q does not say %q", last.Hint, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	broke := errors.New("qos=1: it broke")
	refused := fmt.Errorf("qos=1: %w", &mqtt.SubscribeError{})
	change := func(f func(c *result.Case)) func(*outcome) {
		return func(o *outcome) { f(&o.cases[0]) }
	}
	lose := func(n int64) func(*result.Case) {
		return func(c *result.Case) { c.Delivery.Lost, c.Delivery.Delivered, c.Delivery.Received = n, 100-n, 100-n }
	}
	tests := []struct {
		name    string
		qos     byte
		spoil   func(o *outcome)
		classes []Class
		status  string
	}{
		{"all well", 2, func(*outcome) {}, nil, result.StatusComplete},
		{"loss at QoS 0 is allowed", 0, change(lose(1)), nil, result.StatusComplete},
		{"loss at QoS 1", 1, change(lose(1)), []Class{Delivery}, result.StatusComplete},
		{"duplicates at QoS 1 are allowed", 1, change(func(c *result.Case) { c.Delivery.Duplicated, c.Delivery.Received = 1, 101 }), nil, result.StatusComplete},
		{"duplicates at QoS 2", 2, change(func(c *result.Case) { c.Delivery.Duplicated, c.Delivery.Received = 1, 101 }), []Class{Delivery}, result.StatusComplete},
		{"loss where less was granted", 1, change(func(c *result.Case) {
			lose(1)(c)
			c.Warnings = []result.Warning{{Code: result.CodeGrantedQoS}}
		}), nil, result.StatusComplete},
		{"an account that does not balance", 0, change(func(c *result.Case) { c.Delivery.Delivered = 99 }), []Class{Delivery}, result.StatusComplete},
		{"clients lost", 0, change(func(c *result.Case) { c.Clients.Lost = 1 }), []Class{Incomplete}, result.StatusPartial},
		{"clients not connected", 0, change(func(c *result.Case) { c.Clients.Connected = 1 }), []Class{Incomplete}, result.StatusPartial},
		{"interrupted while connecting", 0, func(o *outcome) { o.err = ErrInterrupted; o.cases[0].Clients.Connected = 1 }, []Class{Interrupted}, result.StatusPartial},
		{"unsent", 0, change(func(c *result.Case) { c.Delivery.Unsent, c.Delivery.Scheduled = 1, 101 }), []Class{Incomplete}, result.StatusPartial},
		{"clients and messages lost", 1, change(func(c *result.Case) { c.Clients.Lost = 1; lose(1)(c) }), []Class{Incomplete, Delivery}, result.StatusPartial},
		{"refused by the broker", 1, change(func(c *result.Case) { c.Delivery.Nacked = 1 }), []Class{Incomplete}, result.StatusPartial},
		{"a case failed", 1, func(o *outcome) { o.err = broke }, []Class{Incomplete}, result.StatusPartial},
		{"interrupted", 1, func(o *outcome) { o.err = ErrInterrupted }, []Class{Interrupted}, result.StatusPartial},
		{"interrupted with loss", 1, func(o *outcome) { o.err = ErrInterrupted; lose(1)(&o.cases[0]) }, []Class{Interrupted, Delivery}, result.StatusPartial},
		{"interrupted before sending", 1, func(o *outcome) { o.err = ErrInterrupted; o.cases = nil }, []Class{Interrupted}, result.StatusPartial},
		{"nothing measured, unreachable", 1, func(o *outcome) { o.err = refused; o.cases[0].Iterations = nil }, []Class{Unreachable}, result.StatusFailed},
		{"nothing measured for another reason", 1, func(o *outcome) { o.err = broke; o.cases[0].Iterations = nil }, []Class{Incomplete}, result.StatusFailed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := outcome{planned: []scenarios.Case{{ID: "a"}}, cases: []result.Case{measuredCase("a")}}
			o.cases[0].QoS = &test.qos
			test.spoil(&o)
			var classes []Class
			for _, f := range o.verdict() {
				classes = append(classes, f.Class)
				if f.Msg == "" {
					t.Error("a fault without words")
				}
			}
			if !slices.Equal(classes, test.classes) || o.status() != test.status {
				t.Errorf("classes %v, status %s; want %v, %s", classes, o.status(), test.classes, test.status)
			}
		})
	}
}

// TestUnsentRemedy: what helps depends on what kept messages from being sent.
func TestUnsentRemedy(t *testing.T) {
	for want, spoil := range map[string]func(c *result.Case){
		"--reconnect":        func(c *result.Case) { c.Clients.Lost = 1 },
		"larger --inflight":  func(c *result.Case) { c.Offered = &result.Offered{MessagesPerSec: 1000} },
		"smaller --inflight": func(*result.Case) {},
	} {
		c := measuredCase("a")
		c.Delivery.Unsent = 5
		spoil(&c)
		bad := outcome{cases: []result.Case{c}}.incomplete()
		if last := bad[len(bad)-1]; !strings.Contains(last.Hint, want) {
			t.Errorf("%q does not say %q", last.Hint, want)
		}
	}
}

// TestCausesAggregate: the same fault of many clients in many cases is one line.
func TestCausesAggregate(t *testing.T) {
	var o outcome
	for _, id := range []string{"a", "b", "c"} {
		c := measuredCase(id)
		c.Errors = []result.Error{{Kind: "connect", Reason: "connection refused", Count: 500, Example: "connect mqtt://h:1: connection refused"}}
		o.cases = append(o.cases, c)
	}
	o.err = errors.New("x")
	got := o.causes(Incomplete)
	want := "connect mqtt://h:1: connection refused (1,500 times, in 3 cases)"
	if len(got) != 1 || got[0].Msg != want || got[0].Hint == "" {
		t.Errorf("got %+v, want one fault %q with a hint", got, want)
	}
}

// TestOneVerdict: exit code, JUnit, HTML and GitHub say the same of messages that
// were lost while clients were disconnected.
func TestOneVerdict(t *testing.T) {
	for name, persistent := range map[string]bool{"with sessions": true, "without sessions": false} {
		c := measuredCase("qos=1")
		c.Kind, c.QoS, c.PersistentSessions = result.KindMessages, new(byte(1)), persistent
		c.Clients.Lost, c.Clients.Reconnects = 1, 1
		c.Delivery.Lost, c.Delivery.Delivered, c.Delivery.Received = 3, 97, 97
		r := &result.Report{Schema: result.Schema, Cases: []result.Case{c}}
		r.Run.Status = result.StatusComplete
		var junit, html bytes.Buffer
		if err := errors.Join(report.Write(&junit, "junit", r), report.Write(&html, "html", r)); err != nil {
			t.Fatal(err)
		}
		var faults []string
		for _, f := range (outcome{planned: []scenarios.Case{{ID: c.ID}}, cases: r.Cases}).verdict() {
			if f.Class == Delivery {
				faults = append(faults, f.Msg)
			}
		}
		for where, text := range map[string]string{
			"class of faults": strings.Join(faults, "\n"), "JUnit": junit.String(), "HTML": html.String(),
			"GitHub lines": strings.Join(report.ErrorLines(r), "\n"), "GitHub summary": report.StepSummary(r),
		} {
			if strings.Contains(text, "3 of 100 messages were lost at QoS 1") != persistent {
				t.Errorf("%s, %s: %s", name, where, text)
			}
		}
	}
}
