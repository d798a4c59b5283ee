package scenarios

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/text"
)

// Bounds of what a scenario may ask for. They keep a typing error from becoming a
// run of weeks. The protocol's own bounds cite the standard.
const (
	maxPairs      = 1_000_000
	maxClients    = 10_000_000
	maxInflight   = math.MaxUint16 // packet identifiers except 0 [MQTT5 2.2.1]
	maxMessages   = 1_000_000_000_000
	maxLaunches   = 1000
	maxIterations = 100_000
	maxKeepAlive  = math.MaxUint16 // seconds [MQTT5 3.1.2.10]
	maxExpiry     = math.MaxUint32 // seconds [MQTT5 3.1.2.11.2]
)

// MaxDuration is the longest duration of a case. Commands that run until they are
// stopped ask for it.
const MaxDuration = 24 * time.Hour

// value is one parsed value of a single-valued key.
type value struct {
	name   string // canonical, as in params and ids
	source string // parses to the same value
	apply  func(*Case)
}

// How a flag holds the values of a key: in a file several values are a list.
const (
	single   = iota
	commas   // --alpn a,b
	repeated // --url a --url b: a value may hold commas
)

// field is one key of the scenario file and one flag. Exactly one of parse and
// assign is set.
type field struct {
	section, key string
	axis         bool // may be an axis: those of load only where matrix lists them
	many         int  // single, commas or repeated
	secret       bool // the value never appears in a message
	parse        func(dir, text string) (value, error)
	assign       func(s *Scenario, dir string, texts []string) error
	get          func(s *Scenario) any // for Effective: nil leaves the key out
}

// fields is the whole schema, in the order in which it is shown.
var fields = slices.Concat(targetFields(), matrixFields(), loadFields(), clientFields(), tlsFields())

// later are the keys that are planned for a later version, by section.
var later = map[string]string{"pkcs12": "tls", "ciphers": "tls", "keylog": "tls"}

// fieldOf returns the field of a key, or nil.
func fieldOf(key string) *field {
	for i := range fields {
		if fields[i].key == key {
			return &fields[i]
		}
	}
	return nil
}

func matrixFields() []field {
	return in("matrix",
		axisField("qos", func(_, text string) (value, error) {
			q, err := parseQoS(text)
			return plain(text, func(c *Case) { c.QoS = q }), err
		}),
		axisField("payload", func(dir, text string) (value, error) {
			p, err := parsePayload(text, dir)
			source := p.Name
			if p.Kind == PayloadText || p.Kind == PayloadTemplate {
				source = text
			}
			return value{p.Name, source, func(c *Case) { c.Payload = p }}, err
		}),
		axisField("protocol", func(_, text string) (value, error) {
			v, err := parseProtocol(text)
			return plain(text, func(c *Case) { c.Protocol = v }), err
		}),
		axisField("transport", func(_, text string) (value, error) {
			t, err := parseTransport(text)
			return plain(text, func(c *Case) { c.Transport = t }), err
		}),
	)
}

func loadFields() []field {
	list := []field{
		{key: "shape", parse: func(_, text string) (value, error) {
			sh, err := parseShape(text)
			return plain(text, func(c *Case) { c.Load.Shape = sh }), err
		}, get: func(s *Scenario) any { return s.base.Load.Shape.Name }},
		intField("pairs", 1, maxPairs, func(c *Case) *int { return &c.Load.Pairs }),
		countField("topics", 1, func(c *Case) *int { return &c.Load.asked.topics }),
		countField("publishers", 0, func(c *Case) *int { return &c.Load.asked.publishers }),
		countField("subscribers", 0, func(c *Case) *int { return &c.Load.asked.subscribers }),
		omitDefault(1, intField("topics_per_publisher", 1, maxPairs, func(c *Case) *int { return &c.Load.TopicsPerPublisher })),
		omitDefault(1, intField("topics_per_subscriber", 1, maxPairs, func(c *Case) *int { return &c.Load.TopicsPerSubscriber })),
		stringField("share", checkShare, func(c *Case) *string { return &c.Load.Share }),
		filterField(),
		omitDefault(0, intField("idle", 0, maxPairs, func(c *Case) *int { return &c.Load.Idle })),
		intField("inflight", 1, maxInflight, func(c *Case) *int { return &c.Load.Inflight }),
		{key: "messages", parse: func(_, text string) (value, error) {
			n, err := parseWhole("messages", text, 0, maxMessages)
			return plain(text, func(c *Case) { c.Load.Messages = n }), err
		}, get: func(s *Scenario) any { return s.base.Load.Messages }},
		timeField("min_time", time.Millisecond, time.Hour, func(c *Case) *time.Duration { return &c.Load.MinTime }),
		intField("launches", 1, maxLaunches, func(c *Case) *int { return &c.Load.Launches }),
		intField("warmup", 0, maxIterations, func(c *Case) *int { return &c.Load.Warmup }),
		intField("iterations", 1, maxIterations, func(c *Case) *int { return &c.Load.Iterations }),
		timeField("drain", time.Millisecond, time.Hour, func(c *Case) *time.Duration { return &c.Load.Drain }),
		omitDefault(true, field{key: "verify", parse: func(_, text string) (value, error) {
			on, err := parseSwitch("verify", text)
			return plain(text, func(c *Case) { c.Load.VerifyOff = !on }), err
		}, get: func(s *Scenario) any { return !s.base.Load.VerifyOff }}),
		boolField("fresh_iterations", func(c *Case) *bool { return &c.Load.FreshIterations }),
		intField("operations_per_message", 1, 2, func(c *Case) *int { return &c.Load.OperationsPerMessage }),
	}
	list = in("load", append(list, paceFields()...)...)
	for i := range list {
		list[i].axis = list[i].parse != nil
	}
	return list
}

