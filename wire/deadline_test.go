package wire

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A call ends at its deadline, and so does what is made of its context.
func TestDeadlinePasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := withTimeout(t.Context(), time.Minute)
		defer end()
		derived, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		started := time.Now()
		<-derived.Done()
		if took := time.Since(started); took != time.Minute {
			t.Errorf("ended after %v", took)
		}
		if deadline, ok := ctx.Deadline(); !ok || !deadline.Equal(time.Now()) {
			t.Errorf("deadline %v, %t", deadline, ok)
		}
		for _, c := range []context.Context{ctx, derived} {
			if err := c.Err(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ended with %v", err)
			}
		}
	})
}

// The end of the caller, and that of the call, end the context at once, whether
// somebody waited before or not.
func TestDeadlineContextEnds(t *testing.T) {
	t.Parallel()
	type key struct{}
	for _, waited := range []bool{false, true} {
		caller, leave := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		byCaller, endFirst := withTimeout(caller, time.Hour)
		byEnd, endSecond := withTimeout(caller, time.Hour)
		if waited && (byCaller.Err() != nil || byEnd.Err() != nil) {
			t.Error("ended too soon")
		}
		if byEnd.Value(key{}) != "value" {
			t.Error("lost a value")
		}
		endSecond()
		if <-byEnd.Done(); !errors.Is(byEnd.Err(), context.Canceled) {
			t.Errorf("after the call: %v", byEnd.Err())
		}
		leave()
		if <-byCaller.Done(); !errors.Is(byCaller.Err(), context.Canceled) {
			t.Errorf("after the caller: %v", byCaller.Err())
		}
		endFirst()
	}
}

// A shorter deadline of the caller stands.
func TestDeadlineOfTheCaller(t *testing.T) {
	t.Parallel()
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ctx, end := withTimeout(short, time.Minute)
	defer end()
	if ctx != short {
		t.Error("a short deadline was replaced")
	}
}
