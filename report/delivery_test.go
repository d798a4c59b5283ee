package report

import (
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

func TestRateLines(t *testing.T) {
	rate := func(id string, offered, achieved float64, unsent int64) result.Case {
		return result.Case{ID: id, Offered: &result.Offered{MessagesPerSec: offered, Achieved: &achieved}, Delivery: result.Delivery{Unsent: unsent}}
	}
	none := result.Case{ID: "c", Offered: &result.Offered{MessagesPerSec: 5}}
	for want, cases := range map[string][]result.Case{
		"": {{ID: "closed"}},
		"rate: 10,000 msg/s offered in total, 9,999 sent":        {rate("a", 10_000, 9_999, 0)},
		"rate: 0.5 msg/s offered in total, 0.5 sent":             {rate("a", 0.5, 0.5, 0)},
		"rate: 1,000 msg/s offered in total, 970 sent: not kept": {rate("a", 1000, 970, 0)},
		"rate:\n  a -> 1,000 msg/s offered in total, 1,000 sent: not kept\n  c -> 5.0 msg/s offered in total, nothing sent: not kept": {rate("a", 1000, 1000, 3), {ID: "b"}, none},
	} {
		var got []string
		for _, line := range rateLines(cases) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		if text := strings.Join(got, "\n"); text != strings.ReplaceAll(want, "\n  ", "\n") {
			t.Errorf("got\n%s\nwant\n%s", text, want)
		}
	}
}

func TestListenerLine(t *testing.T) {
	d := result.Delivery{Expected: 1234, Received: 1234, Delivered: 1234, CountsOnly: true}
	if got := deliveryLines([]result.Case{{Delivery: d}}); len(got) != 1 || got[0] != "delivery: 1,234 messages of other publishers received" {
		t.Errorf("%q", got)
	}
}

// TestChurnLines: clients that come and go send no messages.
func TestChurnLines(t *testing.T) {
	rate, kept := 100.0, 96.25
	c := result.Case{
		ID: "a", Kind: result.KindCycles, Offered: &result.Offered{MessagesPerSec: rate, Achieved: &kept},
		Delivery: result.Delivery{Scheduled: 300, Sent: 290, Unsent: 10},
	}
	good := c
	good.Delivery = result.Delivery{Scheduled: 300, Sent: 300}
	text := strings.Join(append(deliveryLines([]result.Case{c}), deliveryLines([]result.Case{good})...), "\n")
	for _, want := range []string{
		"290 of 300 connects started (96.67 %), 10 unsent (3.33 %)", "300 connects started, no messages to deliver", "100 connects/s offered in total, 96.2 sent: not kept",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "msg/s") || strings.Contains(text, "delivered") {
		t.Errorf("messages in\n%s", text)
	}
}