// in puts fields into a section of the file.
func in(section string, list ...field) []field {
	for i := range list {
		list[i].section = section
	}
	return list
}

func plain(text string, apply func(*Case)) value { return value{text, text, apply} }

func axisField(key string, parse func(dir, text string) (value, error)) field {
	return field{key: key, axis: true, parse: parse}
}

func intField(key string, least, most int64, at func(*Case) *int) field {
	return field{key: key, parse: func(_, text string) (value, error) {
		n, err := parseWhole(key, text, least, most)
		return plain(strconv.FormatInt(n, 10), func(c *Case) { *at(c) = int(n) }), err
	}, get: func(s *Scenario) any { return *at(&s.base) }}
}

// countField is a number of topics or clients, which the shape sets where the
// scenario does not.
func countField(key string, least int64, at func(*Case) *int) field {
	return omitDefault(unset, intField(key, least, maxPairs, at))
}

// omitDefault leaves a field out of Effective where it has its default. A key that
// is added to the format then keeps the hashes of scenarios without it.
func omitDefault[T comparable](def T, f field) field {
	get := f.get
	f.get = func(s *Scenario) any {
		if v := get(s); v != any(def) {
			return v
		}
		return nil
	}
	return f
}

func timeField(key string, least, most time.Duration, at func(*Case) *time.Duration) field {
	return field{key: key, parse: func(_, s string) (value, error) {
		d, err := parseTime(key, s, least, most)
		return plain(text.Duration(d), func(c *Case) { *at(c) = d }), err
	}, get: func(s *Scenario) any { return text.Duration(*at(&s.base)) }}
}

// secondsField is [timeField] for what MQTT carries in whole seconds.
func secondsField(key string, most int64, at func(*Case) *time.Duration) field {
	f := timeField(key, 0, 0, at)
	f.parse = func(_, s string) (value, error) {
		d, err := parseSeconds(key, s, most)
		return plain(text.Duration(d), func(c *Case) { *at(c) = d }), err
	}
	return f
}

func boolField(key string, at func(*Case) *bool) field {
	return field{key: key, parse: func(_, text string) (value, error) {
		on, err := parseFlag(key, text)
		return plain(text, func(c *Case) { *at(c) = on }), err
	}, get: func(s *Scenario) any { return *at(&s.base) }}
}

// stringField is a string that check may reject; an empty one is left out of Effective.
func stringField(key string, check func(string) error, at func(*Case) *string) field {
	return field{key: key, parse: func(_, text string) (value, error) {
		return plain(text, func(c *Case) { *at(c) = text }), check(text)
	}, get: func(s *Scenario) any { return orNil(*at(&s.base)) }}
}

func listOrNil(list []string) any {
	if list == nil {
		return nil
	}
	return list
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// listField is a list of values that are parsed one by one; a fault names its value.
func listField[T any](key string, many int, parse func(dir, text string) (T, error), at func(*Case) *[]T, show func(T) string) field {
	return field{key: key, many: many,
		assign: func(s *Scenario, dir string, texts []string) error {
			var list []T
			var bad elements
			for i, text := range texts {
				one, err := parse(dir, text)
				if err != nil {
					bad = append(bad, element{i, err})
				}
				list = append(list, one)
			}
			if bad != nil {
				return bad
			}
			*at(&s.base) = list
			return nil
		},
		get: func(s *Scenario) any {
			var texts []string
			for _, one := range *at(&s.base) {
				texts = append(texts, show(one))
			}
			return listOrNil(texts)
		}}
}

// elements are the faults of the values of a list, each with its index.
type elements []element

type element struct {
	i   int
	err error
}

// Error returns one line per fault.
func (e elements) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.err.Error()
	}
	return strings.Join(lines, "\n")
}

// indexed says which value of a list is at fault where the value is secret.
func indexed(i, n int, err error) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("number %d of %d: %w", i+1, n, err)
}
