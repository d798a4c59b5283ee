package calibrate

import (
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/broker"
)

// TestQuestionsCanFail: a broker with a different fault gives a wrong answer. An answer
// that could not fail would prove nothing.
func TestQuestionsCanFail(t *testing.T) {
	delayed := func(d time.Duration) broker.Fault { return broker.Fault{Effect: broker.Delay(d)} }
	lost := func(n, times int64) broker.Fault {
		return broker.Fault{From: n, Times: times, Effect: broker.Lose{}}
	}
	repeated := func(n int64, copies int) broker.Fault {
		return broker.Fault{From: n, Times: 1, Effect: broker.Repeat{Copies: copies}}
	}
	for _, tt := range []struct {
		question, mutation string
		fault              broker.Fault
		seen               string
	}{
		{"delays", "too early", delayed(8 * time.Millisecond), "50 latencies"},
		{"delays", "too late", delayed(13 * time.Millisecond), "50 latencies"},
		{"delays", "one is lost", lost(7, 1), "6 latencies"},
		{"delays", "cut", broker.Fault{From: 10, Effect: broker.Cut{}}, "9 latencies"},
		{"loses", "nothing is lost", lost(2001, 1), "2000 delivered, 0 lost"},
		{"loses", "two are lost", lost(1000, 2), "1998 delivered, 2 lost"},
		{"loses", "repeated instead", repeated(1000, 1), "2000 delivered, 0 lost, 1 duplicated"},
		{"repeats", "nothing is repeated", repeated(2001, 1), "2000 delivered, 0 lost, 0 duplicated"},
		{"repeats", "repeated twice", repeated(1000, 2), "2 duplicated"},
		{"repeats", "lost instead", lost(1000, 1), "1999 delivered, 1 lost, 0 duplicated"},
	} {
		t.Run(tt.question+"/"+tt.mutation, func(t *testing.T) {
			for _, q := range questions {
				if !strings.Contains(q.name, tt.question) {
					continue
				}
				q.fault = tt.fault
				if a := q.ask(t.Context()); a.Passed || !strings.Contains(a.Seen, tt.seen) {
					t.Errorf("passed %v: %s; want it wrong, and %s", a.Passed, a.Seen, tt.seen)
				}
				return
			}
			t.Fatal("unknown question")
		})
	}
}

// TestComputedAnswersCanFail: other numbers give a wrong answer.
func TestComputedAnswersCanFail(t *testing.T) {
	if a := statisticsAnswer(10, 12, 14, 16, 18); !a.Passed {
		t.Errorf("%+v", a)
	}
	if a := statisticsAnswer(10, 12, 14, 16, 19); a.Passed {
		t.Errorf("%+v", a)
	}
	if a := statisticsAnswer(); a.Passed {
		t.Errorf("%+v", a)
	}
	if a := histogramAnswer(time.Microsecond); !a.Passed {
		t.Errorf("%+v", a)
	}
	if a := histogramAnswer(1002 * time.Nanosecond); a.Passed {
		t.Errorf("%+v", a)
	}
}

// TestAnswers: every question is answered rightly.
func TestAnswers(t *testing.T) {
	for _, a := range knownAnswers(t.Context()) {
		t.Logf("%s: %s", a.Name, a.Seen)
		// A busy machine may delay messages.
		if !a.Passed && !strings.Contains(a.Name, "delays") {
			t.Errorf("%s: expected %s, seen %s", a.Name, a.Expected, a.Seen)
		}
	}
}
