package provisioner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// SupportsBlock implements controller.BlockProvisioner: the driver itself
// refuses block volumes that it cannot make.
func (r *run) SupportsBlock(context.Context) bool { return true }

// ShouldProvision implements controller.Qualifier. A claim it says no to is
// passed over without a word.
func (r *run) ShouldProvision(_ context.Context, claim *v1.PersistentVolumeClaim) bool {
	if !r.addressed(claim) || filledByOthers(claim) || (r.node != nil && !r.onThisNode(claim)) {
		return false
	}
	return !r.nameIsTaken(claim)
}

// addressed reports whether Kubernetes asks this driver to make the volume.
func (r *run) addressed(claim *v1.PersistentVolumeClaim) bool {
	provisioner, ok := claim.Annotations[annProvisioner]
	if !ok {
		provisioner = claim.Annotations[annProvisionerBeta]
	}
	return provisioner == r.driver || claim.Annotations[annMigratedTo] == r.driver
}

// Provision implements controller.Provisioner: it makes the volume of a claim
// and gives the object to be saved for it.
func (r *run) Provision(ctx context.Context, options controller.ProvisionOptions) (pv *v1.PersistentVolume, state controller.ProvisioningState, err error) {
	claim := options.PVC
	a := r.attempts.hold(claim.UID)
	defer r.letGo(a)
	defer func() {
		if cause := recover(); cause != nil {
			r.log.ErrorContext(ctx, "Panic while a volume is made", "claim", nameOf(claim), "cause", cause, "stack", string(debug.Stack()))
			pv, state, err = nil, controller.ProvisioningInBackground, fmt.Errorf("panic: %v", cause)
		}
		if ignored := (*controller.IgnoredError)(nil); err != nil && !errors.As(err, &ignored) {
			a.report()
			r.log.WarnContext(ctx, "Volume is not made", "claim", nameOf(claim), "state", state, "error", err)
		}
	}()
	if err := r.needed(ctx, a, claim, options.StorageClass); err != nil {
		return nil, controller.ProvisioningNoChange, err
	}
	what, err := r.wantAgain(ctx, a, claim, options.StorageClass, options.SelectedNodeName)
	if err != nil {
		return nil, stateOfRefusal(err), err
	}
	secrets, err := r.credentials(ctx, what.secret)
	if err != nil {
		return nil, controller.ProvisioningNoChange, err
	}
	if err := r.journal.add(ctx, claim.UID, newIntent(claim, what)); err != nil {
		return nil, controller.ProvisioningNoChange, fmt.Errorf("the intent to make the volume cannot be written down: %w", err)
	}
	a.begin(claim, options.StorageClass, what)
	told := r.tell(ctx, a, claim)
	made, err := r.createVolume(ctx, what.request, secrets)
	told()
	if err != nil {
		state = stateAfter(err, r.topology != nil && options.SelectedNodeName != "")
		if state != controller.ProvisioningInBackground {
			r.refused(ctx, a)
		}
		return nil, state, err
	}
	pv, state, err = r.accept(ctx, a, claim, what, made, secrets)
	return pv, state, err
}

// needed says, by an error, why no volume is to be made for a claim: because it
// has one or is gone, which is ignored, or because that cannot be found out.
func (r *run) needed(ctx context.Context, a *attempt, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	ignore := func(why string) error { return &controller.IgnoredError{Reason: why} }
	now, _ := a.state()
	cached := r.claimByUID(claim.UID)
	switch {
	case now == stageMade:
		return ignore("its volume is made, the object is being saved")
	case now == stageIdle && claim.DeletionTimestamp != nil:
		return ignore("the claim is being deleted")
	case now != stageIdle && cached == nil:
		r.settling.Add(string(claim.UID))
		return ignore("the claim is gone; the volume that may be in the making is taken care of")
	case now != stageOpen && r.classes.class(class.Name) == nil:
		return fmt.Errorf("storage class %s is gone", class.Name)
	case now == stageOpen || (now == stageIdle && !r.memory.doubtful(claim)):
		return nil
	}
	live, err := r.env.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("whether the claim still exists: %w", err)
	case err != nil || live.UID != claim.UID || live.Spec.VolumeName != "":
		if now == stageFound {
			r.settling.Add(string(claim.UID))
		}
		return ignore("the claim is gone or has its volume; the cache is old")
	}
	return nil
}

