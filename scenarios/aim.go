package scenarios

import (
	"fmt"
	"slices"
)

// selectTargets keeps the targets of each case's transport. Cases without a target
// are for the embedded broker.
func selectTargets(cases []Case) (bad Errors) {
	both := slices.ContainsFunc(cases, func(c Case) bool { return c.Transport != cases[0].Transport })
	for i := range cases {
		c := &cases[i]
		if len(c.Target.URLs) == 0 {
			continue
		}
		list := targetsOf(c, both)
		if len(list) == 0 {
			hint := "write mqtt://HOST to use ports 1883 and 8883, or give one --url for each: mqtt://HOST:PORT and mqtts://HOST:PORT"
			if !both {
				hint = "leave --transport out: mqtts:// means TLS"
			}
			bad = append(bad, Error{Msg: fmt.Sprintf("transport %s cannot use %s: one port speaks either plain MQTT or TLS", c.Transport, c.Target.URLs[0]), Hint: hint})
			continue
		}
		c.Target.URLs = list
	}
	return bad
}

// targetsOf returns the targets of the case's transport. --tls turns mqtt:// into
// mqtts:// with its default port. It never works the other way round: a URL with
// mqtts:// must never send its password in the clear. both says that the cases have
// several transports.
func targetsOf(c *Case, both bool) []URL {
	wanted := c.Transport
	var list []URL
	for _, u := range c.Target.URLs {
		switch {
		case u.Transport() == wanted:
		case u.Transport().Secured() == wanted && (!u.HasPort || !both):
			u = u.Over(wanted)
		default:
			continue
		}
		if !slices.Contains(list, u) {
			list = append(list, u)
		}
	}
	return list
}

// Endpoint is a listener of the embedded broker.
type Endpoint struct {
	URL   URL
	CAPEM []byte // verifies its certificate, where it has one
}

// At returns a copy of cases. Each case without a target gets the endpoint of its
// transport as its target.
func At(cases []Case, at map[Transport]Endpoint) []Case {
	list := slices.Clone(cases)
	for i := range list {
		c := &list[i]
		if end, ok := at[c.Transport]; ok && len(c.Target.URLs) == 0 {
			c.Target.URLs = []URL{end.URL}
			c.TLS.CAPEM = slices.Concat(c.TLS.CAPEM, end.CAPEM)
		}
	}
	return list
}
