package result

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
)

// Gate is one parsed rule: what a metric of the selected cases must be, or must
// not be where FailIf is set.
type Gate struct {
	Text     string // as it was written
	FailIf   bool   // the expression states the failure
	Metric   string // path in a case of the report file: "delivery.lost"
	Op       string // < <= > >= == !=
	Limit    float64
	Percent  bool // Limit is in percent of the metric's whole
	Selector []Selector

	metric metric
}

// Selector is one condition on a case: the parameter Key has one of the Values.
type Selector struct {
	Key    string
	Values []string
}

// gateError says what is wrong with a gate: a usage error.
type gateError struct {
	Gate   string
	Reason string
}

func (e *gateError) Error() string { return fmt.Sprintf("gate %q: %s", e.Gate, e.Reason) }

// operators, longest first, so that <= is not taken for <.
var operators = []string{"<=", ">=", "==", "!=", "<", ">"}

// failPrefix marks rules whose expression states the failure, in results and gate files.
const failPrefix = "fail if "

// String is the rule as results of gates show it: "p99 < 5ms @ qos=1", or with
// "fail if" before it.
func (g Gate) String() string {
	if g.FailIf {
		return failPrefix + g.Text
	}
	return g.Text
}

// ParseGate parses METRIC OP VALUE [@ PARAM=VALUE ...]. With failIf the expression
// states what fails ("p99 > 5ms"), without it what must hold ("p99 < 5ms"). VALUE
// has a unit of the metric's dimension, which times need unless they are 0. Commas
// separate several values of a parameter.
func ParseGate(text string, failIf bool) (Gate, error) {
	g := Gate{Text: strings.TrimSpace(text), FailIf: failIf}
	if err := g.parse(); err != nil {
		return Gate{}, &gateError{g.Text, err.Error()}
	}
	return g, nil
}

// parseRule parses a rule as String prints it.
func parseRule(rule string) (Gate, error) {
	rest, failIf := strings.CutPrefix(rule, failPrefix)
	return ParseGate(rest, failIf)
}

// ReadGates reads a gate file: one rule a line, "#" before comments. Rules state
// what must hold; with "fail if" before them, what fails. Errors name every bad line.
func ReadGates(r io.Reader) ([]Gate, error) {
	var gates []Gate
	var bad []error
	sc := bufio.NewScanner(r)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if strings.HasPrefix(line, "#") {
			continue
		}
		if line, _, _ = strings.Cut(line, " #"); strings.TrimSpace(line) == "" {
			continue
		}
		g, err := parseRule(strings.TrimSpace(line))
		if err != nil {
			bad = append(bad, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		gates = append(gates, g)
	}
	if err := sc.Err(); err != nil {
		bad = append(bad, err)
	}
	if len(gates) == 0 && len(bad) == 0 {
		bad = append(bad, errors.New("it has no gate"))
	}
	return gates, errors.Join(bad...)
}

func (g *Gate) parse() error {
	expr, selector, selected := strings.Cut(g.Text, "@")
	name, value, err := g.split(expr)
	if err != nil {
		return err
	}
	m, ok := findMetric(name)
	if !ok {
		return fmt.Errorf("unknown metric %q%s", name, hint(name, metricNames()))
	}
	g.metric, g.Metric = m, m.path
	if g.Limit, g.Percent, err = parseLimit(value, m); err != nil {
		return err
	}
	if selected {
		g.Selector, err = parseSelector(selector)
	}
	return err
}

// split cuts an expression at its operator.
func (g *Gate) split(expr string) (name, value string, err error) {
	at := strings.IndexAny(expr, "<>=!")
	if at < 0 {
		return "", "", errors.New("no operator: write METRIC OP VALUE, as in p99 < 5ms")
	}
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(expr[at:], op) })
	if i < 0 {
		return "", "", fmt.Errorf("%q is not an operator: use one of %s", strings.TrimSpace(expr[at:min(at+2, len(expr))]), strings.Join(operators, " "))
	}
	g.Op = operators[i]
	name, value = strings.TrimSpace(expr[:at]), strings.TrimSpace(expr[at+len(g.Op):])
	switch {
	case name == "":
		return "", "", errors.New("no metric before the operator")
	case value == "":
		return "", "", errors.New("no value after the operator")
	}
	return name, value, nil
}

// parseSelector reads "qos=1 payload=8192", or a case id.
func parseSelector(text string) ([]Selector, error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == '/' })
	if len(words) == 0 {
		return nil, errors.New("nothing after @: write @ PARAM=VALUE, or leave it out")
	}
	var list []Selector
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" || value == "" {
			return nil, fmt.Errorf("%q is not PARAM=VALUE", w)
		}
		values := []string{unescaped(value)}
		if strings.Contains(value, ",") {
			for v := range strings.SplitSeq(value, ",") {
				values = append(values, unescaped(v))
			}
		}
		list = append(list, Selector{unescaped(key), values})
	}
	return list, nil
}

