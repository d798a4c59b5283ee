package scenarios

import (
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

// maxCases bounds the matrix, so that a report can hold its cases.
const maxCases = result.MaxCases

// Cases expands the matrix: the first axis varies slowest, the axes come in the
// order written, and every id is unique. Params hold every axis; qos, payload
// and protocol are axes also where the scenario does not name them, unless its
// shape has no use for them, transport only where the scenario or a setting
// names it. Without it a case runs over TLS when its targets are mqtts:// or
// anything is said about TLS, and else over TCP. Each case gets those of the
// targets that speak its transport; cases without Target.URLs are for the
// embedded broker, whose addresses [At] gives them.
//
// The error is of type [Errors] and holds everything that is wrong.
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
	bad = append(bad, s.unused(patterns)...)
	bad = append(bad, s.checkRows(cases)...)
	bad = append(bad, s.checkProtocols(cases)...)
	if len(bad) == 0 {
		bad = aim(cases)
	}
	if len(cases) == 0 {
		bad = append(bad, s.at("exclude", "exclude leaves no case to run"))
	}
	if len(bad) > 0 {
		// Whoever mends the rest should not have to run again to hear of these.
		return nil, append(bad, s.missingFiles()...).err()
	}
	return cases, nil
}

// missingFiles names the files of the section tls that cannot be used. The
// faults of a scenario that is sound otherwise are for whoever reads the files
// to connect.
func (s *Scenario) missingFiles() Errors {
	_, err := s.base.TLS.ClientConfig("localhost")
	var bad Errors
	for _, one := range tlsconf.Faults(err) {
		var file *tlsconf.FileError
		if errors.As(one, &file) {
			key := strings.ReplaceAll(strings.TrimPrefix(file.Flag, "--"), "-", "_")
			where, known := s.places[key]
			if !known {
				where = place{file: s.file}
			}
			bad = append(bad, where.refuse(&field{key: key}, "tls."+key, file.Path, file.Err))
		}
	}
	return bad
}

// at is a fault of a key that was set somewhere, or by default.
func (s *Scenario) at(key, msg string) Error {
	p, ok := s.places[key]
	if !ok {
		p = place{file: s.file}
	}
	return p.fault(key, msg)
}

// caseAt is the n-th case: n written in a number system whose digits are the
// axes, the first the most significant.
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

// escapeID keeps the slash of a file name from looking like the next param's.
func escapeID(s string) string { return idEscapes.Replace(s) }

var idEscapes = strings.NewReplacer("%", "%25", "/", "%2F")

// resolved is the base of all cases with the target, the password and the
// implied transport settled.
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
	shareUser(&c)
	if c.Transport, err = impliedTransport(&c); err != nil && !s.hasAxis("transport") {
		bad = append(bad, s.at("url", err.Error()))
	}
	return c, bad
}

func (s *Scenario) hasAxis(key string) bool {
	return slices.ContainsFunc(s.axes, func(a axis) bool { return a.key == key })
}

// shareUser settles who wins where a URL and the clients section both name a
// user or a password: the clients section. The password of a URL is taken as it is.
func shareUser(c *Case) {
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

// impliedTransport is the transport where no axis names it.
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
		return TCP, fmt.Errorf("the targets are part %s:// and part %s://: list transport: [%s, %s] in matrix to measure each by itself",
			a.Scheme(), b.Scheme(), a, b)
	case len(found) == 1:
		return found[0], nil
	case c.TLS.Given():
		return TCP.Secured(), nil
	}
	return TCP, nil
}

// pattern is one line of exclude: the params that a case must have.
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

// excludes parses the patterns; values may be written as in the matrix.
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
		return result.Param{}, fmt.Errorf("%s is not KEY=VALUE: write such as qos=2/payload=8192", text.Quote(part))
	}
	i := slices.IndexFunc(axes, func(a axis) bool { return a.key == key })
	if i < 0 {
		var keys []string
		for _, a := range axes {
			keys = append(keys, a.key)
		}
		return result.Param{}, fmt.Errorf("%s is no axis: the axes are %s", text.Quote(key), strings.Join(keys, ", "))
	}
	if plain, err := url.PathUnescape(value); err == nil {
		value = plain // as in ids
	}
	for _, v := range axes[i].values {
		if value == v.name || value == v.source {
			return result.Param{Key: key, Value: v.name}, nil
		}
	}
	// A file need not be read to see that it is not on the axis.
	if strings.HasPrefix(value, "@") || strings.HasPrefix(value, "trace:") {
		return result.Param{Key: key, Value: value}, nil
	}
	v, err := fieldOf(key).parse("", value)
	return result.Param{Key: key, Value: v.name}, err
}

