package provisioner

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// requestTimeout bounds one request to the API server.
const requestTimeout = 30 * time.Second

// The library is kept from registering the core kinds in the scheme of
// all clients, which have been there since client-go's start. The library does
// it again whenever a controller is made, that is whenever the component is
// started again, and writes to maps that other components' clients read at
// that moment without a lock: Go ends the whole process for that.
//
// It is done once, before anything runs, because it cannot be done without a
// race later.
var _ = leaveSchemeAlone()

func leaveSchemeAlone() bool {
	register := v1.AddToScheme
	v1.AddToScheme = func(s *runtime.Scheme) error {
		if s == scheme.Scheme {
			return nil
		}
		return register(s)
	}
	return true
}

// client is the API server as the library sees it.
type client struct {
	kubernetes.Interface
	r *run
}

// CoreV1 implements kubernetes.Interface.
func (c *client) CoreV1() corev1.CoreV1Interface {
	return &coreClient{c.Interface.CoreV1(), c.r}
}

type coreClient struct {
	corev1.CoreV1Interface
	r *run
}

// PersistentVolumes implements corev1.CoreV1Interface.
func (c *coreClient) PersistentVolumes() corev1.PersistentVolumeInterface {
	return &volumeClient{c.CoreV1Interface.PersistentVolumes(), c.r}
}

// Events implements corev1.CoreV1Interface.
func (c *coreClient) Events(namespace string) corev1.EventInterface {
	return &eventClient{c.CoreV1Interface.Events(namespace), c.r}
}

// volumeClient saves and removes volume objects.
type volumeClient struct {
	corev1.PersistentVolumeInterface
	r *run
}

// Create saves the object of a volume that was made. The library retries until
// it is told that the object is there.
func (c *volumeClient) Create(_ context.Context, volume *v1.PersistentVolume, options metav1.CreateOptions) (*v1.PersistentVolume, error) {
	// The library's context never ends; after the end of the run nothing is
	// to be written, since another leader may be at work.
	c.r.saving.RLock()
	defer c.r.saving.RUnlock()
	if err := c.r.ctx.Err(); err != nil {
		return nil, fmt.Errorf("save volume object %s: %w", volume.Name, err)
	}
	ctx, cancel := context.WithTimeout(c.r.ctx, requestTimeout)
	defer cancel()
	claim := volume.Spec.ClaimRef
	volume = volume.DeepCopy()
	volume.Finalizers = c.r.finalizersOf(volume)
	saved, err := c.PersistentVolumeInterface.Create(ctx, volume, options)
	switch {
	case err == nil:
		c.r.saved(volume)
		return saved, nil
	case apierrors.IsAlreadyExists(err):
		return c.r.resolveExisting(ctx, c.PersistentVolumeInterface, volume, err)
	case isNeverSaved(err) && c.r.claimByUID(claim.UID) == nil:
		return nil, c.r.giveUp(ctx, volume, err)
	case ctx.Err() == nil:
		c.r.attempts.of(claim.UID).report()
		c.r.events.warn(claim, reasonFailed, fmt.Sprintf("The volume was made, its object %s is not saved yet: %v", volume.Name, err))
		c.r.log.WarnContext(ctx, "Volume object is not saved, will be tried again", "volume", volume.Name, "error", err)
	}
	return nil, fmt.Errorf("save volume object %s: %w", volume.Name, err)
}

// isNeverSaved reports whether the API server will refuse an object for ever,
// such as one that is larger than it or its store takes.
func isNeverSaved(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "request is too large")
}

// giveUp deletes a volume whose object the API server will never take, now that
// nobody waits for it.
func (r *run) giveUp(ctx context.Context, volume *v1.PersistentVolume, refusal error) error {
	claim := volume.Spec.ClaimRef
	if err := r.deleteSurplus(ctx, claim.UID, volume); err != nil {
		return err
	}
	r.log.WarnContext(ctx, "Volume is deleted: its claim is gone and its object cannot be saved", "volume", volume.Name, "error", refusal)
	r.finish(claim.UID)
	return apierrors.NewAlreadyExists(v1.Resource("persistentvolumes"), volume.Name) // the library takes it for the end of its work
}

// finalizersOf are those a new volume object is to have. With the attacher's
// own among them, the attacher need not add it before the first attach.
func (r *run) finalizersOf(volume *v1.PersistentVolume) []string {
	var finalizers []string
	if volume.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimRetain {
		finalizers = append(finalizers, finalizer) // a retained volume is not ours to clean up
	}
	if r.attachesHere {
		finalizers = append(finalizers, attacherFinalizer(r.driver))
	}
	return finalizers
}

