package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// stepTime is how long one step may take: longer than a few retries.
const stepTime = 3 * time.Minute

// entries are the names of the volumes in the provisioner's journal.
func (w *world) entries(ctx context.Context) (names []string, err error) {
	lease, err := w.Client.CoordinationV1().Leases(cluster.Namespace).Get(ctx, cluster.PlainDriverName+"-intents", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for key := range lease.Annotations {
		if uid, ok := strings.CutPrefix(key, "intent.csi-windows.io/"); ok {
			names = append(names, "pvc-"+uid)
		}
	}
	return names, nil
}

// The sidecar is killed after the driver has made a volume and before its object is
// saved, and the claim is deleted before the next start. Only the journal knows of the
// volume then: with it the volume goes, without it the volume stays for ever.
func TestJournalSavesAVolumeNobodyKnowsOf(t *testing.T) {
	for name, test := range map[string]struct {
		flags []string
		left  int
	}{
		"with the journal":    {nil, 0},
		"without the journal": {[]string{"--provisioner-journal=false"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0, []string{"-answer-delay=1h"}, append(test.flags, "--provisioner-timeout=10m"))
			w.must(w.createClaim(t.Context(), "lost", "immediate", nil))
			w.Wait("the driver has made the volume", stepTime, func(context.Context) error { return w.stored(1) })
			w.sidecar.Kill()
			w.driver.Process.Kill()
			w.must(w.Client.CoreV1().PersistentVolumeClaims(namespace).Delete(t.Context(), "lost", metav1.DeleteOptions{}))
			w.Wait("the claim goes", stepTime, func(ctx context.Context) error { return w.gone(ctx, "lost") })
			w.startDriver()
			w.startSidecar()
			// Another claim's whole life is later than whatever was to be done first.
			w.must(w.createClaim(t.Context(), "next", "immediate", nil))
			w.Wait("the next claim is bound", stepTime, func(ctx context.Context) error { return w.bound(ctx, "next") })
			w.must(w.Client.CoreV1().PersistentVolumeClaims(namespace).Delete(t.Context(), "next", metav1.DeleteOptions{}))
			w.Wait("its volume goes", stepTime, func(ctx context.Context) error {
				list, err := w.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
				if err == nil && len(list.Items) > 0 {
					err = errors.New("it is there")
				}
				return err
			})
			w.Wait("the back-end is as it is to stay", stepTime, func(ctx context.Context) error {
				return errors.Join(w.stored(test.left), w.noEntries(ctx))
			})
			w.notForbidden()
		})
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// stored fails unless the back-end has so many volumes.
func (w *world) stored(count int) error {
	state, err := w.PlainState()
	if err == nil && len(state.Volumes) != count {
		err = fmt.Errorf("the back-end has %d volumes, not %d", len(state.Volumes), count)
	}
	return err
}

func (w *world) gone(ctx context.Context, claim string) error {
	_, err := w.Client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(errors.New("it is there"), err)
}

func (w *world) bound(ctx context.Context, name string) error {
	claim, err := w.Client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && claim.Status.Phase != corev1.ClaimBound {
		err = fmt.Errorf("it is %s", claim.Status.Phase)
	}
	return err
}
