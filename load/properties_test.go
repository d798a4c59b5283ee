package load_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/broker"
	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/load"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/scenarios"
)

// askAll asks for everything but what has effects on its own.
func askAll(c *scenarios.Case) {
	c.Clients.UserProperties = []packet.UserProperty{{Name: "TraceId", Value: "x"}, {Name: "traceid", Value: "X"}}
	c.Clients.Properties = scenarios.Properties{
		MessageExpiry: time.Minute, ContentType: "text/plain", ResponseTopic: "re/%c", CorrelationData: "%i", PayloadFormat: scenarios.PayloadBytes,
		SubscriptionIdentifier: 300, RetainAsPublished: true, RetainHandling: 2, TopicAlias: 2, TopicAliasMaximum: 2, ReceiveMaximum: 50,
		MaximumPacketSize: 10_000, NoProblemInformation: true, ResponseInformation: true,
	}
}

// TestPropertiesArrive: the loopback broker passes everything on, whatever the
// QoS and the payload, with topic aliases on both sides, and in counts-only
// cases too. Cases of earlier versions go without.
func TestPropertiesArrive(t *testing.T) {
	var cases []scenarios.Case
	for qos := range byte(3) {
		for i, change := range []func(*scenarios.Case){
			func(*scenarios.Case) {},
			func(c *scenarios.Case) { c.Clients.Retain = true },
			func(c *scenarios.Case) { c.Load.VerifyOff, c.Clients.Retain = true, true },
			func(c *scenarios.Case) { c.Load.Shape = scenarios.Loopback },
			func(c *scenarios.Case) {
				c.Load.Topics, c.Load.TopicsPerPublisher, c.Load.TopicsPerSubscriber = 4, 4, 4
				c.Payload, _ = scenarios.ParsePayload("uniform:8-300")
			},
			func(c *scenarios.Case) { c.Load.Subscribers, c.Load.Share = 3, "g" },
			func(c *scenarios.Case) { c.Protocol = packet.V311 },
		} {
			c := testCase(qos, 20, packet.V5)
			askAll(&c)
			c.Load.Messages, c.Load.Warmup, c.Load.Iterations = 200, 0, 1
			change(&c)
			c.ID = fmt.Sprintf("%d/%s", i, c.ID)
			cases = append(cases, c)
		}
	}
	serve(t, cases, nil)
	results, err := load.New(load.Config{RunID: "r1"}).Run(t.Context(), cases)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		check(t, &r, 200)
		unheeded := slices.ContainsFunc(r.Warnings, func(w result.Warning) bool { return w.Code == "mqtt5-only" })
		if v5 := cases[i].Protocol == packet.V5; unheeded == v5 || v5 != (r.Aliases != nil) {
			t.Errorf("%s: %+v, aliases %+v", r.ID, r.Warnings, r.Aliases)
		}
		if a := r.Aliases; a != nil && (a.Asked != 2 || a.Granted != 2) {
			t.Errorf("%s: %+v", r.ID, a)
		}
	}
}