// saved takes note of a volume whose object is in the API server.
func (r *run) saved(volume *v1.PersistentVolume) {
	claim := volume.Spec.ClaimRef
	reported := r.finish(claim.UID)
	if reported || r.config.SuccessEvents {
		r.events.normal(claim, reasonSucceeded, "Successfully provisioned volume "+volume.Name)
	}
	r.log.Info("Volume is made", "volume", volume.Name, "claim", claim.Namespace+"/"+claim.Name)
}

// finish ends the making of a claim's volume, and says whether an event told
// of it before.
func (r *run) finish(claim types.UID) (reported bool) {
	created, reported := r.attempts.finish(claim)
	if created.IsZero() {
		created = r.env.Clock.Now().Add(clockSkewMax)
	}
	r.memory.add(claim, created)
	r.journal.remove(claim)
	return reported
}

// resolveExisting tells whether the object that stands in the way of saving a
// volume is that volume's. If it is not, the volume just made is surplus and
// deleted, unless its handle is in use.
func (r *run) resolveExisting(ctx context.Context, volumes corev1.PersistentVolumeInterface, made *v1.PersistentVolume, exists error) (*v1.PersistentVolume, error) {
	stored, err := volumes.Get(ctx, made.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("volume object %s exists and cannot be read: %w", made.Name, err)
	}
	claim := made.Spec.ClaimRef
	sameClaim := stored.Spec.ClaimRef != nil && stored.Spec.ClaimRef.UID == claim.UID
	switch sameVolume := handleOf(stored) == handleOf(made); {
	case sameVolume && sameClaim:
		r.saved(stored)
		return stored, nil
	case !sameVolume:
		if err := r.deleteSurplus(ctx, claim.UID, made); err != nil {
			return nil, err
		}
	}
	text := fmt.Sprintf("Volume object %s belongs to another volume or claim; the volume made for this claim is not used", made.Name)
	r.events.warn(claim, reasonFailed, text)
	r.log.WarnContext(ctx, "Volume is not saved for good: its name is taken", "volume", made.Name, "claim", claim.Namespace+"/"+claim.Name)
	r.finish(claim.UID)
	return nil, exists // the library takes it for the end of its work
}

// Delete removes the object of a volume that is deleted at the back-end: its
// finalizers first, in one patch, then the object, in one request. In this
// order the attacher never sees a volume under deletion that has its
// finalizer, and a crash between the two only repeats the deletion.
func (c *volumeClient) Delete(ctx context.Context, name string, _ metav1.DeleteOptions) error {
	object, exists, err := c.r.volumes.GetStore().GetByKey(name)
	if err != nil || !exists {
		return err
	}
	volume := object.(*v1.PersistentVolume)
	if !c.r.deletions.is(volume.UID, deletedThere) {
		return nil // another object of the name by now
	}
	if err := c.removeFinalizers(ctx, volume); err != nil {
		return err
	}
	if volume.DeletionTimestamp == nil {
		uid := volume.UID
		err = c.PersistentVolumeInterface.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a conflict: it is another object by now
			return fmt.Errorf("delete volume object %s: %w", name, err)
		}
	}
	c.r.deletions.reach(volume.UID, deletedHere)
	return nil
}

// removeFinalizers takes ours, and the attacher's if it runs in this process
// too: that there is no attachment any more was seen before the deletion.
func (c *volumeClient) removeFinalizers(ctx context.Context, volume *v1.PersistentVolume) error {
	var names []string
	for _, name := range volume.Finalizers {
		if name == finalizer || (c.r.attachesHere && name == attacherFinalizer(c.r.driver)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 || c.r.deletions.is(volume.UID, freed) {
		return nil
	}
	// Names are taken out of the list one by one, so that a finalizer somebody
	// else adds or removes at the same time is not touched; the uid makes it
	// fail for another volume of the same name.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":                                 volume.UID,
		"$deleteFromPrimitiveList/finalizers": names,
	}})
	if err != nil {
		return fmt.Errorf("free volume object %s: %w", volume.Name, err)
	}
	_, err = c.PersistentVolumeInterface.Patch(ctx, volume.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("free volume object %s: %w", volume.Name, err)
	}
	c.r.deletions.reach(volume.UID, freed)
	return nil
}

// Patch changes the finalizers of a volume object that the library wants to
// protect or to leave. After a deletion there is nothing left to patch.
func (c *volumeClient) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*v1.PersistentVolume, error) {
	object, exists, err := c.r.volumes.GetStore().GetByKey(name)
	if err == nil && exists {
		if volume := object.(*v1.PersistentVolume); c.r.deletions.is(volume.UID, deletedHere) {
			return volume, nil
		}
	}
	return c.PersistentVolumeInterface.Patch(ctx, name, kind, data, options, subresources...)
}
