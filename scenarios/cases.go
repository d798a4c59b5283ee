package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/result"
	"github.com/mqttload/mqttload/tlsconf"
)

// maxCases is the largest number of cases, which a report can hold.
const maxCases = result.MaxCases

// Cases expands the matrix. The axes come in the order written, the first one
// varies slowest, and every id is unique. Params hold every axis: those of the
// matrix, and qos, payload and protocol unless the shape does not use them.
// Transport is an axis only where the scenario or a setting names it. Otherwise a
// case runs over TLS if its targets are mqtts:// or any TLS option is set, and over
// TCP if not. Each case keeps the targets of its own transport. A case without
// Target.URLs is for the embedded broker, whose addresses [At] fills in.
//
// The error is of type [Errors] and holds every fault of the scenario.
func (s *Scenario) Cases() ([]Case, error) {
	base, bad := s.resolved()
	axes := s.allAxes()
	total := 1
	for _, a := range axes {
		// At most maxCases times an axis from a file of 1 MiB: no overflow.
		if total *= len(a.values); total > maxCases {
			bad = append(bad, s.at("matrix", fmt.Sprintf("the matrix has more than %d cases: shorten an axis", maxCases)))
			return nil, bad.err()
		}
	}
	patterns, more := s.excludes(axes)
	bad = append(bad, more...)
	var cases []Case
	for n := range total {
		c := caseAt(base, axes, n)
		c.Load.Seed = s.Seed
		if slices.ContainsFunc(patterns, func(p *pattern) bool { return p.match(c.Params) }) {
			continue
		}
		if faults := s.settle(&c); len(faults) > 0 {
			bad = append(bad, faults...)
		} else {
			bad = append(bad, s.check(&c)...)
		}
		cases = append(cases, c)
	}
	bad = append(bad, s.unmatched(patterns)...)
	bad = append(bad, s.checkRows(cases)...)
	bad = append(bad, s.checkProtocols(cases)...)
	if len(bad) == 0 {
		bad = selectTargets(cases)
	}
	if len(cases) == 0 {
		bad = append(bad, s.at("exclude", "exclude leaves no case to run"))
	}
	if len(bad) > 0 {
		// The user should not have to run again to learn of these.
		return nil, append(bad, s.tlsFaults()...).err()
	}
	return cases, nil
}

// CheckTLS reads the files of the section tls. Its error is of type [Errors] and
// holds every fault of the section, each at the place of its value.
func (s *Scenario) CheckTLS() error { return s.tlsFaults().err() }

func (s *Scenario) tlsFaults() (bad Errors) {
	_, err := s.base.TLS.ClientConfig("localhost")
	for _, one := range tlsconf.Faults(err) {
		var fault *tlsconf.FieldError
		if !errors.As(one, &fault) {
			bad = append(bad, Error{Path: "tls", Msg: one.Error()})
			continue
		}
		key := string(fault.Field)
		where, known := s.places[key]
		if !known {
			where = place{file: s.file}
		}
		cause := errors.New(fault.Cause(s.fieldNames(where)))
		bad = append(bad, where.refuse(&field{key: key}, "tls."+key, fault.Value, cause))
	}
	return bad
}

// fieldNames returns what a message about a value at where calls the fields: by
// the flag or key that has set the field, and otherwise like the value itself.
func (s *Scenario) fieldNames(where place) func(tlsconf.Field) string {
	return func(f tlsconf.Field) string {
		at, given := s.places[string(f)]
		if !given {
			at = where
			if at.flag != "" {
				at.flag = Flag(string(f))
			}
		}
		return cmp.Or(at.flag, string(f))
	}
}

// at is a fault of a key, at the place where the key was set.
func (s *Scenario) at(key, msg string) Error {
	p, ok := s.places[key]
	if !ok {
		p = place{file: s.file}
	}
	return p.fault(key, msg)
}

// caseAt is the n-th case: each axis is one digit of n, the first axis the most
// significant.
func caseAt(base Case, axes []axis, n int) Case {
	c := base
	picked := make([]value, len(axes))
	for i := len(axes) - 1; i >= 0; i-- {
		size := len(axes[i].values)
		picked[i] = axes[i].values[n%size]
		n /= size
	}
	parts := make([]string, len(axes))
	c.Params = make([]result.Param, len(axes))
	for i, v := range picked {
		v.apply(&c)
		c.Params[i] = result.Param{Key: axes[i].key, Value: v.name}
		parts[i] = axes[i].key + "=" + escapeID(v.name)
	}
	c.ID = strings.Join(parts, "/")
	return c
}

// escapeID escapes the slash, which separates the parameters of an id.
func escapeID(s string) string { return idEscapes.Replace(s) }

