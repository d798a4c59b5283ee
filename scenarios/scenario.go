package scenarios

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mqttload/mqttload/internal/text"
)

// Scenario is a matrix, the load of each of its cases, and the target. It comes from
// [Open], [Parse] or [Builtins]; the zero value is not usable. [Scenario.Set]
// overrides single keys, and [Scenario.Cases] expands the matrix.
type Scenario struct {
	Name        string
	Description string
	Exclude     []string // cases to leave out: "qos=2/payload=8192"
	// Gates are conditions on the results as they are written: "p99 < 5ms @ qos=1".
	// Package result parses them; [Scenario.GatePlace] says where each stands.
	Gates []string
	// LookupEnv reads the variable of password_env. It is nil unless the
	// caller sets it: this package does not read the environment.
	LookupEnv func(name string) (string, bool)
	// Seed is Load.Seed of all cases, from which all random numbers are drawn.
	Seed uint64

	base         Case // everything but the axes
	axes         []axis
	host, port   string // the target where it is not given as url
	passwordFile string
	passwordEnv  string
	places       map[string]place // by key
	gatePlaces   []place          // by index of Gates
	narrowed     bool             // a setting replaced an axis
	file         string
	source       []byte
}

// axis is one key of the matrix with its values, in the order written.
type axis struct {
	key    string
	values []value
}

// implied are the axes that every case has, with the value of a scenario that does
// not name them.
var implied = []struct{ key, text string }{{"qos", "0"}, {"payload", "10"}, {"protocol", "3.1.1"}}

// newScenario returns a scenario with the defaults. The default topic and
// client id differ between runs by %r and between clients by %i; the client id
// uses only what every broker must take, 1 to 23 of 0-9 a-z A-Z. [MQTT-3.1.3-5]
func newScenario() *Scenario {
	return &Scenario{places: map[string]place{}, base: Case{
		Transport: TCP,
		Load: Load{
			Shape: Pairs, Pairs: 1, Inflight: 100, MinTime: 250 * time.Millisecond,
			Launches: 1, Warmup: 3, Iterations: 15, Drain: 5 * time.Second, OperationsPerMessage: 1,
			TopicsPerPublisher: 1, TopicsPerSubscriber: 1, Arrival: Constant,
			asked: asked{topics: unset, publishers: unset, subscribers: unset},
		},
		Clients: Clients{Topic: "mqttload/%r/%i", ClientID: "ml%r%i", KeepAlive: time.Minute, CleanStart: true, StartNumber: 1},
		Target:  Target{ConnectTimeout: 10 * time.Second},
	}}
}

// Source returns the content of the scenario file.
func (s *Scenario) Source() []byte { return slices.Clone(s.source) }

// Files lists the files that the scenario and its settings name, and those in its
// directory of CA certificates.
func (s *Scenario) Files() (list []string) {
	o, c := &s.base.TLS, &s.base.Clients
	for _, path := range append(slices.Clone(o.CAFiles), o.CertFile, o.KeyFile, o.KeyPasswordFile, s.passwordFile, c.Credentials) {
		if path != "" {
			list = append(list, path)
		}
	}
	// A directory that cannot be read is reported where its certificates are used.
	inside, _ := os.ReadDir(o.CAPath)
	for _, f := range inside {
		list = append(list, filepath.Join(o.CAPath, f.Name()))
	}
	for _, p := range s.payloads() {
		if p.path != "" {
			list = append(list, p.path)
		}
	}
	return list
}

// payloads are the values of the payload axis, none where it is implied.
func (s *Scenario) payloads() (list []Payload) {
	for _, a := range s.axes {
		for _, v := range a.values {
			var c Case
			if v.apply(&c); a.key == "payload" {
				list = append(list, c.Payload)
			}
		}
	}
	return list
}

// GatePlace says where gate i stands, "nightly.yaml:7".
func (s *Scenario) GatePlace(i int) string {
	return fmt.Sprintf("%s:%d", s.gatePlaces[i].file, s.gatePlaces[i].line)
}

// Keys lists every key that [Scenario.Set] takes.
func Keys() []string {
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.key)
	}
	return append(keys, "host", "port", "tls")
}

