package result

import (
	"slices"
	"testing"
)

// TestBroken: loss breaks QoS 1 and 2, duplicates break QoS 2, and only where the
// broker owed that QoS to all clients.
func TestBroken(t *testing.T) {
	d := Delivery{Scheduled: 10, Sent: 10, Expected: 10, Received: 10, Delivered: 9, Lost: 1, Duplicated: 1}
	lost, twice := "1 of 10 messages were lost at QoS ", "1 messages were delivered more than once at QoS 2"
	away := Clients{Reconnects: 1}
	for name, c := range map[string]struct {
		c    Case
		want []string
	}{
		"QoS unknown":              {Case{Delivery: d}, nil},
		"QoS 0":                    {Case{QoS: new(byte(0)), Delivery: d}, nil},
		"QoS 1":                    {Case{QoS: new(byte(1)), Delivery: d}, []string{lost + "1 (10.00 %)"}},
		"QoS 2":                    {Case{QoS: new(byte(2)), Delivery: d}, []string{lost + "2 (10.00 %)", twice}},
		"clean":                    {Case{QoS: new(byte(2)), Delivery: Delivery{Sent: 5, Scheduled: 5}}, nil},
		"less granted":             {Case{QoS: new(byte(2)), Delivery: d, Warnings: []Warning{{Code: CodeGrantedQoS}}}, nil},
		"away without a session":   {Case{QoS: new(byte(1)), Delivery: d, Clients: away}, nil},
		"away with a session":      {Case{QoS: new(byte(1)), Delivery: d, Clients: away, PersistentSessions: true}, []string{lost + "1 (10.00 %)"}},
		"account does not balance": {Case{QoS: new(byte(0)), Delivery: Delivery{Sent: 5}}, []string{"delivery account does not balance: scheduled = sent + unsent, but 0 is not 5"}},
	} {
		var got []string
		for _, b := range c.c.Broken() {
			got = append(got, b.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
