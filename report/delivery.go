package report

import (
	"fmt"
	"strings"

	"github.com/mqttload/mqttload/result"
)

// deliveryLines are the delivery accounts, and the rates of open loops.
func deliveryLines(cases []result.Case) []string {
	return append(accountLines(cases), rateLines(cases)...)
}

// rateLines say what rate open loops offered, in total over all publishers, and what rate
// they sent.
func rateLines(cases []result.Case) []string {
	var list []perCase
	for i := range cases {
		o := cases[i].Offered
		if o == nil {
			continue
		}
		sent := "nothing"
		if o.Achieved != nil {
			sent = result.FormatFloat(*o.Achieved, rateDecimals(*o.Achieved))
		}
		_, unit := cases[i].Sends()
		text := fmt.Sprintf("%s %s offered in total, %s sent", result.FormatFloat(o.MessagesPerSec, rateDecimals(o.MessagesPerSec)), unit, sent)
		if !cases[i].RateKept() {
			text += ": not kept"
		}
		list = append(list, perCase{cases[i].ID, text})
	}
	switch {
	case len(list) == 0:
		return nil
	case len(cases) == 1:
		return []string{"rate: " + list[0].text}
	}
	return append([]string{"rate:"}, arrows(list)...)
}

// rateDecimals is the number of decimals of a rate.
func rateDecimals(perSec float64) int {
	if perSec < 100 {
		return 1
	}
	return 0
}

// accountLines is one line if every account is clean. Otherwise every case whose account
// is not has a line of its own.
func accountLines(cases []result.Case) []string {
	var clean result.Delivery
	var off []perCase
	good, idle, noun := 0, 0, ""
	for _, c := range cases {
		if c.Delivery == (result.Delivery{CountsOnly: c.Delivery.CountsOnly}) {
			idle++
			continue
		}
		if c.Delivery.Clean() {
			clean.Add(c.Delivery)
			noun, _ = c.Sends()
			good++
			continue
		}
		off = append(off, perCase{c.ID, account(&c)})
	}
	switch {
	case idle == len(cases):
		return nothing(cases)
	case good == len(cases):
		return []string{"delivery: " + allWell(clean, noun)}
	}
	lines := append([]string{"delivery:"}, arrows(off)...)
	if good > 0 {
		lines = append(lines, fmt.Sprintf("  %d of %d cases: %s", good, len(cases), allWell(clean, noun)))
	}
	if idle > 0 {
		lines = append(lines, fmt.Sprintf("  %d of %d cases: nothing was sent", idle, len(cases)))
	}
	return lines
}

// nothing is the account of cases without messages. All cases of a matrix have one shape.
func nothing(cases []result.Case) []string {
	if len(cases) > 0 {
		switch cases[0].Kind {
		case result.KindConnections:
			return nil
		case result.KindReceived:
			return []string{"delivery: nothing was received"}
		}
	}
	return []string{"delivery: nothing was sent"}
}

// allWell words a clean account, and claims no more than was checked. All cases of a
// matrix have one shape, so they send the same noun.
func allWell(d result.Delivery, noun string) string {
	if d.Sent == 0 {
		return result.FormatInt(d.Received) + " messages of other publishers received"
	}
	switch {
	case d.Expected == 0 && noun != "messages":
		return result.FormatInt(d.Sent) + " " + noun + " started, no messages to deliver"
	case d.Expected == 0:
		return result.FormatInt(d.Sent) + " sent, no deliveries expected"
	}
	s := result.FormatInt(d.Sent) + " sent, "
	if d.Expected != d.Sent {
		s += result.FormatInt(d.Expected) + " deliveries expected, "
	}
	if d.CountsOnly {
		return s + "as many delivered; order and duplicates are not checked without stamps"
	}
	return s + "all delivered once, in order"
}

// account words an account that is not clean, with percentages.
func account(c *result.Case) string {
	d := c.Delivery
	if err := d.Check(); err != nil {
		return err.Error()
	}
	share := func(n int64, name string, of int64) string {
		return fmt.Sprintf("%s %s (%s)", result.FormatInt(n), name, result.Percent(n, of))
	}
	what := "sent"
	noun, _ := c.Sends()
	if noun != "messages" {
		what = noun + " started"
	}
	parts := []string{share(d.Sent, fmt.Sprintf("of %s %s", result.FormatInt(d.Scheduled), what), d.Scheduled)}
	if d.Expected > 0 || noun == "messages" {
		parts = append(parts, share(d.Delivered, fmt.Sprintf("of %s delivered", result.FormatInt(d.Expected)), d.Expected))
	}
	for _, c := range []struct {
		n    int64
		name string
		of   int64
	}{
		{d.Unsent, "unsent", d.Scheduled}, {d.Nacked, "rejected", d.Sent}, {d.Lost, "lost", d.Expected},
		{d.Duplicated, "duplicated", d.Received}, {d.Reordered, "reordered", d.Received}, {d.Corrupted, "corrupted", d.Received},
	} {
		if c.n != 0 {
			parts = append(parts, share(c.n, c.name, c.of))
		}
	}
	if d.Foreign != 0 {
		parts = append(parts, result.FormatInt(d.Foreign)+" unexpected")
	}
	if d.Late != 0 {
		parts = append(parts, result.FormatInt(d.Late)+" late")
	}
	return strings.Join(parts, ", ")
}