var idEscapes = strings.NewReplacer("%", "%25", "/", "%2F")

// resolved is the base of all cases with target, password and implied transport
// settled.
func (s *Scenario) resolved() (Case, Errors) {
	var bad Errors
	c := s.base
	for _, one := range implied {
		impliedValue(one.key, one.text).apply(&c)
	}
	c.Target.URLs = slices.Clone(c.Target.URLs)
	switch {
	case s.port != "" && s.host == "" && len(c.Target.URLs) > 0:
		bad = append(bad, s.at("port", "the target is given as url: put the port there"))
	case s.host != "" || s.port != "":
		u, err := s.hostURL()
		if err != nil {
			bad = append(bad, s.at("host", err.Error()))
		}
		c.Target.URLs = []URL{u}
	}
	var err error
	if c.Clients.Password, c.Clients.HasPassword, err = s.password(); err != nil {
		key := "password_env"
		if s.passwordFile != "" {
			key = "password_file"
		}
		bad = append(bad, s.at(key, err.Error()))
	}
	if path := c.Clients.Credentials; path != "" {
		if c.Clients.credentialIDs, c.Clients.credentialAuth, err = columnsOf(path); err != nil {
			bad = append(bad, s.at("credentials", err.Error()))
		}
	}
	settleUser(&c)
	if c.Transport, err = impliedTransport(&c); err != nil && !s.hasAxis("transport") {
		bad = append(bad, s.at("url", err.Error()))
	}
	return c, bad
}

func (s *Scenario) hasAxis(key string) bool {
	return slices.ContainsFunc(s.axes, func(a axis) bool { return a.key == key })
}

// settleUser lets the section clients win where a URL names a user or a password
// too. The password of a URL has no variables.
func settleUser(c *Case) {
	for i := range c.Target.URLs {
		u := &c.Target.URLs[i]
		u.Password = literal(u.Password)
		if c.Clients.HasUsername {
			u.Username, u.HasUsername, u.Password, u.HasPassword = "", false, "", false
		} else if u.HasUsername && c.Clients.HasPassword {
			u.Password, u.HasPassword = c.Clients.Password, true
		}
	}
}

// impliedTransport is the transport of cases without an axis for it.
func impliedTransport(c *Case) (Transport, error) {
	var found []Transport
	for _, u := range c.Target.URLs {
		t := u.Transport()
		if c.TLS.Given() {
			t = t.Secured()
		}
		if !slices.Contains(found, t) {
			found = append(found, t)
		}
	}
	switch {
	case len(found) > 1:
		slices.Sort(found)
		a, b := found[0], found[1]
		return TCP, fmt.Errorf("some targets are %s:// and some %s://: list transport: [%s, %s] in matrix to measure each separately",
			a.Scheme(), b.Scheme(), a, b)
	case len(found) == 1:
		return found[0], nil
	case c.TLS.Given():
		return TCP.Secured(), nil
	}
	return TCP, nil
}

// pattern is one line of exclude: the parameters of the cases to leave out.
type pattern struct {
	text   string
	params []result.Param
	used   bool
}

func (p *pattern) match(params []result.Param) bool {
	for _, want := range p.params {
		if !slices.Contains(params, want) {
			return false
		}
	}
	p.used = true
	return true
}

// excludes parses the patterns. Their values may be written as in the matrix.
func (s *Scenario) excludes(axes []axis) ([]*pattern, Errors) {
	var list []*pattern
	var bad Errors
	for _, written := range s.Exclude {
		p := &pattern{text: written}
		for part := range strings.SplitSeq(written, "/") {
			param, err := excludeParam(axes, part)
			if err != nil {
				bad = append(bad, s.at("exclude", fmt.Sprintf("exclude %q: %v", text.Short(written), err)))
				continue
			}
			p.params = append(p.params, param)
		}
		if len(p.params) > 0 {
			list = append(list, p)
		}
	}
	return list, bad
}

func excludeParam(axes []axis, part string) (result.Param, error) {
	key, value, ok := strings.Cut(part, "=")
	if !ok {
		return result.Param{}, fmt.Errorf("%s is not KEY=VALUE: write a pattern such as qos=2/payload=8192", text.Quote(part))
	}
	i := slices.IndexFunc(axes, func(a axis) bool { return a.key == key })
	if i < 0 {
		var keys []string
		for _, a := range axes {
			keys = append(keys, a.key)
		}
		return result.Param{}, fmt.Errorf("%s is not an axis: the axes are %s", text.Quote(key), strings.Join(keys, ", "))
	}
	if plain, err := url.PathUnescape(value); err == nil {
		value = plain // as in ids
	}
	for _, v := range axes[i].values {
		if value == v.name || value == v.source {
			return result.Param{Key: key, Value: v.name}, nil
		}
	}
	// A file that is not on the axis need not be read.
	if strings.HasPrefix(value, "@") || strings.HasPrefix(value, "trace:") {
		return result.Param{Key: key, Value: value}, nil
	}
	v, err := fieldOf(key).parse("", value)
	return result.Param{Key: key, Value: v.name}, err
}

