package pace_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mqttload/mqttload/internal/pace"
)

func TestQueueKeepsTimesAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q pace.Queue
		start := time.Now()
		var got []int
		add := func(n int, after time.Duration) {
			q.Add(start.Add(after), func() {
				if late := time.Since(start); late != after {
					t.Errorf("call %d came after %v, want %v", n, late, after)
				}
				got = append(got, n)
			})
		}
		add(3, 2*time.Second)
		add(1, time.Second) // earlier than the pending one
		add(4, 2*time.Second)
		add(2, time.Second)
		time.Sleep(3 * time.Second)
		add(5, 4*time.Second) // the queue was empty in between
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if want := []int{1, 2, 3, 4, 5}; !slices.Equal(got, want) {
			t.Errorf("called %v, want %v", got, want)
		}
	})
}

func TestQueueStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q pace.Queue
		called := func() { t.Error("called after Stop") }
		q.Add(time.Now().Add(time.Hour), called)
		q.Stop()
		q.Add(time.Now(), called)
		q.Stop()
		time.Sleep(2 * time.Hour)
	})
}
