package scenarios

import (
	"fmt"
	"testing"
)

// TestShapes checks the numbers that the engine reads.
func TestShapes(t *testing.T) {
	for in, want := range map[string]string{ // topics x publishers > subscribers, per client, connections, shape
		"pairs: 3":                       "3x1>1 1/1 6 pairs",
		"shape: loopback, pairs: 3":      "3x1>1 1/1 3 loopback",
		"shape: fan-out":                 "1x1>10 1/1 11 fan-out",
		"subscribers: 5":                 "1x1>5 1/1 6 fan-out",
		"shape: fan-in, publishers: 100": "1x100>1 1/1 101 fan-in",
		"publishers: 4, topics: 2":       "2x4>1 1/1 10 fan-in",
		"publishers: 4, subscribers: 3":  "1x4>3 1/1 7 many-to-many",
		"shape: many-to-many, topics: 2": "2x10>10 1/1 40 many-to-many",
		"shape: shared, publishers: 2":   "1x2>10 1/1 12 shared",
		"share: g":                       "1x1>10 1/1 11 shared",
		"shape: publish, publishers: 9":  "1x9>0 1/1 9 publish",
		"publishers: 9, subscribers: 0":  "1x9>0 1/1 9 publish",
		"publishers: 0, topics: 4":       "4x0>1 1/1 4 subscribe",
		"shape: connect, idle: 50":       "1x0>0 1/1 50 connect",
		"shape: connect, pairs: 7":       "1x0>0 1/1 7 connect",
		"shape: churn, pairs: 7":         "7x0>1 1/1 7 churn",
		"topics: 12, topics_per_publisher: 4, topics_per_subscriber: 6": "12x1>1 4/6 5 pairs",
		"topics: 2, idle: 10": "2x1>1 1/1 14 pairs",
	} {
		l := casesOf(t, parse(t, "load: {"+in+"}"))[0].Load
		got := fmt.Sprintf("%dx%d>%d %d/%d %d %s", l.Topics, l.Publishers, l.Subscribers, l.TopicsPerPublisher, l.TopicsPerSubscriber, l.Connections(), l.Shape)
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	// A shape may be an axis, and so may the width of one.
	checkIDs(t, parse(t, "matrix: {subscribers: [1, 10]}"), "qos=0/payload=10/protocol=3.1.1/subscribers=1", "qos=0/payload=10/protocol=3.1.1/subscribers=10")
	// What means nothing to a shape is no param, unless it is asked for.
	checkIDs(t, parse(t, "load: {shape: connect}"), "protocol=3.1.1")
	checkIDs(t, parse(t, "load: {shape: churn}"), "qos=0/protocol=3.1.1")
	checkIDs(t, parse(t, "load: {shape: subscribe}"), "qos=0/protocol=3.1.1")
	checkIDs(t, set(t, parse(t, "load: {shape: connect}"), "payload", "20"), "payload=20/protocol=3.1.1")
	checkIDs(t, parse(t, "matrix: {shape: [connect, publish]}"), "qos=0/payload=10/protocol=3.1.1/shape=connect", "qos=0/payload=10/protocol=3.1.1/shape=publish")
	if l := casesOf(t, parse(t, "matrix: {qos: [1]}\nload: {shape: offline, topics: 3, subscribers: 2}"))[0].Load; l.Connections() != 9 || l.Messages != 3000 {
		t.Errorf("%+v", l)
	}
	// A flag widens a scenario that says pairs.
	if l := casesOf(t, set(t, builtin("default"), "subscribers", "7"))[0].Load; l.Shape != FanOut || l.Subscribers != 7 {
		t.Errorf("%+v", l)
	}
	c := casesOf(t, parse(t, "load: {filter: '$share/g/a/+', subscribers: 2}"))[0]
	if c.Load.Share != "g" || c.Load.Filter != "a/+" || c.Load.Shape != Shared {
		t.Errorf("%+v", c.Load)
	}
	// A flag takes the place of the whole filter, with its shared subscription.
	c = casesOf(t, set(t, parse(t, "load: {filter: '$share/g/a/+'}"), "filter", "b/+"))[0]
	if c.Load.Share != "" || c.Load.Filter != "b/+" || c.Load.Shape != Pairs {
		t.Errorf("%+v", c.Load)
	}
}

func TestShapeErrors(t *testing.T) {
	for in, want := range map[string]string{
		"shape: fan-out, publishers: 2":                       "shape fan-out has 1 publisher per topic, not 2: choose another shape or remove publishers",
		"shape: fan-out, subscribers: 0":                      "shape fan-out needs subscribers: choose shape connect for idle connections",
		"shape: publish, subscribers: 1":                      "shape publish has no subscribers: choose another shape or remove subscribers",
		"pairs: 2, topics: 3":                                 "3 topics and 2 pairs: a pair is a topic, so keep one of topics and pairs",
		"topics: 3, topics_per_publisher: 2":                  "topics_per_publisher is 2, which does not divide the 3 topics",
		"shape: loopback, topics_per_publisher: 2, topics: 2": "shape loopback has one topic per client: remove topics_per_publisher",
		"shape: churn, publishers: 1":                         "shape churn has no publishers: choose another shape or remove publishers",
		"shape: churn, fresh_iterations: true":                "shape churn opens and closes its connections itself: remove fresh_iterations",
		"shape: offline, rate: 5":                             "shape offline measures how fast queues drain, whatever they were filled at: remove rate",
		"shape: publish, share: g":                            "a shared subscription needs subscribers, and shape publish has none: remove share",
		"share: a, filter: $share/b/x":                        "share is a, and the filter's is b: keep one of them",
		"shape: publish, filter: a":                           "shape publish has no subscribers of its own: remove filter",
		"topics: 1000, publishers: 100000":                    "100001000 connections are over the limit of 10000000 for one run: ask for fewer topics or clients",
	} {
		_, err := parse(t, "load: {"+in+"}").Cases()
		checkErrors(t, err, "x.yaml:1: "+want)
	}
	for in, want := range map[string]string{
		"share: a/b":       "share a/b: share must be a name without /, + and #",
		"filter: a/#/b":    "filter a/#/b: filter must have # as a whole level and last [MQTT-4.7.1-1]",
		"filter: '%s'":     "filter %s: filter cannot use %s: it can use %i, %c, %u, %r",
		"filter: $share/g": "filter $share/g: filter must have a topic filter after $share/ShareName/ [MQTT-4.8.2-2]",
		"shape: fanout":    "shape fanout: shape must be one of pairs, loopback, fan-out, fan-in, many-to-many, shared, publish, subscribe, connect, churn, offline: did you mean fan-out?",
		"topics: 0":        "topics 0: topics must be a whole number from 1 to 1000000",
	} {
		_, err := Parse("x.yaml", []byte("load: {"+in+"}"))
		checkErrors(t, err, "x.yaml:1: "+want)
	}
}

// TestSpeaker: clients are numbered topic by topic, subscribers first.
func TestSpeaker(t *testing.T) {
	for name, tt := range map[string]struct {
		l    Load
		want []int
	}{
		"pairs":            {Load{Shape: Pairs, Publishers: 1, Subscribers: 1, TopicsPerPublisher: 1, TopicsPerSubscriber: 1}, []int{1, 3, 5}},
		"loopback":         {Load{Shape: Loopback, Publishers: 1, Subscribers: 1, TopicsPerPublisher: 1, TopicsPerSubscriber: 1}, []int{0, 1, 2}},
		"fan-out":          {Load{Shape: FanOut, Publishers: 1, Subscribers: 3, TopicsPerPublisher: 1, TopicsPerSubscriber: 1}, []int{3, 7, 11}},
		"subscribers only": {Load{Shape: Subscribe, Subscribers: 2, TopicsPerPublisher: 1, TopicsPerSubscriber: 1}, []int{0, 2, 4}},
		"one collector":    {Load{Shape: Pairs, Publishers: 1, Subscribers: 1, TopicsPerPublisher: 1, TopicsPerSubscriber: 3}, []int{1, 2, 3}},
		"one speaker":      {Load{Shape: Pairs, Publishers: 1, Subscribers: 1, TopicsPerPublisher: 3, TopicsPerSubscriber: 1}, []int{1, 1, 1}},
	} {
		for topic, want := range tt.want {
			if got := tt.l.Speaker(topic); got != want {
				t.Errorf("%s: topic %d: client %d instead of %d", name, topic, got, want)
			}
		}
	}
}
