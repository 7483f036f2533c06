package resizer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/resizer"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

const grownState = "claim 2Gi allocated 2Gi no-node-expansion | volume 2Gi"

func hasEvents(b *sidecartest.Bed, want ...string) {
	b.Helper()
	b.Eventually(func() error { return differs("events", reasons(b), want) })
}

// TestExpansionWaitsForPods: a volume that is in use is expanded when the last
// pod has left it, with one event meanwhile and no call.
func TestExpansionWaitsForPods(t *testing.T) {
	for _, c := range []struct {
		name   string
		info   csiclient.Info
		refuse bool
		leave  func(*sidecartest.Bed) error
		calls  []string
		events []string
	}{
		{
			name: "the driver refuses, the pod is deleted", info: able(), refuse: true,
			leave: func(b *sidecartest.Bed) error {
				return b.Kube.CoreV1().Pods(sidecartest.Namespace).Delete(b.Ctx, "pod", metav1.DeleteOptions{})
			},
			calls:  []string{"expand 2Gi", "expand 2Gi"},
			events: []string{"Warning VolumeResizeFailed", "Warning VolumeResizeFailed", "Normal VolumeResizeSuccessful"},
		},
		{
			name: "the driver is offline only, the pod ends", info: able(offline),
			leave: func(b *sidecartest.Bed) error {
				_, err := b.Kube.CoreV1().Pods(sidecartest.Namespace).UpdateStatus(b.Ctx, pod(v1.PodSucceeded, "node"), metav1.UpdateOptions{})
				return err
			},
			calls:  []string{"expand 2Gi"},
			events: []string{"Warning VolumeResizeFailed", "Normal VolumeResizeSuccessful"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, c.info, bound(request(2*gib), pod(v1.PodRunning, "node")))
			newBackend(b)
			if c.refuse {
				b.Driver.Once(expand, sidecartest.Fail(codes.FailedPrecondition, "in use"))
			}
			config := quick
			config.Workers = 1
			start(b, config)
			waiting := len(c.events) - 1
			hasEvents(b, c.events[:waiting]...)
			before := len(b.Driver.Calls(expand))
			update(b, func(claim *v1.PersistentVolumeClaim) { claim.Labels = map[string]string{"looked": "at"} })
			hasEvents(b, c.events[:waiting]...)
			if got := len(b.Driver.Calls(expand)); got != before {
				t.Errorf("the driver was called %d times while the pod ran", got)
			}
			if err := c.leave(b); err != nil {
				t.Fatal(err)
			}
			comesTo(b, grownState)
			hasEvents(b, c.events...)
			if err := differs("calls", calls(b), c.calls); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExpansionDoesNotWaitForPods lists what is no reason to wait.
func TestExpansionDoesNotWaitForPods(t *testing.T) {
	ignore := quick
	ignore.IgnoreInUse = true
	for _, s := range []scenario{
		{name: "pods that have ended", info: able(offline), objects: bound(request(2*gib), pod(v1.PodFailed, "node")), config: quick},
		{name: "pods on no node", info: able(offline), objects: bound(request(2*gib), pod(v1.PodPending, "")), config: quick},
		{name: "pods that are to be ignored", info: able(offline), objects: bound(request(2*gib), pod(v1.PodRunning, "node")), config: ignore},
		{name: "a driver that expands in use", info: able(), objects: bound(request(2*gib), pod(v1.PodRunning, "node")), config: quick},
	} {
		s.state, s.calls, s.events = grownState, []string{"expand 2Gi"}, []string{"Normal VolumeResizeSuccessful"}
		s.writes = []string{patchClaim, patchVolume, patchClaim}
		t.Run(s.name, s.run)
	}
}

// TestPodsAreWatchedOnlyWhenNeeded: they are the largest cache a sidecar can have.
func TestPodsAreWatchedOnlyWhenNeeded(t *testing.T) {
	b := newBed(t, able(), bound(request(2*gib)))
	newBackend(b)
	start(b, quick)
	comesTo(b, grownState)
	for _, action := range b.Kube.Actions() {
		if action.GetResource().Resource == "pods" {
			t.Errorf("the resizer made a request: %v", action)
		}
	}
}

// TestResizerGoesWithoutWhatItMayNotRead: upstream's older roles allow neither
// pods nor attributes classes.
func TestResizerGoesWithoutWhatItMayNotRead(t *testing.T) {
	b := newBed(t, able(offline), bound(request(2*gib), asks("gold")))
	newBackend(b)
	b.Refuse("list pods", -1, forbidden("pods"))
	b.Refuse("list volumeattributesclasses", -1, forbidden("volumeattributesclasses"))
	start(b, quick)
	comesTo(b, grownState)
	for _, kind := range []string{"pods", "volumeattributesclasses"} {
		if n := strings.Count(b.Log(), "goes without\" component=resizer kind="+kind); n != 1 {
			t.Errorf("%d warnings of %s", n, kind)
		}
	}
}

// TestClassThatComesLater goes on when the class is made.
func TestClassThatComesLater(t *testing.T) {
	b := newBed(t, able(), bound(asks("gold")))
	newBackend(b)
	start(b, quick)
	hasEvents(b, "Warning VolumeModifyFailed")
	if _, err := b.Kube.StorageV1().VolumeAttributesClasses().Create(b.Ctx, attributes("gold", "iops", "900"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	comesTo(b, "claim 1Gi class gold | volume 1Gi class gold")
	hasEvents(b, "Warning VolumeModifyFailed", "Normal VolumeModifySuccessful")
}

// TestVolumeThatComesLater: the claim's event may be ahead of the volume's.
func TestVolumeThatComesLater(t *testing.T) {
	objects := bound(request(2 * gib))
	b := newBed(t, able(), objects[:1])
	newBackend(b)
	start(b, quick)
	b.Eventually(func() error { return started(b) })
	if _, err := b.Kube.CoreV1().PersistentVolumes().Create(b.Ctx, objects[1].(*v1.PersistentVolume), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	comesTo(b, grownState)
}

// TestRequestThatGrowsDuringACall: the larger size follows when the call is over.
func TestRequestThatGrowsDuringACall(t *testing.T) {
	b := newBed(t, able(), bound(request(2*gib)))
	back := newBackend(b)
	b.Driver.Once(expand, func(ctx context.Context, message proto.Message) (proto.Message, error) {
		update(b, func(c *v1.PersistentVolumeClaim) { request(3 * gib)(c); c.Labels = map[string]string{"changed": "too"} })
		return back.expand(ctx, message)
	})
	start(b, quick)
	comesTo(b, "claim 3Gi allocated 3Gi no-node-expansion | volume 3Gi")
	if err := differs("calls", calls(b), []string{"expand 2Gi", "expand 3Gi"}); err != nil {
		t.Error(err)
	}
}

// TestSmallerRequestAfterAFailure is taken at once, though the delay of the
// larger one is not over.
func TestSmallerRequestAfterAFailure(t *testing.T) {
	for _, code := range []codes.Code{codes.OutOfRange, codes.Internal} {
		b := newBed(t, able(), bound(request(9*gib)))
		newBackend(b)
		b.Driver.Once(expand, sidecartest.Fail(code, "no"))
		config := quick
		config.RetryMin = config.RetryMax
		start(b, config)
		hasEvents(b, "Warning VolumeResizeFailed")
		update(b, func(c *v1.PersistentVolumeClaim) { request(2 * gib)(c) })
		comesTo(b, grownState)
		if err := differs("calls", calls(b), []string{"expand 9Gi", "expand 2Gi"}); err != nil {
			t.Error(err)
		}
	}
}

// TestDelaysDoubleUpToTheLongest goes through failures by a clock of its own:
// 1, 2, 4 and then 5 seconds, though the claim's own events come in between.
func TestDelaysDoubleUpToTheLongest(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := newBed(t, able(), bound(request(2*gib)))
	b.Env.Clock = clock
	failures := 0
	back := newBackend(b)
	b.Driver.On(expand, func(ctx context.Context, message proto.Message) (proto.Message, error) {
		if message.(*csi.ControllerExpandVolumeRequest).VolumeId != "handle-v" {
			return back.expand(ctx, message)
		}
		failures++
		return nil, errors.New("failure " + fmt.Sprint(failures)) // another text each time
	})
	start(b, resizer.Config{RetryMin: time.Second, RetryMax: 5 * time.Second, Workers: 1})
	for i, delay := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		b.Eventually(func() error { return differs("calls", calls(b), slices.Repeat([]string{"expand 2Gi"}, i+1)) })
		b.Eventually(func() error {
			return differs("events", reasons(b), slices.Repeat([]string{"Warning VolumeResizeFailed"}, i+1))
		})
		settle(b, false) // the delay has begun
		clock.Step(delay - time.Millisecond)
		settle(b, false)
		if err := differs("calls before the delay is over", calls(b), slices.Repeat([]string{"expand 2Gi"}, i+1)); err != nil {
			t.Fatal(err)
		}
		clock.Step(time.Millisecond)
	}
}

// TestNodeThatCannotExpand is given another chance after the longest delay.
func TestNodeThatCannotExpand(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := newBed(t, able(), bound(request(2*gib), begun(2*gib, nodeInfeasible), condition("NodeResizeError"), volumeSize(2*gib)))
	b.Env.Clock = clock
	newBackend(b).node = true
	start(b, resizer.Config{Workers: 1})
	settle(b, false)
	if got := calls(b); len(got) != 0 {
		t.Errorf("the driver was called at once: %q", got)
	}
	clock.Step(5 * time.Minute)
	comesTo(b, "claim 1Gi allocated 2Gi NodeResizePending FileSystemResizePending Resizing | volume 2Gi before 1Gi")
}

// TestCallThatLasts is told of by one event.
func TestCallThatLasts(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	b := newBed(t, able(), bound(request(2*gib)))
	b.Env.Clock = clock
	back := newBackend(b)
	called, answer := make(chan struct{}), make(chan struct{})
	b.Driver.Once(expand, func(ctx context.Context, message proto.Message) (proto.Message, error) {
		close(called)
		<-answer
		return back.expand(ctx, message)
	})
	start(b, resizer.Config{})
	<-called
	b.Eventually(func() error {
		clock.Step(2 * time.Second)
		return differs("events", reasons(b), []string{"Normal Resizing"})
	})
	close(answer)
	hasEvents(b, "Normal Resizing", "Normal VolumeResizeSuccessful")
}

// TestCallThatHangs ends after the time limit.
func TestCallThatHangs(t *testing.T) {
	b := newBed(t, able(), bound(request(2*gib)))
	b.Driver.On(expand, sidecartest.Hang)
	start(b, resizer.Config{RetryMin: time.Hour, RetryMax: time.Hour, ResizeTimeout: time.Millisecond})
	hasEvents(b, "Warning VolumeResizeFailed")
	comesTo(b, "claim 1Gi allocated 2Gi ControllerResizeInProgress Resizing | volume 1Gi")
}

// TestIdleResizerMakesNoRequests: after the work is done, events of claims cost nothing.
func TestIdleResizerMakesNoRequests(t *testing.T) {
	b := newBed(t, able(), bound(request(2*gib)))
	newBackend(b)
	config := quick
	config.Workers = 1
	start(b, config)
	comesTo(b, grownState)
	hasEvents(b, "Normal VolumeResizeSuccessful")
	b.Kube.ClearActions()
	settle(b, false)
	for _, action := range b.Kube.Actions() {
		if text := fmt.Sprint(action); action.GetVerb() == "patch" && !strings.Contains(text, "z") {
			t.Errorf("write while idle: %s", text)
		}
	}
}