// TestPropertyBreaches: whatever a broker does to a property is counted and
// told, and the message still counts as delivered.
func TestPropertyBreaches(t *testing.T) {
	const n = 10
	owed := func(c *scenarios.Case) {
		askAll(c)
		c.Clients.Properties.TopicAlias, c.Clients.Properties.SubscriptionIdentifier, c.Clients.Retain = 0, 0, true
		c.Load.Messages = n
	}
	props := func(change func(*packet.Properties)) func(*packet.Publish) {
		return func(p *packet.Publish) {
			var all packet.Properties
			if err := p.ParseProperties(&all); err != nil {
				panic(err)
			}
			change(&all)
			if err := p.SetProperties(&all); err != nil {
				panic(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		fault  func(*packet.Publish)
		change func(*scenarios.Case)
		want   string // reason and example; "" for none
	}{
		"none":                   {func(*packet.Publish) {}, nil, ""},
		"none, counted only":     {func(*packet.Publish) {}, func(c *scenarios.Case) { c.Load.VerifyOff = true }, ""},
		"time passes":            {props(func(p *packet.Properties) { *p.MessageExpiry = 1 }), nil, ""},
		"time does not pass":     {props(func(p *packet.Properties) { *p.MessageExpiry++ }), nil, "Message Expiry Interval was changed [MQTT-3.3.2-6]|Message Expiry Interval=61, and Message Expiry Interval=60 was"},
		"no expiry":              {props(func(p *packet.Properties) { p.MessageExpiry = nil }), nil, "Message Expiry Interval was dropped [MQTT-3.3.2-6]|no Message Expiry"},
		"content type":           {props(func(p *packet.Properties) { *p.ContentType = "text/PLAIN" }), nil, `Content Type was changed [MQTT-3.3.2-20]|a message to "t/r1/1" came with Content Type="text/PLAIN", and Content Type="text/plain" was asked for`},
		"no content type":        {props(func(p *packet.Properties) { p.ContentType = nil }), nil, "Content Type was dropped [MQTT-3.3.2-20]|no Content Type"},
		"no content type, count": {props(func(p *packet.Properties) { p.ContentType = nil }), func(c *scenarios.Case) { c.Load.VerifyOff = true }, "Content Type was dropped [MQTT-3.3.2-20]|no Content Type"},
		"response topic":         {props(func(p *packet.Properties) { *p.ResponseTopic = "re/cr1" }), nil, `Response Topic was changed [MQTT-3.3.2-15]|"re/cr12" was`},
		"correlation data":       {props(func(p *packet.Properties) { p.CorrelationData = []byte("1") }), nil, "Correlation Data was changed [MQTT-3.3.2-16]|1B"},
		"no payload format":      {props(func(p *packet.Properties) { p.PayloadFormat = nil }), nil, "Payload Format Indicator was dropped [MQTT-3.3.2-4]|no Payload"},
		"user properties lower":  {props(func(p *packet.Properties) { p.UserProperties[0].Name = "traceid" }), nil, `User Property was changed [MQTT-3.3.2-17, MQTT-3.3.2-18]|User Property "traceid"="x"`},
		"user properties turned": {props(func(p *packet.Properties) { slices.Reverse(p.UserProperties) }), nil, `User Property was changed [MQTT-3.3.2-17, MQTT-3.3.2-18]|User Property "traceid"="X", User Property "TraceId"="x", and`},
		"no user properties":     {props(func(p *packet.Properties) { p.UserProperties = nil }), nil, "User Property was dropped [MQTT-3.3.2-17, MQTT-3.3.2-18]|no User Property"},
		"no retain":              {func(p *packet.Publish) { p.Retain = false }, nil, "RETAIN was changed, though it was asked for as published [MQTT-3.3.1-13]|with RETAIN true and came with false"},
		"retain not asked for":   {func(p *packet.Publish) { p.Retain = false }, func(c *scenarios.Case) { c.Clients.Properties.RetainAsPublished = false }, ""},
		"no identifier": {func(*packet.Publish) {}, func(c *scenarios.Case) { c.Clients.Properties.SubscriptionIdentifier = 7 },
			"Subscription Identifier was dropped [MQTT-3.3.4-3]|Subscription Identifier=7 was"},
		"another's identifier": {props(func(p *packet.Properties) { p.SubscriptionIDs = []uint32{7, 8} }), func(c *scenarios.Case) { c.Clients.Properties.SubscriptionIdentifier = 7 },
			"Subscription Identifier was changed [MQTT-3.3.4-3]|Identifier=7, Subscription Identifier=8"},
		"nobody has asked": {props(func(p *packet.Properties) { *p = packet.Properties{UserProperties: []packet.UserProperty{{Name: "a"}}} }), func(c *scenarios.Case) {
			c.Clients.Properties, c.Clients.UserProperties = scenarios.Properties{}, nil
			c.Clients.Retain = false
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &mqtttest.Fake{Deliver: func(_ int, p packet.Publish) []packet.Publish {
					if len(p.Payload) > 0 { // or it clears what is retained
						tt.fault(&p)
					}
					return keep(p)
				}}
				r, err := against(t, f, func(c *scenarios.Case) {
					owed(c)
					if tt.change != nil {
						tt.change(c)
					}
				})
				if err != nil || r.Delivery.Delivered != n {
					t.Fatalf("%v, %+v", err, r.Delivery)
				}
				warned := slices.ContainsFunc(r.Warnings, func(w result.Warning) bool { return w.Code == "properties" })
				if tt.want == "" {
					if len(r.Errors) > 0 || warned {
						t.Errorf("%+v, %+v", r.Errors, r.Warnings)
					}
					return
				}
				reason, example, _ := strings.Cut(tt.want, "|")
				if len(r.Errors) != 1 || !warned || r.Errors[0].Kind != "property" || r.Errors[0].Reason != reason || r.Errors[0].Count != n || !strings.Contains(r.Errors[0].Example, example) {
					t.Errorf("%+v, %+v", r.Errors, r.Warnings)
				}
			})
		})
	}
}

// TestAliasesGranted: where the broker allows fewer aliases than there are
// topics for, the row says so.
func TestAliasesGranted(t *testing.T) {
	for allowed, want := range map[uint16]string{0: "allows a publisher 0 topic aliases, and 3 of its topics were", 2: "allows a publisher 2 topic aliases, and 3 of its", 3: "", 9: ""} {
		synctest.Test(t, func(t *testing.T) {
			said := map[bool]int{}
			f := &mqtttest.Fake{Connack: packet.Connack{Properties: packet.Properties{TopicAliasMaximum: &allowed}}}
			f.Ack = func(_ int, p *packet.Publish) (packet.ReasonCode, bool) { said[p.TopicAlias() > 0]++; return 0, true }
			r, err := against(t, f, func(c *scenarios.Case) {
				c.Clients.Properties.TopicAlias = 3
				c.Load.Shape, c.Load.Subscribers, c.Load.Messages = scenarios.Publish, 0, 40
				c.Load.Topics, c.Load.TopicsPerPublisher = 4, 4
			})
			if err != nil {
				t.Fatal(err)
			}
			granted := min(3, int(allowed))
			if r.Aliases == nil || r.Aliases.Asked != 3 || r.Aliases.Granted != granted || said[true] != 10*granted || said[false] != 40-10*granted {
				t.Errorf("%+v, with and without %v", r.Aliases, said)
			}
			told := ""
			for _, w := range r.Warnings {
				if w.Code == "topic-alias" {
					told = w.Message
				}
			}
			if (want == "") != (told == "") || !strings.Contains(told, want) {
				t.Errorf("%q, want %q", told, want)
			}
		})
	}
}

// TestAliasesAfterOutage: an alias ends with its connection, on both sides: what
// goes again, and what is new, reaches its topic. [MQTT-3.3.2-7]
func TestAliasesAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3000
		b := broker.New(broker.Config{})
		defer b.Close()
		o := &outage{serve: b.ServeConn}
		go func() {
			time.Sleep(1500*time.Millisecond + time.Microsecond)
			o.cut(100 * time.Millisecond)
		}()
		r, err := o.run(t, func(c *scenarios.Case) {
			atRate(1000, n*time.Millisecond)(c)
			askAll(c)
			c.Protocol, c.Clients.SessionExpiry = packet.V5, time.Hour
			c.Load.Topics, c.Load.TopicsPerPublisher, c.Load.TopicsPerSubscriber = 3, 3, 3
		})
		if err != nil {
			t.Fatal(err)
		}
		d := r.Delivery
		if r.Clients.Reconnects != 2 || d.Scheduled != n || d.Unsent+d.Lost+d.Foreign+d.Corrupted != 0 || d.Delivered != n || len(r.Errors) != 1 || r.Errors[0].Kind != "disconnect" {
			t.Errorf("%+v, clients %+v, errors %+v", d, r.Clients, r.Errors)
		}
	})
}