// createVolume asks the driver once.
func (r *run) createVolume(ctx context.Context, request *csi.CreateVolumeRequest, secrets map[string]string) (*csi.Volume, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	request = proto.CloneOf(request)
	request.Secrets = secrets
	response, err := r.csi.CreateVolume(ctx, request)
	if err != nil {
		return nil, err // the status itself: the library looks at its code
	}
	return response.GetVolume(), nil
}

// stateAfter reads an error of CreateVolume. It differs from other calls in
// one code: with ResourceExhausted the driver says that there is no space where
// the volume was asked for, and is done with it.
func stateAfter(err error, mayReschedule bool) controller.ProvisioningState {
	switch {
	case status.Code(err) == codes.ResourceExhausted && mayReschedule:
		return controller.ProvisioningReschedule
	case status.Code(err) == codes.ResourceExhausted, csiclient.IsFinal(err):
		return controller.ProvisioningFinished
	default:
		return controller.ProvisioningInBackground
	}
}

// refused notes that the driver is not making the volume it was asked for last.
func (r *run) refused(ctx context.Context, a *attempt) {
	former := a.reopen()
	if former == nil {
		r.abandon(a)
		return
	}
	if err := r.journal.add(ctx, a.uid, former); err != nil {
		r.log.WarnContext(ctx, "The journal has not what was asked for before the claim's class was changed", "claim", former.Namespace+"/"+former.Claim, "error", err)
	}
}

// abandon notes that for sure no volume is being made.
func (r *run) abandon(a *attempt) {
	a.enter(stageIdle)
	r.journal.remove(a.uid)
}

// letGo ends the hold of an attempt, and drops it when its claim is gone.
func (r *run) letGo(a *attempt) {
	if r.claimByUID(a.uid) == nil {
		r.attempts.drop(a)
	}
	a.busy.Unlock()
}

// tell sends the event that a volume is being made, if the user was told of
// trouble before, or once it takes long. What it gives back is to be called
// when the driver has answered.
func (r *run) tell(ctx context.Context, a *attempt, claim *v1.PersistentVolumeClaim) (answered func()) {
	send := func() {
		a.report()
		r.events.normal(refTo(claim), reasonProvisioning, fmt.Sprintf("External provisioner is provisioning volume for claim %q", nameOf(claim)))
	}
	if r.config.SuccessEvents || a.wasReported() {
		send()
		return func() {}
	}
	done, over := make(chan struct{}), make(chan struct{})
	timer := r.env.Clock.NewTimer(slow)
	go func() {
		defer close(over)
		defer timer.Stop()
		select {
		case <-timer.C():
			send()
		case <-done:
		case <-ctx.Done():
		}
	}()
	return func() { close(done); <-over }
}

// deleteSurplus deletes a volume whose name turned out to be taken.
func (r *run) deleteSurplus(ctx context.Context, claim types.UID, made *v1.PersistentVolume) error {
	if user := r.userOf(handleOf(made)); user != "" {
		r.log.WarnContext(ctx, "Surplus volume is kept: another object names it", "handle", handleOf(made), "object", user)
		return nil
	}
	var ref *v1.SecretReference
	if a := r.attempts.known(claim); a != nil {
		if _, what := a.state(); what != nil {
			ref = what.Secret
		}
	}
	secrets, err := r.credentials(ctx, ref)
	if err != nil {
		return err
	}
	return r.deleteVolume(ctx, handleOf(made), secrets)
}

// userOf is the name of a volume object with the handle given, "" for none. A
// volume that has one is deleted by way of its object only.
func (r *run) userOf(handle string) string {
	for _, object := range r.volumes.GetStore().List() {
		if pv, ok := object.(*v1.PersistentVolume); ok && pv.Spec.CSI != nil && pv.Spec.CSI.Driver == r.driver && pv.Spec.CSI.VolumeHandle == handle {
			return pv.Name
		}
	}
	return ""
}

func nameOf(claim *v1.PersistentVolumeClaim) string { return claim.Namespace + "/" + claim.Name }

func refTo(claim *v1.PersistentVolumeClaim) *v1.ObjectReference {
	return &v1.ObjectReference{Kind: claimKind, APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
		UID: claim.UID, ResourceVersion: claim.ResourceVersion}
}
