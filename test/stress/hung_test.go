package stress

import (
	"context"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sim"
)

const (
	hungRetries = 50
	// hungCost is how many goroutines a hung stage may cost in driver, pipe and
	// csi-proxy together, however often it is retried.
	hungCost = 25
)

// A kubelet retries a stage that hangs in csi-proxy fifty times, through the whole
// driver. It is told to come again, the retries pile up nowhere, and when the hung call
// has come back all is gone and the next stage succeeds.
func TestC064_RetriesOfAHungStageDoNotPileUp(t *testing.T) {
	s := newStack(t, 1)
	v := s.volumes(1)[0]
	s.ok(s.agent.StartService(t.Context(), "MSiSCSI")) // whose sessions are counted in the end
	s.ok(v.stage(t.Context()))                         // connects everything, and formats
	s.ok(v.unstage(t.Context()))
	before := runtime.NumGoroutine()
	entered := make(chan struct{})
	s.ok(s.node.AddFault(t.Context(), sim.Fault{Call: "cim.Exec MSFT_Disk.Online", Hang: true, Hook: func() { close(entered) }}))
	first, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	ended := make(chan error, 1)
	go func() { ended <- v.stage(first) }()
	<-entered
	retry := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if code := status.Code(v.stage(ctx)); code != codes.Aborted && code != codes.DeadlineExceeded {
			t.Errorf("a retry ended with %v", code)
		}
	}
	for range hungRetries / 2 { // while the first one still waits
		retry()
	}
	giveUp()
	if code := status.Code(<-ended); code != codes.Canceled && code != codes.DeadlineExceeded {
		t.Errorf("the hung stage ended with %v", code)
	}
	for range hungRetries / 2 {
		retry()
	}
	if now := settled(before + hungCost); now > before+hungCost {
		t.Errorf("%d goroutines ran before, and %d after %d retries", before, now, hungRetries)
	}
	s.ok(s.node.ClearFaults(t.Context()))
	s.ok(v.untilDone(t.Context(), "stage", v.stage))
	s.ok(v.publish(t.Context()))
	s.ok(v.unpublish(t.Context()))
	s.ok(v.unstage(t.Context()))
	if now := settled(before); now > before {
		t.Errorf("%d goroutines ran before, and %d after all has come back", before, now)
	}
	s.mustBeEmpty()
}
