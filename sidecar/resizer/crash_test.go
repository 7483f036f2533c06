package resizer_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// await waits until a run has come to its last step.
func await(b *sidecartest.Bed, reached <-chan struct{}) {
	b.Helper()
	select {
	case <-reached:
	case <-time.After(30 * time.Second):
		b.Fatalf("not within 30 s, after %d steps: %q", b.Steps(), b.Writes())
	}
}

// TestRestartAfterEveryStep cuts the resizer off after each of its writes and
// calls, starts another one, and finds what a clean run ends with: at the API
// server and at the back-end.
func TestRestartAfterEveryStep(t *testing.T) {
	gold, silver := attributes("gold", "iops", "900"), attributes("silver", "iops", "300")
	for _, c := range []struct {
		name    string
		objects []runtime.Object
		node    bool
		answers map[string][]sidecartest.Answer
		want    string
	}{
		{
			name: "expand", objects: bound(request(2 * gib)),
			want: "claim 2Gi allocated 2Gi no-node-expansion | volume 2Gi",
		},
		{
			name: "expand with the node", objects: bound(request(2 * gib)), node: true,
			want: "claim 1Gi allocated 2Gi NodeResizePending FileSystemResizePending Resizing | volume 2Gi before 1Gi",
		},
		{
			name: "modify", objects: bound(asks("gold"), gold),
			want: "claim 1Gi class gold | volume 1Gi class gold",
		},
		{
			name: "expand and modify", objects: bound(asks("gold"), hasClass("silver"), request(2*gib), gold, silver),
			want: "claim 2Gi allocated 2Gi class gold no-node-expansion | volume 2Gi class gold",
		},
		{
			name: "infeasible", objects: bound(request(9 * gib)),
			answers: map[string][]sidecartest.Answer{expand: {
				sidecartest.Fail(codes.OutOfRange, "too large"), sidecartest.Fail(codes.OutOfRange, "too large"),
			}},
			want: "claim 1Gi allocated 9Gi ControllerResizeInfeasible ControllerResizeError Resizing | volume 1Gi",
		},
		{
			name: "smaller after infeasible", objects: bound(request(2*gib), begun(9*gib, infeasible), condition("Resizing", "ControllerResizeError")),
			want: "claim 2Gi allocated 2Gi no-node-expansion | volume 2Gi",
		},
		{
			name: "failures", objects: bound(request(2*gib), asks("gold"), gold),
			answers: map[string][]sidecartest.Answer{
				expand: {lost, sidecartest.Fail(codes.Internal, "broken")},
				alter:  {sidecartest.Fail(codes.Internal, "broken"), lost},
			},
			want: "claim 2Gi allocated 2Gi class gold no-node-expansion | volume 2Gi class gold",
		},
		{
			name: "go back to the old class", objects: bound(asks("silver"), hasClass("silver"), modifying("gold", modifyInfeasible), condition("ModifyingVolume"), gold, silver),
			want: "claim 1Gi class silver | volume 1Gi class silver",
		},
		{
			name: "the node is done", objects: bound(request(2*gib), begun(2*gib, ""), volumeSize(2*gib), claimSize(2*gib), sizeBefore("1Gi")),
			want: "claim 2Gi allocated 2Gi | volume 2Gi",
		},
	} {
		run := func(t *testing.T, cut int) (steps int, driver string) {
			b := newBed(t, able(), c.objects)
			back := newBackend(b)
			back.node = c.node
			for method, answers := range c.answers {
				b.Driver.Once(method, answers...)
			}
			if cut >= 0 {
				reached := b.CutAfter(cut)
				stop := start(b, quick)
				await(b, reached)
				stop()
				b.Idle() // what the one before began is over
				b.Mend()
			}
			stop := start(b, quick)
			comesTo(b, c.want)
			stop()
			if back.haveMet() {
				t.Error("two calls for one volume met")
			}
			return b.Steps(), back.String()
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			steps, want := run(t, -1)
			for cut := range steps + 1 {
				t.Run(fmt.Sprint(cut), func(t *testing.T) {
					t.Parallel()
					if _, got := run(t, cut); got != want {
						t.Errorf("the back-end has %s, after a clean run %s", got, want)
					}
				})
			}
		})
	}
}

// TestRestartWithASmallerRequest has the claim ask for less while the resizer
// is down: what may be under way is finished first.
func TestRestartWithASmallerRequest(t *testing.T) {
	b := newBed(t, able(), bound(request(5*gib)))
	back := newBackend(b)
	reached := b.CutAfter(1) // the mark, not the call
	stop := start(b, quick)
	await(b, reached)
	stop()
	b.Mend()
	comesTo(b, "claim 1Gi allocated 5Gi ControllerResizeInProgress Resizing | volume 1Gi")
	update(b, func(c *v1.PersistentVolumeClaim) { request(2 * gib)(c) })
	start(b, quick)
	comesTo(b, "claim 5Gi allocated 5Gi no-node-expansion | volume 5Gi")
	if got := back.String(); got != "map[handle-v:5368709120] map[]" {
		t.Error(got)
	}
}
