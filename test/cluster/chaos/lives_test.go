package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// patience is how long a life waits at most for something to come true before it goes
// on anyway: users do not wait for ever either.
const patience = 12 * time.Second

// life is what happens to one claim. Which life it is and what comes when is the
// seed's; whether it comes before or after what the controllers do is chance.
type life struct {
	*world
	ctx   context.Context
	name  string
	class string
	rand  *rand.Rand
}

// pause waits for up to a time.
func (l *life) pause(most time.Duration) {
	select {
	case <-time.After(time.Duration(l.rand.Int64N(int64(most)))):
	case <-l.ctx.Done():
	}
}

// chance is true with a probability.
func (l *life) chance(p float64) bool { return l.rand.Float64() < p }

// await waits until something holds, or patience ends.
func (l *life) await(try func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	for try(ctx) != nil {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(200 * time.Millisecond):
		}
	}
	return true
}

// live is the whole life of the claim. Four in ten are left as they are to the end.
func (l *life) live() error {
	if err := l.createClaim(l.ctx, l.name, l.class, l.source()); err != nil {
		return err
	}
	if l.chance(0.15) { // before anybody has done much about it
		l.pause(800 * time.Millisecond)
		return l.deleteClaim(l.name)
	}
	hasPod := l.class == "late" || l.chance(0.5)
	if hasPod {
		if err := l.createPod(); err != nil {
			return err
		}
		if l.chance(0.8) {
			l.await(l.runs)
		} else {
			l.pause(2 * time.Second)
		}
	} else {
		l.await(func(ctx context.Context) error { return l.bound(ctx, l.name) })
	}
	if err := l.use(); err != nil {
		return err
	}
	if l.chance(0.4) {
		return nil
	}
	return l.end(hasPod)
}

// use expands the volume, takes snapshots and makes other volumes of it, or not.
func (l *life) use() error {
	if l.chance(0.25) {
		if err := l.expand(); err != nil {
			return err
		}
	}
	if !l.chance(0.3) {
		return nil
	}
	if err := l.createSnapshot(); err != nil {
		return err
	}
	l.pause(3 * time.Second)
	if l.chance(0.5) {
		return l.restore()
	}
	if l.chance(0.5) {
		return l.deleteSnapshot()
	}
	return nil
}

// restore makes a claim of the snapshot, which may be ready or not, and deletes
// either before the other, or none.
func (l *life) restore() error {
	restored := l.name + "-restored"
	err := l.createClaim(l.ctx, restored, "immediate", &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: l.name})
	if err != nil {
		return err
	}
	l.pause(2 * time.Second)
	if l.chance(0.4) {
		if err := l.deleteSnapshot(); err != nil {
			return err
		}
	}
	if l.chance(0.4) {
		return l.deleteClaim(restored)
	}
	return nil
}

// end deletes pod, claim and volume in some order and manner.
func (l *life) end(hasPod bool) error {
	steps := []func() error{func() error { return l.deleteClaim(l.name) }}
	if hasPod {
		steps = append(steps, l.deletePod)
	}
	if l.chance(0.3) {
		steps = append(steps, l.deleteVolume)
	}
	l.rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
		l.pause(1500 * time.Millisecond)
	}
	return nil
}

// source is another claim that this one is a clone of, sometimes.
func (l *life) source() *corev1.TypedLocalObjectReference {
	if l.class != "immediate" || !l.chance(0.15) {
		return nil
	}
	claims, err := l.Client.CoreV1().PersistentVolumeClaims(namespace).List(l.ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil || len(claims.Items) == 0 {
		return nil
	}
	one := claims.Items[l.rand.IntN(len(claims.Items))]
	if one.Spec.StorageClassName == nil || one.Spec.VolumeName == "" {
		return nil
	}
	return &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: one.Name}
}

func (w *world) createClaim(ctx context.Context, name, class string, source *corev1.TypedLocalObjectReference) error {
	size := "1Mi"
	if source != nil {
		size = "16Mi" // whatever the source has grown to
	}
	_, err := w.Client.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class, DataSource: source,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}, metav1.CreateOptions{})
	return err
}

func (l *life) createPod() error {
	seconds := int64(1)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: l.name}, Spec: corev1.PodSpec{
		OS: &corev1.PodOS{Name: corev1.Windows}, NodeSelector: map[string]string{"kubernetes.io/os": "windows"}, TerminationGracePeriodSeconds: &seconds,
		Containers: []corev1.Container{{Name: "c", Image: "none"}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: l.name}}}},
	}}
	_, err := l.Client.CoreV1().Pods(namespace).Create(l.ctx, pod, metav1.CreateOptions{})
	return err
}

func (l *life) runs(ctx context.Context) error {
	pod, err := l.Client.CoreV1().Pods(namespace).Get(ctx, l.name, metav1.GetOptions{})
	if err == nil && pod.Status.Phase != corev1.PodRunning {
		err = errors.New("it does not run")
	}
	return err
}

func (l *life) expand() error {
	patch := fmt.Appendf(nil, `{"spec": {"resources": {"requests": {"storage": "%dMi"}}}}`, 9+l.rand.IntN(4))
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		_, err := l.Client.CoreV1().PersistentVolumeClaims(namespace).Patch(l.ctx, l.name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return nil // it is not bound yet
	}
	return err
}

func (l *life) createSnapshot() error {
	_, err := l.Dynamic.Resource(snapshotKind).Namespace(namespace).Create(l.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": map[string]any{"name": l.name},
		"spec": map[string]any{"volumeSnapshotClassName": "plain", "source": map[string]any{"persistentVolumeClaimName": l.name}},
	}}, metav1.CreateOptions{})
	return err
}

func (l *life) deleteSnapshot() error {
	return notThere(l.Dynamic.Resource(snapshotKind).Namespace(namespace).Delete(l.ctx, l.name, metav1.DeleteOptions{}))
}

func (l *life) deleteClaim(name string) error {
	return notThere(l.Client.CoreV1().PersistentVolumeClaims(namespace).Delete(l.ctx, name, metav1.DeleteOptions{}))
}

// deletePod deletes the pod, in three cases of ten without waiting for its node.
func (l *life) deletePod() error {
	var options metav1.DeleteOptions
	if l.chance(0.3) {
		options.GracePeriodSeconds = new(int64)
	}
	return notThere(l.Client.CoreV1().Pods(namespace).Delete(l.ctx, l.name, options))
}

// deleteVolume deletes the volume's object, maybe before its claim.
func (l *life) deleteVolume() error {
	claim, err := l.Client.CoreV1().PersistentVolumeClaims(namespace).Get(l.ctx, l.name, metav1.GetOptions{})
	if err != nil || claim.Spec.VolumeName == "" {
		return notThere(err)
	}
	return notThere(l.Client.CoreV1().PersistentVolumes().Delete(l.ctx, claim.Spec.VolumeName, metav1.DeleteOptions{}))
}

// notThere forgives that what is deleted is gone already.
func notThere(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
