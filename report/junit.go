package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// The elements of the JUnit XML that Jenkins, GitLab and GitHub actions read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Skipped   *junitMessage `xml:"skipped"`
		Error     *junitMessage `xml:"error"`
		Failure   *junitMessage `xml:"failure"`
		Output    string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes one suite with one test case per case of r. A broken delivery
// contract or a failed gate is a failure, faults without any measurement are an
// error, and a case that was not run is skipped. A run that is not complete, or
// has no case, and failed gates that no case of r has, are test cases of their own, so that an
// unfinished run never looks like one that passed.
func writeJUnit(w io.Writer, r *result.Report) error {
	suite := junitSuite{Name: "mqttload", Properties: junitProperties(r), Timestamp: junitTime(r)}
	if text := runFault(r); text != "" {
		suite.Cases = append(suite.Cases, junitCase{Name: "run", Classname: "mqttload", Time: "0.000",
			Error: &junitMessage{Message: text, Type: "run", Text: text}})
	}
	total := int64(0)
	for i := range r.Cases {
		suite.Cases = append(suite.Cases, junitOf(r, &r.Cases[i]))
		total += elapsed(&r.Cases[i])
	}
	for _, f := range strayGates(r) {
		suite.Cases = append(suite.Cases, junitCase{Name: text.Plain("gate " + f.id), Classname: "mqttload", Time: "0.000", Failure: failure([]finding{f})})
	}
	suite.count()
	suite.Time = seconds(total)
	return writeXML(w, junitSuites{Name: "mqttload", Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors,
		Time: suite.Time, Suites: []junitSuite{suite}})
}

func writeXML(w io.Writer, v any) error {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	enc := xml.NewEncoder(&b)
	enc.Indent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode junit: %w", err)
	}
	b.WriteString("\n")
	return flush(w, &b)
}

func (s *junitSuite) count() {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

func junitOf(r *result.Report, c *result.Case) junitCase {
	t := junitCase{Name: text.Plain(c.ID), Classname: "mqttload", Time: seconds(elapsed(c)), Output: junitOutput(c)}
	if t.Name == "" {
		t.Name = "mqttload"
	}
	fs := caseFindings(r, c)
	switch {
	case len(fs) > 0:
		t.Failure = failure(fs)
	case c.Summary.N == 0 && len(c.Errors) > 0:
		lines := errorLines([]result.Case{*c})
		t.Error = &junitMessage{Message: "nothing was measured: " + strings.TrimSpace(lines[0]), Type: "error", Text: strings.Join(lines, "\n")}
	case !wasRun(c):
		t.Skipped = &junitMessage{Message: "the case was not run"}
	}
	return t
}

// failure puts all findings about a case into one failure element: readers do not show a
// second one.
func failure(fs []finding) *junitMessage {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = text.Plain(f.text)
	}
	m := &junitMessage{Message: lines[0], Type: fs[0].kind, Text: strings.Join(lines, "\n")}
	if len(fs) > 1 {
		m.Message += fmt.Sprintf(" (and %d more)", len(fs)-1)
	}
	return m
}

// junitOutput is the text about a case: its numbers and its warnings.
func junitOutput(c *result.Case) string {
	if c.Summary.N == 0 {
		return ""
	}
	var parts []string
	ns := func(name string, v *float64) {
		if v != nil {
			parts = append(parts, name+" "+result.FormatNS(*v))
		}
	}
	ns("Mean", c.Summary.MeanNS)
	ns("Error", c.Summary.ErrorNS)
	ns("Median", c.Summary.MedianNS)
	if v := c.Summary.ReqPerSec; v != nil {
		parts = append(parts, "Req/sec "+result.FormatFloat(*v, 2))
	}
	if h := c.Latency.EndToEnd; h != nil {
		parts = append(parts, "P50 "+result.FormatNS(float64(h.P50NS)), "P99 "+result.FormatNS(float64(h.P99NS)), "Max "+result.FormatNS(float64(h.MaxNS)))
	}
	lines := append([]string{strings.Join(parts, ", ")}, deliveryLines([]result.Case{*c})...)
	for _, w := range c.Warnings {
		lines = append(lines, text.Plain("warning "+w.Code+": "+w.Message))
	}
	return strings.Join(lines, "\n")
}

func junitProperties(r *result.Report) (ps []junitProperty) {
	for _, f := range facts(r) {
		ps = append(ps, junitProperty{f.Key, text.Plain(f.Value)})
	}
	return ps
}

// junitTime is in UTC, since the type in the schema has no time zone.
func junitTime(r *result.Report) string {
	if r.Run.Started.IsZero() {
		return ""
	}
	return r.Run.Started.UTC().Format("2006-01-02T15:04:05")
}

func elapsed(c *result.Case) (ns int64) {
	for _, it := range c.Iterations {
		ns += it.ElapsedNS
	}
	return ns
}

func seconds(ns int64) string { return fmt.Sprintf("%.3f", float64(ns)/1e9) }
