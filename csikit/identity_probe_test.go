package csikit

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// answer starts a question and returns the answer a Probe would give.
func (r *reachable) answer(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeWaitMax)
	defer cancel()
	r.start()
	return r.ready(ctx)
}

// Slow is not gone: the last answer stands, for a while.
func TestC066_WhatIsSlowStaysReady(t *testing.T) {
	for name, slow := range map[string]func(context.Context) error{
		"heeds its context": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"says it is late":   func(context.Context) error { return &host.Error{Kind: host.KindTimeout} },
		"says it is busy":   func(context.Context) error { return &host.Error{Kind: host.KindBusy} },
		"comes back late":   func(context.Context) error { time.Sleep(probeCallMax + time.Second); return errors.New("whatever") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var isSlow atomic.Bool
				var asked atomic.Int32
				r := newReachable(func(ctx context.Context) error {
					asked.Add(1)
					if isSlow.Load() {
						return slow(ctx)
					}
					return nil
				})
				if !r.answer(t.Context()) {
					t.Fatal("not ready, though it answered")
				}
				isSlow.Store(true)
				r.answer(t.Context())
				if asked.Load() != 1 {
					t.Errorf("asked again while the answer is fresh")
				}
				for began := time.Now(); time.Since(began) < probeSilenceMax-probeFresh; time.Sleep(probeFresh) {
					before := time.Now()
					if !r.answer(t.Context()) {
						t.Fatalf("not ready after %v of silence", time.Since(began))
					}
					if time.Since(before) > probeWaitMax {
						t.Fatalf("the answer took %v", time.Since(before))
					}
				}
				if asked.Load() < 2 {
					t.Error("never asked again")
				}
				time.Sleep(2 * probeFresh)
				if r.answer(t.Context()) {
					t.Error("ready, though nothing was heard for long")
				}
				isSlow.Store(false)
				time.Sleep(2 * probeCallMax) // a question under way ends
				if !r.answer(t.Context()) {
					t.Error("not ready, though it answers again")
				}
			})
		})
	}
}

func TestAProbeThatPanicsIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReachable(func(context.Context) error { panic("a defect of the backend") })
		if r.answer(t.Context()) {
			t.Error("ready")
		}
	})
}
