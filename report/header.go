package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/result"
)

// headerLines say what ran, where, and against which broker, and what the numbers mean.
func headerLines(r *result.Report) []string {
	lines := statusLines(r)
	lines = append(lines,
		joined(", ", tool(r.Tool), r.Tool.Go, joined(" ", r.Environment.OS, r.Environment.Kernel), r.Environment.Arch),
		joined(", ", r.Environment.CPU, cores(r.Environment)),
		labelled("Target", target(r.Target)))
	if r.Target.TLS != nil {
		lines = append(lines, labelled("TLS", tlsLine(r)))
	}
	lines = append(lines,
		labelled("Protocol", joined(", ", protocols(r.Cases)...)),
		labelled("In-flight", windows(r.Cases)),
		labelled("Topic aliases", aliases(r.Cases)),
		labelled("Response information", responseInformation(r.Target)))
	lines = append(lines, requestLines(r.Cases)...)
	lines = append(lines, labelled("Clock", "monotonic, of one process; TCP_NODELAY on"))
	return slices.DeleteFunc(lines, func(s string) bool { return s == "" })
}

// statusLines warn of a report that is not complete.
func statusLines(r *result.Report) []string {
	switch r.Run.Status {
	case result.StatusPartial:
		return []string{"PARTIAL RUN: it ended before everything was measured; the numbers cover what was."}
	case result.StatusFailed:
		return []string{"FAILED RUN: see the errors; the numbers, if any, are not a result."}
	}
	return nil
}

func tool(t result.Tool) string {
	v := t.Version
	if v != "" && v[0] >= '0' && v[0] <= '9' {
		v = "v" + v
	}
	return joined(" ", "mqttload", v)
}

func cores(e result.Environment) string {
	if e.Cores == 0 {
		return ""
	}
	s := fmt.Sprintf("%d logical cores", e.Cores)
	if e.Cores == 1 {
		s = "1 logical core"
	}
	if e.GOMAXPROCS != 0 && e.GOMAXPROCS != e.Cores {
		s += fmt.Sprintf(" (GOMAXPROCS=%d)", e.GOMAXPROCS)
	}
	return s
}

func target(t result.Target) string {
	if t.Embedded {
		return joined(", ", "embedded broker on loopback", t.URL)
	}
	return text.Plain(t.URL)
}

// tlsLine shows what was negotiated, and for which rows if not for all.
func tlsLine(r *result.Report) string {
	t := r.Target.TLS
	s := joined(", ", t.Version, t.Cipher, t.Curve)
	if t.Resumed {
		s += ", resumed"
	}
	if t.Insecure {
		s += ", certificate NOT VERIFIED"
	}
	secure, plain := transports(r.Cases)
	if len(secure) > 0 && len(plain) > 0 {
		s += " (rows with transport " + strings.Join(secure, ", ") + ")"
	}
	return s
}

// transports lists the transports of the cases, separately those over TLS.
func transports(cases []result.Case) (secure, plain []string) {
	for _, c := range cases {
		t := paramValue(c, "transport")
		list := &plain
		if result.OverTLS(t) {
			list = &secure
		}
		if t != nA && !slices.Contains(*list, t) {
			*list = append(*list, t)
		}
	}
	return secure, plain
}

func protocols(cases []result.Case) (ps []string) {
	for _, c := range cases {
		if p := paramValue(c, "protocol"); p != nA && !slices.Contains(ps, p) {
			ps = append(ps, p)
		}
	}
	if len(ps) > 0 {
		ps[0] = "MQTT " + ps[0]
	}
	return ps
}

// windows shows the in-flight window per publisher, and the one asked for if the broker
// granted less.
func windows(cases []result.Case) string {
	var ws []string
	for _, c := range cases {
		if c.Window == 0 {
			continue
		}
		w := fmt.Sprintf("window of %s per publisher", result.FormatInt(int64(c.Window)))
		if c.WindowAsked != 0 && c.WindowAsked != c.Window {
			w += fmt.Sprintf(" (%s asked, %s granted)", result.FormatInt(int64(c.WindowAsked)), result.FormatInt(int64(c.Window)))
		}
		if !slices.Contains(ws, w) {
			ws = append(ws, w)
		}
	}
	return strings.Join(ws, ", or ")
}

// aliases shows how many topic aliases a publisher has, and how many it asked for.
func aliases(cases []result.Case) string {
	var list []string
	for _, c := range cases {
		if c.Aliases == nil {
			continue
		}
		a := fmt.Sprintf("up to %d per publisher", c.Aliases.Granted)
		if c.Aliases.Granted < c.Aliases.Asked {
			a += fmt.Sprintf(" (%d asked, %d granted)", c.Aliases.Asked, c.Aliases.Granted)
		}
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return strings.Join(list, ", or ")
}

// responseInformation is what the broker sent on request.
// [MQTT5 3.2.2.3.15]
func responseInformation(t result.Target) string {
	if t.Connack == nil || t.Connack.ResponseInformation == nil {
		return ""
	}
	return text.Plain(*t.Connack.ResponseInformation)
}

// requestLines states the unit of a request.
func requestLines(cases []result.Case) (lines []string) {
	half := false
	for _, c := range cases {
		if c.OperationsPerMessage > 1 {
			half = true
			continue
		}
		line := "1 request = " + cmp.Or(c.Request, "one message published and delivered") + "; Mean is inverse throughput, not latency"
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if half {
		lines = append(lines, "1 request = half a message: a publish and a receive count separately; "+
			"Mean is inverse throughput, not latency, and messages per second are half of Req/sec")
	}
	return lines
}

func labelled(label, s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s", label, s)
}

// joined joins the parts that are not empty, made safe for a terminal.
func joined(sep string, parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, text.Plain(p))
		}
	}
	return strings.Join(kept, sep)
}