// unmatched rejects patterns that match no case: a typing error would go
// unnoticed. Where a setting has narrowed the matrix, that is expected.
func (s *Scenario) unmatched(patterns []*pattern) Errors {
	var bad Errors
	for _, p := range patterns {
		if !p.used && !s.narrowed {
			bad = append(bad, s.at("exclude", fmt.Sprintf("exclude %q matches no case: correct or remove it", text.Short(p.text))))
		}
	}
	return bad
}

// settle turns what the scenario says into the numbers that the engine reads.
func (s *Scenario) settle(c *Case) Errors {
	var bad Errors
	fail := func(key, format string, args ...any) {
		bad = append(bad, s.at(key, fmt.Sprintf(format, args...)))
	}
	settleShape(&c.Load, s.places["shape"].flag != "", fail)
	switch {
	case len(bad) > 0:
	case c.Payload.Kind == PayloadTrace:
		s.settleTrace(c, fail)
	default:
		s.settlePace(&c.Load, fail)
	}
	c.Load.asked = asked{}
	settleWill(c)
	return bad
}

// check finds the faults that only a settled case shows.
func (s *Scenario) check(c *Case) Errors {
	var bad Errors
	fail := func(key, format string, args ...any) {
		bad = append(bad, s.at(key, fmt.Sprintf(format, args...)))
	}
	checkNames(c, c.Load.Connections(), fail)
	checkWill(c, func(key string) bool { return s.places[key] != (place{}) }, fail)
	checkExpanded(c, fail)
	checkVersion(c, fail)
	checkProperties(c, fail)
	checkAuth(c, fail)
	if c.Load.Shape.Queues > 0 && c.QoS == 0 {
		fail("qos", "shape %s needs QoS 1 or 2, and the matrix has 0: a broker need not queue QoS 0 messages", c.Load.Shape)
	}
	if c.Load.Shape.Queues > 0 && c.Clients.ClientID == "" {
		fail("client_id", "shape %s needs a client_id, by which the broker finds a session", c.Load.Shape)
	}
	if n, noun := c.Load.Topics*c.Load.Publishers, "publishers"; c.Load.Messages > 0 && c.Load.Messages < int64(n) {
		if c.Load.Publishers == 1 {
			noun = "pairs"
		}
		fail("messages", "%d messages for %d %s: every publisher needs at least one", c.Load.Messages, n, noun)
	}
	if size := remainingLength(c); size > packet.MaxRemainingLength {
		fail("payload", "a payload of %d bytes does not fit: with topic and properties the packet is %d bytes over MQTT's limit of 268,435,455",
			c.Payload.Size, size-packet.MaxRemainingLength)
	}
	if t := c.Transport; !t.Secure() && c.TLS.Given() && !s.tlsAxis() {
		fail("transport", "transport is %s, and there are TLS options: add %s to transport or remove them", t, t.Secured())
	}
	return bad
}

// checkRows reads the credentials file as far as the case with the most clients does.
func (s *Scenario) checkRows(cases []Case) Errors {
	k := rowCheck{names: s.fieldNames(s.places["credentials"])}
	for i := range cases {
		c := &cases[i]
		k.clients = max(k.clients, c.Load.Connections())
		k.scram = k.scram || c.Clients.AuthMethod != ""
		if c.Transport.Secure() {
			k.tls = &c.TLS
		}
	}
	if path := s.base.Clients.Credentials; path != "" && k.clients > 0 {
		if err := checkCredentials(path, k); err != nil {
			return Errors{s.at("credentials", err.Error())}
		}
	}
	return nil
}

func (s *Scenario) tlsAxis() bool {
	for _, a := range s.axes {
		if a.key == "transport" {
			return slices.ContainsFunc(valueNames(a), result.OverTLS)
		}
	}
	return false
}

// maxClientNumber has as many digits as the longest client number.
const maxClientNumber = 100_000_000

