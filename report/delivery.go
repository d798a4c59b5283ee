package report

import (
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/result"
)

// deliveryLines is one line where every case is as it should be. Otherwise
// every case that is not has a line of its own.
func deliveryLines(cases []result.Case) []string {
	var clean result.Delivery
	var off []perCase
	good, idle := 0, 0
	for _, c := range cases {
		if c.Delivery == (result.Delivery{CountsOnly: c.Delivery.CountsOnly}) {
			idle++
			continue
		}
		if c.Delivery.Clean() {
			clean.Add(c.Delivery)
			good++
			continue
		}
		off = append(off, perCase{c.ID, account(c.Delivery)})
	}
	switch {
	case idle == len(cases):
		return []string{"delivery: nothing was sent"}
	case good == len(cases):
		return []string{"delivery: " + allWell(clean)}
	}
	lines := append([]string{"delivery:"}, arrows(off)...)
	if good > 0 {
		lines = append(lines, fmt.Sprintf("  %d of %d cases: %s", good, len(cases), allWell(clean)))
	}
	if idle > 0 {
		lines = append(lines, fmt.Sprintf("  %d of %d cases: nothing was sent", idle, len(cases)))
	}
	return lines
}

// allWell words a clean account, and claims no more than could be seen.
func allWell(d result.Delivery) string {
	if d.Expected == 0 {
		return result.FormatInt(d.Sent) + " sent, no delivery to expect"
	}
	s := result.FormatInt(d.Sent) + " sent, "
	if d.Expected != d.Sent {
		s += result.FormatInt(d.Expected) + " deliveries expected, "
	}
	if d.CountsOnly {
		return s + "as many delivered; payloads below 8 bytes tell neither order nor duplicates"
	}
	return s + "all delivered once, in order"
}

// account words what is off in d, with shares of what they are part of.
func account(d result.Delivery) string {
	if err := d.Check(); err != nil {
		return err.Error()
	}
	share := func(n int64, name string, of int64) string {
		return fmt.Sprintf("%s %s (%s)", result.FormatInt(n), name, result.Percent(n, of))
	}
	parts := []string{
		share(d.Sent, fmt.Sprintf("of %s sent", result.FormatInt(d.Scheduled)), d.Scheduled),
		share(d.Delivered, fmt.Sprintf("of %s delivered", result.FormatInt(d.Expected)), d.Expected),
	}
	for _, c := range []struct {
		n    int64
		name string
		of   int64
	}{
		{d.Unsent, "unsent", d.Scheduled}, {d.Nacked, "refused", d.Sent}, {d.Lost, "lost", d.Expected},
		{d.Duplicated, "duplicated", d.Received}, {d.Reordered, "reordered", d.Received}, {d.Corrupted, "corrupted", d.Received},
	} {
		if c.n != 0 {
			parts = append(parts, share(c.n, c.name, c.of))
		}
	}
	if d.Foreign != 0 {
		parts = append(parts, result.FormatInt(d.Foreign)+" foreign")
	}
	if d.Late != 0 {
		parts = append(parts, result.FormatInt(d.Late)+" late")
	}
	return strings.Join(parts, ", ")
}
