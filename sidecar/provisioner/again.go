package provisioner

import (
	"context"
	"errors"
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// wantAgain works out what to ask for. While an earlier call may have made the
// volume, the driver is asked in the same words: nodes that came or went, or another
// class of attributes, would make it another request of the same name, which a driver
// may finally refuse, and the volume would be lost. Nor need the source be there
// any more. Only a claim or a class that was put right meanwhile changes the words.
func (r *run) wantAgain(ctx context.Context, a *attempt, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, node string) (*wanted, error) {
	w, err := r.outline(ctx, claim, class)
	if err == nil {
		if again := r.inSameWords(ctx, a, w, claim); again != nil {
			return again, nil
		}
		err = r.complete(ctx, w, claim, node)
	}
	if err != nil {
		return nil, refusal(a, node, err)
	}
	return w, nil
}

// inSameWords gives what was asked before if its answer is open and the outline is
// still the same, nil otherwise.
func (r *run) inSameWords(ctx context.Context, a *attempt, w *wanted, claim *v1.PersistentVolumeClaim) *wanted {
	a.mu.Lock()
	now, before, known := a.stage, a.intent, a.want
	a.mu.Unlock()
	switch {
	case (now != stageOpen && now != stageFound) || before == nil || !sameOutline(w.request, before.Request):
		return nil
	case known != nil:
		// The rest is not for the driver: secrets that were put right, or what is to
		// become of the volume once it is released, hold as they are now.
		w.request, w.attributes = known.request, known.attributes
		return w
	}
	// Only the journal knows. It has no name of the class of attributes; where it
	// cannot be told, the object gets none, and the wanted one is set afterwards.
	current := &wanted{request: &csi.CreateVolumeRequest{}}
	if r.wantAttributes(ctx, current, claim) == nil && maps.Equal(current.request.MutableParameters, before.Request.GetMutableParameters()) {
		w.attributes = current.attributes
	}
	w.request = before.Request
	return w
}

// sameOutline compares the parts of two requests that claim and class decide. The
// name is left out: it changes with the settings, and the volume in the making
// keeps the one it has.
func sameOutline(a, b *csi.CreateVolumeRequest) bool {
	outline := func(r *csi.CreateVolumeRequest) *csi.CreateVolumeRequest {
		return &csi.CreateVolumeRequest{CapacityRange: r.GetCapacityRange(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters()}
	}
	return proto.Equal(outline(a), outline(b))
}

// refusal is why a volume cannot be asked for. Another node may help where the driver
// is not on the selected one, unless an earlier call may have made the volume.
func refusal(a *attempt, node string, cause error) error {
	if now, _ := a.state(); now == stageIdle && node != "" && errors.Is(cause, errNodeWithoutDriver) {
		return &otherNodeError{cause}
	}
	return cause
}

// otherNodeError is a refusal that another node may help against.
type otherNodeError struct{ error }

func (e *otherNodeError) Unwrap() error { return e.error }

func stateOfRefusal(err error) controller.ProvisioningState {
	if other := (*otherNodeError)(nil); errors.As(err, &other) {
		return controller.ProvisioningReschedule
	}
	return controller.ProvisioningNoChange
}