// checkNames rejects topics and client ids that clients would share.
func checkNames(c *Case, clients int, fail failer) {
	id, topic := c.Clients.ClientID, c.Clients.Topic
	if clients > 1 && !uses(id, 'i') && id != "" && !c.Clients.credentialIDs {
		fail("client_id", "client_id %s is the same for all %d clients, and a broker allows one connection per id: add %%i", text.Quote(id), clients)
	}
	if n, what := c.Load.Topics, "topics"; n > 1 && !c.topicsDiffer() {
		if c.Load.Pairs == n {
			what = "pairs"
		}
		fail("topic", "topic %s is the same for all %d %s, and each needs its own: add %%i", text.Quote(topic), n, what)
	}
	longest := clientVars(c, maxClientNumber).C
	switch {
	// MQTT 3.1, section 3.1: the Client Identifier has 1 to 23 characters.
	case c.Protocol == packet.V31 && (id == "" || len(longest) > 23):
		fail("client_id", "client_id %s may have %d characters, and MQTT 3.1 allows 1 to 23: shorten it", text.Quote(id), len(longest))
	// [MQTT-3.1.3-7] of MQTT 3.1.1
	case c.Protocol == packet.V311 && id == "" && !c.Clients.CleanStart:
		fail("client_id", "an empty client_id needs clean_start with MQTT 3.1.1")
	case len(longest) > maxBinary:
		fail("client_id", "client_id is over MQTT's limit of 65,535 bytes")
	}
}

// topicsDiffer reports whether every topic has its own name: by its number, or by
// a client id or user name that differs between clients.
func (c *Case) topicsDiffer() bool {
	own := c.Load.TopicsPerPublisher == 1
	id := uses(c.Clients.ClientID, 'i') || c.Clients.credentialIDs
	user := uses(c.Clients.Username, 'i') || c.Clients.Credentials != ""
	return uses(c.Clients.Topic, 'i') || own && (id && uses(c.Clients.Topic, 'c') || user && uses(c.Clients.Topic, 'u'))
}

// checkVersion rejects what only MQTT 5 can carry.
func checkVersion(c *Case, fail failer) {
	if c.Protocol == packet.V5 {
		return
	}
	// [MQTT-3.1.2-22] of MQTT 3.1.1
	userless := !c.Clients.HasUsername && c.Clients.Credentials == "" && (len(c.Target.URLs) == 0 ||
		slices.ContainsFunc(c.Target.URLs, func(u URL) bool { return !u.HasUsername }))
	if c.Clients.HasPassword && userless {
		fail("password", "a password without a user name needs protocol 5, and the matrix has %s: give username", c.Protocol)
	}
}

// remainingLength is that of the case's longest PUBLISH. [MQTT5 3.3.1.4]
func remainingLength(c *Case) int {
	n := 2 + len(Expand(c.Clients.Topic, topicVars(c, c.Load.Topics))) + c.Payload.Size
	if c.QoS > 0 {
		n += 2
	}
	if c.Protocol != packet.V5 {
		return n
	}
	properties := propertyLength(c)
	return n + packet.VarintSize(properties) + properties
}

// overwritten is the name of a payload with content of the user's whose first bytes
// the stamp replaces, or "".
func (s *Scenario) overwritten() string {
	for _, p := range s.payloads() {
		own := p.Kind == PayloadText || p.Kind == PayloadFile || p.Kind == PayloadTemplate
		if own && p.Size >= StampSize && !s.base.Load.VerifyOff && !s.hasAxis("verify") {
			return p.Name
		}
	}
	return ""
}

// Warnings are facts that the user should know and that do not prevent a run.
func (s *Scenario) Warnings() []result.Warning {
	var list []result.Warning
	if strings.HasPrefix(Expand(s.base.Clients.Topic, topicVars(&s.base, 1)), "$") {
		list = append(list, result.Warning{
			Code: result.CodeDollarTopic, Message: fmt.Sprintf("topic %s begins with $, which is reserved for the broker", text.Quote(s.base.Clients.Topic)),
			// [MQTT-4.7.2-1] and the non-normative comment below it
			Hint: "brokers may refuse or drop messages to it: choose another topic",
		})
	}
	if name := s.overwritten(); name != "" {
		list = append(list, result.Warning{
			Code: result.CodeStamp, Message: fmt.Sprintf("the first 8 bytes of payload %s are replaced by the ledger's stamp", text.Quote(name)),
			Hint: "--verify=off sends it unchanged; messages are then only counted",
		})
	}
	if s.base.TLS.Insecure {
		list = append(list, result.Warning{
			Code: result.CodeInsecure, Message: "the server's certificate is not verified",
			Hint: "give its CA with --cafile instead of --insecure",
		})
	}
	if s.passwordFileIsPublic() {
		list = append(list, result.Warning{
			Code: result.CodePasswordFileMode, Message: fmt.Sprintf("every user of this machine can read the password file %s", text.Quote(s.passwordFile)),
			Hint: "restrict it with chmod 600",
		})
	}
	return append(list, s.unsupportedKeys()...)
}
