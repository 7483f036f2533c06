package csikit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
	"github.com/csi-windows/csi-windows/host"
)

// probeMax is less than what is given to the one who is asked, and more than what a busy
// machine takes. The time itself is looked at where no machine is busy, in
// TestC066_WhatIsSlowStaysReady.
const probeMax = 15 * time.Second

// ready asks until the answer is the wanted one, and fails when any answer was slow.
func ready(t *testing.T, identity csi.IdentityClient, want bool) {
	t.Helper()
	for ctx := within(t); ; {
		asked := time.Now()
		answer, err := identity.Probe(ctx, &csi.ProbeRequest{})
		if err != nil {
			t.Fatalf("Probe: %v", err)
		}
		if took := time.Since(asked); took >= probeMax {
			t.Fatalf("Probe took %v", took)
		}
		if answer.GetReady().GetValue() == want {
			return
		}
	}
}

func TestC066_ProbeNeverWaitsForABackendOrNodeThatHangs(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]struct{ backend, node bool }{"backend": {backend: true}, "node": {node: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hung atomic.Bool
			var asked atomic.Int32
			release := make(chan struct{})
			t.Cleanup(func() { close(release) })
			hang := func(isWanted bool) func(context.Context, string, string) error {
				return func(_ context.Context, method, _ string) error {
					if isWanted && hung.Load() && (method == "Probe" || method == "Info") {
						asked.Add(1)
						<-release // whatever its context says
					}
					return nil
				}
			}
			memory, n := kittest.NewBackend(), kittest.NewNode()
			memory.Before, n.Before = hang(hangs.backend), hang(hangs.node)
			hung.Store(true)
			_, conn := kittest.Serve(t, csikit.Config{Backend: memory, NodeBackend: leastNode{memory}, Node: n})
			identity := csi.NewIdentityClient(conn)
			var wait sync.WaitGroup
			for range 8 {
				wait.Go(func() { ready(t, identity, false) }) // it never was there
			}
			wait.Wait()
			for ctx := within(t); asked.Load() == 0 && ctx.Err() == nil; { // a busy machine may ask late
				time.Sleep(time.Millisecond)
			}
			if got := asked.Load(); got != 1 {
				t.Errorf("%d questions hang, want one for all", got)
			}
		})
	}
}

func TestC066_NotReadyWhenItCannotBeReached(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"unavailable": fmt.Errorf("the storage: %w", csikit.ErrUnavailable),
		"other":       errors.New("the credentials have run out"),
	} {
		memory := kittest.NewBackend()
		var down atomic.Bool
		down.Store(true)
		memory.Before = func(context.Context, string, string) error {
			if down.Load() {
				return err
			}
			return nil
		}
		_, conn := kittest.Serve(t, csikit.Config{Backend: memory})
		ready(t, csi.NewIdentityClient(conn), false)
		down.Store(false)
		ready(t, csi.NewIdentityClient(conn), true)
		if t.Failed() {
			t.Log(name)
		}
	}
	n := kittest.NewNode()
	n.Before = func(context.Context, string, string) error {
		return &host.Error{Op: "Info", Kind: host.KindUnavailable}
	}
	_, conn := kittest.Serve(t, csikit.Config{NodeBackend: leastNode{kittest.NewBackend()}, Node: n})
	ready(t, csi.NewIdentityClient(conn), false)
}