// Set overrides one key: Set("qos", "0,1") is --qos 0,1. The key is the flag's long
// name, with - or _. Axes, alpn, curves and source_ip take lists separated by
// commas; a payload that begins with text:, template: or mix: keeps its commas. A
// key of load with one value replaces its axis, if the matrix has one. The error is
// of type [Errors]: "--qos 3: qos must be 0, 1 or 2".
func (s *Scenario) Set(key, text string) error {
	return s.SetFrom(Flag(key), key, text)
}

// Flag returns the flag that sets a key, "--tls-min" for tls_min.
func Flag(key string) string { return "--" + strings.ReplaceAll(key, "_", "-") }

// SetFrom is [Scenario.Set] for a value that is not a flag's: messages begin with
// origin, such as "MQTTLOAD_QOS". Keys whose flags can be repeated (url, cafile,
// user_property) take several values, which replace the scenario's.
func (s *Scenario) SetFrom(origin, key string, texts ...string) error {
	name := strings.ReplaceAll(key, "-", "_")
	if name == "user_property" {
		name = "user_properties"
	}
	at := place{flag: origin}
	if len(texts) == 0 {
		return Errors{at.fault(name, "has no value")}
	}
	if handled, err := s.setSpecial(name, texts[len(texts)-1]); handled {
		if err != nil {
			text := texts[len(texts)-1]
			// A value that is not a port may be a misplaced password.
			secret := name == "host" || name == "port" && !isDigits(strings.TrimPrefix(text, "-"))
			return Errors{at.refuse(&field{key: name, secret: secret}, name, text, err)}
		}
		s.places[name] = at
		return nil
	}
	f := fieldOf(name)
	if f == nil {
		msg := fmt.Sprintf("unknown key %q", text.Short(key))
		if near := text.Nearest(name, Keys()); near != "" {
			msg += fmt.Sprintf(", did you mean %q?", strings.ReplaceAll(near, "_", "-"))
		}
		return Errors{at.fault(name, msg)}
	}
	if slices.Contains(rateKeys, name) {
		if err := s.replaceRate(name); err != nil {
			return Errors{at.fault(name, err.Error())}
		}
	}
	if f.parse != nil && f.axis || f.many == commas {
		texts = splitCommas(name, texts)
	}
	bad := s.put(f, "", texts, func(i int) place { return at }, f.axis)
	s.places[name] = at
	return bad.err()
}

// setSpecial sets keys that exist only as flags.
func (s *Scenario) setSpecial(name, text string) (handled bool, err error) {
	switch name {
	case "host":
		return true, s.setHost(text)
	case "port":
		_, err := parsePort(text)
		if err == nil {
			s.port = text
		}
		return true, err
	case "tls":
		on, err := parseFlag("tls", text)
		if err != nil {
			return true, err
		}
		transport := TCP
		if on {
			transport = TLS
		}
		v := plain(string(transport), func(c *Case) { c.Transport = transport })
		s.assignValues(fieldOf("transport"), []value{v}, true)
		return true, nil
	}
	return false, nil
}

// setHost replaces the scenario's targets. It conflicts with a url that is a setting.
func (s *Scenario) setHost(text string) error {
	if s.places["url"].flag != "" {
		return fmt.Errorf("%s is given too: keep one", s.places["url"].flag)
	}
	old := s.host
	s.host = text
	_, err := s.hostURL()
	if text == "" {
		err = errors.New("host is empty")
	}
	if err != nil {
		s.host = old
		return err
	}
	s.base.Target.URLs = nil
	return nil
}

// takesCommas reports whether a payload's value may hold commas.
func takesCommas(text string) bool {
	form, _, ok := strings.Cut(text, ":")
	return ok && slices.Contains([]string{"text", "template", "mix"}, form)
}

// splitCommas splits the values of a flag, except for payloads that may hold commas.
func splitCommas(key string, texts []string) []string {
	var list []string
	for _, text := range texts {
		for more := true; more; {
			if rest := strings.TrimLeft(text, " "); key == "payload" && takesCommas(rest) {
				list = append(list, rest)
				break
			}
			var one string
			one, text, more = strings.Cut(text, ",")
			list = append(list, strings.TrimSpace(one))
		}
	}
	return list
}

