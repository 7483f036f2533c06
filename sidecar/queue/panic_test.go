package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// One key that a handler cannot cope with ends nothing: it comes back like one
// that failed, and the others are handled.
func TestAHandlerThatPanicsHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		calls := map[string]int{}
		q, stop := start(1, &l, func(_ context.Context, key string) error {
			calls[key]++
			if key == "bad" && calls[key] == 1 {
				panic("no luck")
			}
			return nil
		})
		q.Add("bad")
		q.Add("good")
		time.Sleep(time.Minute)
		stop()
		if calls["bad"] != 2 || calls["good"] != 1 || l.lines() != 2 {
			t.Errorf("calls %v, %d lines logged", calls, l.lines())
		}
	})
}
