package provisioner

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// TestKilledAnywhere: the process is cut off after each of its steps, the claim
// is deleted then or lives, and after the next start the volumes at the
// back-end are those in the API server, one for a claim that lives.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	answers := map[string][]codes.Code{
		"at once":        nil,
		"after time-out": {codes.DeadlineExceeded},
		"after two":      {codes.Unavailable, codes.DeadlineExceeded},
	}
	for name, codes := range answers {
		for steps := 0; steps <= 8; steps++ {
			for _, alive := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, step %d, claim alive %v", name, steps, alive), func(t *testing.T) {
					t.Parallel()
					killed(t, codes, steps, alive)
				})
			}
		}
	}
}

func killed(t *testing.T, answers []codes.Code, steps int, alive bool) {
	b := newBed(t, able(), claim("data"), sidecartest.StorageClass(sidecartest.ClassName))
	b.Env.Running = nil
	for _, code := range answers {
		b.Driver.Once("CreateVolume", b.createAndFail(code))
	}
	cut := b.CutAfter(steps)
	stop := b.start()
	if steps > 0 {
		select {
		case <-cut:
		case <-time.After(300 * time.Millisecond): // the work has fewer steps
		}
	}
	stop()
	b.Idle() // no call of this life is carried out in the next
	b.Mend()
	if !alive {
		b.deleteClaim("data")
		b.release()
	}
	b.start()
	want := map[bool]int{true: 1, false: 0}[alive]
	b.Eventually(func() error {
		objects, err := b.Kube.CoreV1().PersistentVolumes().List(b.Ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(objects.Items) != want || b.volumes() != want {
			return fmt.Errorf("%d volume objects, %d volumes, want %d", len(objects.Items), b.volumes(), want)
		}
		if !alive {
			return b.quiet()
		}
		return nil
	})
}

// release does what the cluster does to volumes whose claims are gone.
func (b *bed) release() {
	b.Helper()
	objects, err := b.Kube.CoreV1().PersistentVolumes().List(b.Ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, pv := range objects.Items {
		pv.Status.Phase = v1.VolumeReleased
		if err := b.Kube.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"), &pv, ""); err != nil {
			b.Fatal(err)
		}
	}
}

// quiet reports whether no call is under way: the last one deleted.
func (b *bed) quiet() error {
	calls := b.Driver.CallNames()
	if len(calls) == 0 || calls[len(calls)-1] == "DeleteVolume" {
		return nil
	}
	if len(b.entries()) == 0 {
		return nil
	}
	return errors.New("a call is under way")
}