// unused refuses patterns that leave out nothing: a slip of the keyboard would
// go unnoticed. A setting that narrows the matrix may well make one idle.
func (s *Scenario) unused(patterns []*pattern) Errors {
	var bad Errors
	for _, p := range patterns {
		if !p.used && !s.narrowed {
			bad = append(bad, s.at("exclude", fmt.Sprintf("exclude %q matches no case: correct or remove it", text.Short(p.text))))
		}
	}
	return bad
}

// settle turns what a case was asked into what the engine reads.
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

// check is about what only a whole case shows.
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
		fail("qos", "shape %s needs QoS 1 or 2, and the matrix has 0: a broker need not keep QoS 0 messages for who is away", c.Load.Shape)
	}
	if c.Load.Shape.Queues > 0 && c.Clients.ClientID == "" {
		fail("client_id", "shape %s needs a client_id: a session is found again by it", c.Load.Shape)
	}
	if n, who := c.Load.Topics*c.Load.Publishers, "publishers"; c.Load.Messages > 0 && c.Load.Messages < int64(n) {
		if c.Load.Publishers == 1 {
			who = "pairs"
		}
		fail("messages", "%d messages for %d %s: every publisher needs at least one", c.Load.Messages, n, who)
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

// checkRows reads the credentials of the widest case through.
func (s *Scenario) checkRows(cases []Case) Errors {
	clients, secure, scram := 0, false, false
	for _, c := range cases {
		clients = max(clients, c.Load.Connections())
		secure = secure || c.Transport.Secure()
		scram = scram || c.Clients.AuthMethod != ""
	}
	if path := s.base.Clients.Credentials; path != "" && clients > 0 {
		if err := checkCredentials(path, clients, secure, scram); err != nil {
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

// maxClientNumber has as many digits as client numbers get.
const maxClientNumber = 100_000_000

// checkNames is about topics and client ids that clients must not share.
func checkNames(c *Case, clients int, fail failer) {
	id, topic := c.Clients.ClientID, c.Clients.Topic
	if clients > 1 && !uses(id, 'i') && id != "" && !c.Clients.credentialIDs {
		fail("client_id", "client_id %s is the same for all %d clients, and brokers allow it once: add %%i", text.Quote(id), clients)
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

// topicsDiffer reports whether the topics of the pattern can be told apart: by
// their number, or by a client id or user name that their clients do not share.
func (c *Case) topicsDiffer() bool {
	own := c.Load.TopicsPerPublisher == 1
	id := uses(c.Clients.ClientID, 'i') || c.Clients.credentialIDs
	user := uses(c.Clients.Username, 'i') || c.Clients.Credentials != ""
	return uses(c.Clients.Topic, 'i') || own && (id && uses(c.Clients.Topic, 'c') || user && uses(c.Clients.Topic, 'u'))
}

// checkVersion refuses what only MQTT 5 can carry.
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

// stamped is a payload of somebody's own content that does not arrive as it is, or "".
func (s *Scenario) stamped() string {
	for _, a := range s.axes {
		for _, v := range a.values {
			var c Case
			v.apply(&c)
			own := c.Payload.Kind == PayloadText || c.Payload.Kind == PayloadFile || c.Payload.Kind == PayloadTemplate
			if own && c.Payload.Size >= StampSize && !s.base.Load.VerifyOff && !s.hasAxis("verify") {
				return c.Payload.Name
			}
		}
	}
	return ""
}

// Warnings are facts about the scenario that its reader should know, and that
// do not keep it from running.
func (s *Scenario) Warnings() []result.Warning {
	var list []result.Warning
	if strings.HasPrefix(Expand(s.base.Clients.Topic, topicVars(&s.base, 1)), "$") {
		list = append(list, result.Warning{
			Code: result.CodeDollarTopic, Message: fmt.Sprintf("topic %s begins with $, which brokers keep for themselves", text.Quote(s.base.Clients.Topic)),
			// [MQTT-4.7.2-1] and the non-normative comment below it
			Hint: "brokers may refuse or drop messages to it: choose another topic",
		})
	}
	if name := s.stamped(); name != "" {
		list = append(list, result.Warning{
			Code: result.CodeStamp, Message: fmt.Sprintf("the first 8 bytes of payload %s are replaced by the ledger's stamp", text.Quote(name)),
			Hint: "--verify=off sends it as it is, and then messages are only counted",
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
			Code: result.CodePasswordFileMode, Message: fmt.Sprintf("everybody can read the password file %s", text.Quote(s.passwordFile)),
			Hint: "chmod 600 it",
		})
	}
	return append(list, s.unheeding()...)
}