func (g Gate) selects(params []Param) bool {
	for _, s := range g.Selector {
		if !slices.ContainsFunc(params, s.match) {
			return false
		}
	}
	return true
}

func (s Selector) match(p Param) bool {
	return p.Key == s.Key && slices.ContainsFunc(s.Values, func(v string) bool { return sameValue(p.Key, v, p.Value) })
}

// Check returns an error if the selector of g matches none of the cases that will
// run: a gate that selects nothing must not pass.
func (g Gate) Check(cases [][]Param) error {
	for _, s := range g.Selector {
		if err := g.checkList(s, cases); err != nil {
			return err
		}
	}
	if len(g.Selector) == 0 || slices.ContainsFunc(cases, g.selects) {
		return nil
	}
	for _, s := range g.Selector {
		if keys, values := axisOf(cases, s.Key); !keys[s.Key] {
			return &gateError{g.Text, fmt.Sprintf("no case has a parameter %q%s", s.Key, hint(s.Key, sortedKeys(keys)))}
		} else if !s.matchesAny(values) {
			return g.noCase(s.Key, s.Values[0], values)
		}
	}
	return &gateError{g.Text, "no case matches the whole selector: name fewer parameters"}
}

// checkList refuses a list in which cases have some values and not others: a typo would
// leave cases unjudged.
func (g Gate) checkList(s Selector, cases [][]Param) error {
	_, values := axisOf(cases, s.Key)
	if len(s.Values) == 1 || !s.matchesAny(values) || (Selector{s.Key, s.Values[:1]}).matchesAny(values) {
		return nil
	}
	for _, v := range s.Values[1:] {
		if !(Selector{s.Key, []string{v}}).matchesAny(values) {
			return g.noCase(s.Key, v, values)
		}
	}
	return nil
}

// noCase is the error of a value that no case has.
func (g Gate) noCase(key, value string, values map[string]bool) error {
	if _, err := paramValue(key, value); errors.Is(err, text.ErrAmbiguous) {
		return &gateError{g.Text, fmt.Sprintf("%s=%s: %v", key, value, err)}
	}
	return &gateError{g.Text, fmt.Sprintf("no case has %s=%s: the values are %s", key, value, strings.Join(sortedKeys(values), ", "))}
}

// axisOf returns the keys of all parameters, and the values of the one called key.
func axisOf(cases [][]Param, key string) (keys, values map[string]bool) {
	keys, values = map[string]bool{}, map[string]bool{}
	for _, params := range cases {
		for _, p := range params {
			keys[p.Key] = true
			if p.Key == key {
				values[p.Value] = true
			}
		}
	}
	return keys, values
}

func (s Selector) matchesAny(values map[string]bool) bool {
	return slices.ContainsFunc(sortedKeys(values), func(v string) bool { return s.match(Param{s.Key, v}) })
}

// Evaluate applies g to the cases of r that it selects: one result each, or one
// failure if it selects none. A value that does not exist fails the gate.
func (g Gate) Evaluate(r *Report) []GateResult {
	var results []GateResult
	for i := range r.Cases {
		if c := &r.Cases[i]; g.selects(c.Params) {
			results = append(results, g.evaluate(c))
		}
	}
	if len(results) == 0 {
		results = append(results, GateResult{Rule: g.String(), Limit: g.Limit, Message: "no measured case matches its selector"})
	}
	return results
}

func (g Gate) evaluate(c *Case) GateResult {
	res := GateResult{Rule: g.String(), Case: c.ID, Limit: g.Limit, Value: g.value(c)}
	if res.Value == nil {
		res.Message = g.Metric + " does not exist for this case, so the gate cannot pass"
		return res
	}
	holds := compareOp(*res.Value, g.Op, g.Limit)
	res.Passed = holds != g.FailIf
	if !res.Passed {
		res.Message = fmt.Sprintf("%s is %s", g.Metric, g.format(*res.Value))
	}
	return res
}

// value is the metric of c in the unit of the limit, nil if it does not exist.
func (g Gate) value(c *Case) *float64 {
	v := g.metric.of(c)
	if v == nil || !g.Percent {
		return v
	}
	whole := metrics()[g.metric.whole].of(c)
	if whole == nil || *whole <= 0 {
		return nil
	}
	p := 100 * *v / *whole
	return &p
}

func compareOp(v float64, op string, limit float64) bool {
	switch op {
	case "<":
		return v < limit
	case "<=":
		return v <= limit
	case ">":
		return v > limit
	case ">=":
		return v >= limit
	case "==":
		return v == limit
	}
	return v != limit
}

func (g Gate) format(v float64) string {
	switch {
	case g.Percent:
		return fmt.Sprintf("%.6g %%", v)
	case g.metric.dim == dimTime:
		return FormatNS(v)
	case g.metric.dim == dimBytes && strings.HasSuffix(g.Metric, "_per_sec"):
		return FormatFloat(v, 0) + " B/s"
	case g.metric.dim == dimBytes:
		return FormatFloat(v, 0) + " B"
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return FormatInt(int64(v))
	}
	return FormatFloat(v, 2)
}
