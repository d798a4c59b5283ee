package result

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// requestKinds tells the kinds of cases by the sentences that reports of earlier
// versions have in Case.Request. All other sentences mean KindMessages.
var requestKinds = map[string]Kind{
	"one client connected, subscribed and disconnected": KindCycles,
	"one connection made":                               KindConnections,
	"one message received":                              KindReceived,
}

// completeEarlier sets the fields that cases of an earlier version do not have, from
// their parameters and for persistent sessions from the scenario.
func (r *Report) completeEarlier() {
	var scenario struct {
		Clients map[string]any `json:"clients"`
	}
	if raw, ok := r.Scenario.(json.RawMessage); ok {
		_ = json.Unmarshal(raw, &scenario) // another form of scenario has no such setting
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Kind != "" {
			continue
		}
		c.Kind = cmp.Or(requestKinds[c.Request], KindMessages)
		if q := c.param("qos"); len(q) == 1 && q >= "0" && q <= "2" {
			c.QoS = new(q[0] - '0')
		}
		setting := func(key string) string {
			if v, ok := scenario.Clients[key]; ok {
				return fmt.Sprint(v)
			}
			return c.param(key)
		}
		if c.param("protocol") == "5" {
			expiry := setting("session_expiry")
			c.PersistentSessions = expiry != "" && expiry != "0" && expiry != "0s"
		} else {
			c.PersistentSessions = setting("clean_start") == "false"
		}
	}
}
