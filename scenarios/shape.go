package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// unset is a number of clients or topics that the scenario does not give.
const unset = -1

// asked holds the numbers of a scenario as written. [Scenario.Cases] settles the
// engine's numbers from them and clears it.
type asked struct {
	topics, publishers, subscribers int    // unset where not given
	group                           string // shared subscription that the filter names
	pace                            pace
}

func parseShape(s string) (*Shape, error) {
	if i := slices.IndexFunc(shapes, func(sh *Shape) bool { return sh.Name == s }); i >= 0 {
		return shapes[i], nil
	}
	names := ShapeNames()
	msg := "shape must be one of " + strings.Join(names, ", ")
	if near := text.Nearest(s, names); near != "" {
		msg += ": did you mean " + near + "?"
	}
	return nil, errors.New(msg)
}

// failer records a fault of one key.
type failer func(key, format string, args ...any)

// settleShape derives the numbers of topics and clients from the shape.
func settleShape(l *Load, shapeByFlag bool, fail failer) {
	if group := l.asked.group; group != "" {
		if l.Share != "" && l.Share != group {
			fail("share", "share is %s, and the filter's is %s: keep one of them", text.Quote(l.Share), text.Quote(group))
		}
		l.Share = group
	}
	if l.Shape == Pairs && !shapeByFlag {
		l.Shape = impliedShape(l)
	}
	shape := l.Shape
	l.Publishers = settleCount(shape, "publishers", l.asked.publishers, shape.publishers, fail)
	l.Subscribers = settleCount(shape, "subscribers", l.asked.subscribers, shape.subscribers, fail)
	if l.Topics = l.asked.topics; l.Topics == unset {
		l.Topics = l.Pairs
	} else if l.Pairs > 1 && l.Pairs != l.Topics {
		fail("topics", "%d topics and %d pairs: a pair is a topic, so keep one of topics and pairs", l.Topics, l.Pairs)
	}
	if !shape.Publishes() && !shape.subscribes() {
		// Its connections have no topics: pairs is the number of connections.
		if l.Idle == 0 {
			l.Idle = l.Topics
		}
		l.Topics = 1
	}
	if l.Share == "" {
		l.Share = shape.share
	}
	if l.FreshIterations && (shape.Cycles || shape.Queues > 0) {
		fail("fresh_iterations", "shape %s opens and closes its connections itself: remove fresh_iterations", shape)
	}
	settleGroups(l, fail)
}

// impliedShape is the shape that fits the numbers of clients.
func impliedShape(l *Load) *Shape {
	publishers, subscribers := one.orOpen(l.asked.publishers), one.orOpen(l.asked.subscribers)
	shared := l.Share != "" && publishers > 0 && subscribers > 0
	for _, sh := range shapes {
		if !sh.named && shared == (sh.share != "") && sh.publishers.hold(publishers) && sh.subscribers.hold(subscribers) {
			return sh
		}
	}
	return Pairs // which rejects numbers that fit no shape
}

func settleCount(shape *Shape, key string, n int, b bounds, fail failer) int {
	n = b.orOpen(n)
	switch {
	case n > b.most && b.most == 0:
		fail(key, "shape %s has no %s: choose another shape or remove %s", shape, key, key)
	case n > b.most:
		fail(key, "shape %s has %s per topic, not %d: choose another shape or remove %s", shape, text.Count(b.most, strings.TrimSuffix(key, "s")), n, key)
	case n < b.least && n == 0:
		fail(key, "shape %s needs %s: choose shape connect for idle connections", shape, key)
	}
	return n
}

// settleGroups checks the options of clients with several topics, and of groups of
// subscribers.
func settleGroups(l *Load, fail failer) {
	for _, g := range []struct {
		key string
		n   int
	}{{"topics_per_publisher", l.TopicsPerPublisher}, {"topics_per_subscriber", l.TopicsPerSubscriber}} {
		switch {
		case l.Topics%g.n != 0:
			fail(g.key, "%s is %d, which does not divide the %d topics", g.key, g.n, l.Topics)
		case g.n > 1 && l.Shape.oneTopic:
			fail(g.key, "shape %s has one topic per client: remove %s", l.Shape, g.key)
		}
	}
	if l.Share != "" && l.Subscribers == 0 {
		fail("share", "a shared subscription needs subscribers, and shape %s has none: remove share", l.Shape)
	}
	if l.Filter != "" && (l.Subscribers == 0 || l.Shape.Combined) {
		fail("filter", "shape %s has no subscribers of its own: remove filter", l.Shape)
	}
	if n := l.Connections(); n > maxClients {
		fail("publishers", "%d connections are over the limit of %d for one run: ask for fewer topics or clients", n, maxClients)
	}
}

// PublisherClients is the number of connections that publish.
func (l *Load) PublisherClients() int { return l.Topics / l.TopicsPerPublisher * l.Publishers }

// SubscriberClients is the number of connections that subscribe. In a shape whose
// clients do both these are also the publishers.
func (l *Load) SubscriberClients() int { return l.Topics / l.TopicsPerSubscriber * l.Subscribers }

// Connections is the number of all connections of a settled case.
func (l *Load) Connections() int {
	n := l.PublisherClients() + l.SubscriberClients() + l.Idle
	if l.Shape.Combined {
		n -= l.SubscriberClients()
	}
	return n
}

func filterField() field {
	return field{key: "filter", parse: func(_, text string) (value, error) {
		share, filter, err := parseFilter(text)
		return plain(text, func(c *Case) {
			c.Load.Filter, c.Load.asked.group = filter, share
		}), err
	}, get: func(s *Scenario) any {
		l := s.base.Load
		if l.asked.group != "" {
			return "$share/" + l.asked.group + "/" + l.Filter
		}
		return orNil(l.Filter)
	}}
}

// checkShare checks the name of a shared subscription.
func checkShare(name string) error {
	// [MQTT-4.8.2-1] [MQTT-4.8.2-2]
	if name == "" || strings.ContainsAny(name, "/+#") {
		return fmt.Errorf("share must be a name without /, + and #")
	}
	return checkText("share", name)
}

// parseFilter reads a topic filter with variables. One that begins with $share/NAME/
// also names the shared subscription.
func parseFilter(text string) (share, filter string, err error) {
	if err := checkVars("filter", text, "icur"); err != nil {
		return "", "", err
	}
	if err := packet.ValidateTopicFilter(Expand(text, sampleVars(1))); err != nil {
		return "", "", fmt.Errorf("filter %s", ruleOf(err))
	}
	if group, rest, ok := packet.SplitShared(text); ok {
		return group, rest, nil
	}
	return "", text, nil
}