// put sets field f to texts, as an axis if the field can be one. at says where text
// i stands. If a text is at fault nothing changes.
func (s *Scenario) put(f *field, dir string, texts []string, at func(i int) place, fromFlag bool) Errors {
	var bad Errors
	path := f.section + "." + f.key
	if f.parse == nil {
		if f.many == single && len(texts) > 1 {
			return Errors{at(0).fault(path, f.key+" takes one value")}
		}
		var each elements
		switch err := f.assign(s, dir, texts); {
		case errors.As(err, &each):
			for _, one := range each {
				err := one.err
				if f.secret {
					err = indexed(one.i, len(texts), err)
				}
				bad = append(bad, at(one.i).refuse(f, elementPath(path, one.i, len(texts)), texts[one.i], err))
			}
		case err != nil:
			bad = append(bad, at(0).refuse(f, path, strings.Join(texts, ","), err))
		}
		return bad
	}
	if !f.axis && len(texts) > 1 {
		return Errors{at(0).fault(path, f.key+" takes one value")}
	}
	values := make([]value, len(texts))
	for i, text := range texts {
		v, err := f.parse(dir, text)
		if err != nil {
			bad = append(bad, at(i).refuse(f, elementPath(path, i, len(texts)), text, err))
		}
		for j, other := range values[:i] {
			if err == nil && other.name == v.name {
				bad = append(bad, at(i).fault(elementPath(path, i, len(texts)), twice(f.key, texts[j], text)))
			}
		}
		values[i] = v
	}
	if len(bad) == 0 {
		s.assignValues(f, values, fromFlag)
	}
	return bad
}

func twice(key, first, second string) string {
	if first == second {
		return fmt.Sprintf("%s %s is listed twice", key, text.Quote(first))
	}
	return fmt.Sprintf("%s %s is listed twice, as %s and as %s", key, text.Quote(first), text.Quote(first), text.Quote(second))
}

func elementPath(path string, i, n int) string {
	if n == 1 {
		return path
	}
	return fmt.Sprintf("%s[%d]", path, i)
}

// dropAxis removes a key from the matrix.
func (s *Scenario) dropAxis(key string) {
	n := len(s.axes)
	s.axes = slices.DeleteFunc(s.axes, func(a axis) bool { return a.key == key })
	s.narrowed = s.narrowed || len(s.axes) < n
}

// assignValues makes values an axis, or sets one value for every case.
func (s *Scenario) assignValues(f *field, values []value, fromFlag bool) {
	i := slices.IndexFunc(s.axes, func(a axis) bool { return a.key == f.key })
	switch {
	case f.section != "matrix" && f.axis && len(values) == 1 && fromFlag:
		s.dropAxis(f.key)
		values[0].apply(&s.base)
	case !f.axis:
		values[0].apply(&s.base)
	case i >= 0:
		s.axes[i].values = values
		s.narrowed = s.narrowed || fromFlag
	case fromFlag:
		s.axes, s.narrowed = insertAxis(s.axes, axis{f.key, values}), true
	default:
		s.axes = append(s.axes, axis{f.key, values})
	}
}

// insertAxis adds an axis that the matrix does not have: qos, payload, protocol and
// transport in this order, anything else last.
func insertAxis(axes []axis, a axis) []axis {
	order := []string{"qos", "payload", "protocol", "transport"}
	rank := slices.Index(order, a.key)
	if rank < 0 {
		return append(axes, a)
	}
	for rank--; rank >= 0; rank-- {
		if i := slices.IndexFunc(axes, func(b axis) bool { return b.key == order[rank] }); i >= 0 {
			return slices.Insert(axes, i+1, a)
		}
	}
	return slices.Insert(axes, 0, a)
}

// allAxes is the matrix with the implied axes that it does not name, except those
// that its shape does not use.
func (s *Scenario) allAxes() []axis {
	axes := slices.Clone(s.axes)
	for _, one := range implied {
		if s.hasAxis(one.key) || !s.hasAxis("shape") && slices.Contains(s.base.Load.Shape.unusedAxes, one.key) {
			continue
		}
		axes = insertAxis(axes, axis{one.key, []value{impliedValue(one.key, one.text)}})
	}
	return axes
}

// impliedValue parses a text of implied, which is always valid.
func impliedValue(key, text string) value {
	v, _ := fieldOf(key).parse("", text)
	return v
}

func valueNames(a axis) []string {
	names := make([]string, len(a.values))
	for i, v := range a.values {
		names[i] = v.name
	}
	return names
}
