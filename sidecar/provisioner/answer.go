package provisioner

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/util"
)

const (
	// volumeIDMaxBytes is the longest id that is taken for one. CSI says 128
	// for strings, which the ids of well-known drivers exceed.
	volumeIDMaxBytes = 1024
	// cleanupTries is how often an unfit volume is tried to be deleted at once.
	cleanupTries = 5
)

// unfit says, by an error, why a volume is not what was asked for.
func unfit(request *csi.CreateVolumeRequest, made *csi.Volume) error {
	required := request.GetCapacityRange().GetRequiredBytes()
	switch has := made.GetCapacityBytes(); {
	case made.GetVolumeId() == "":
		return errors.New("the driver made a volume without an id")
	case len(made.GetVolumeId()) > volumeIDMaxBytes:
		return fmt.Errorf("the driver made a volume whose id has %d bytes, more than %d", len(made.GetVolumeId()), volumeIDMaxBytes)
	case has != 0 && has < required: // 0: the driver does not know
		return fmt.Errorf("the driver made a volume of %d bytes, less than the %d asked for", has, required)
	case request.GetVolumeContentSource() != nil && made.GetContentSource() == nil:
		return errors.New("the driver made a volume and does not say that it was filled from the source asked for")
	}
	return nil
}

// accept turns a made volume into the object to be saved. One that is not what
// was asked for is deleted again.
func (r *run) accept(ctx context.Context, a *attempt, claim *v1.PersistentVolumeClaim, what *wanted, made *csi.Volume, secrets map[string]string) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	err := unfit(what.request, made)
	var pv *v1.PersistentVolume
	if err == nil {
		pv = r.object(claim, what, made)
		if what.migrated {
			if pv, err = r.translator.TranslateCSIPVToInTree(pv); err != nil {
				err = fmt.Errorf("volume as one of the old plugin %s: %w", r.inTree, err)
			}
		}
	}
	if err == nil {
		r.capacityChanged(what.class.Name, made.GetAccessibleTopology())
		a.enter(stageMade)
		return pv, controller.ProvisioningFinished, nil
	}
	if cleanup := r.discard(ctx, made.GetVolumeId(), secrets); cleanup != nil {
		// The next call with the same name gives the same volume, and another
		// chance to delete it.
		return nil, controller.ProvisioningInBackground, errors.Join(err, cleanup)
	}
	r.abandon(a)
	return nil, controller.ProvisioningFinished, err
}

// discard deletes a volume that nobody can use.
func (r *run) discard(ctx context.Context, id string, secrets map[string]string) (err error) {
	if id == "" {
		return nil // there is no way to name it
	}
	if user := r.userOf(id); user != "" {
		return fmt.Errorf("volume %s is kept: it is the one of %s", id, user)
	}
	for range cleanupTries {
		if err = r.deleteVolume(ctx, id, secrets); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// object is the volume object for a made volume.
func (r *run) object(claim *v1.PersistentVolumeClaim, what *wanted, made *csi.Volume) *v1.PersistentVolume {
	size := made.GetCapacityBytes()
	if size == 0 {
		size = what.request.GetCapacityRange().GetRequiredBytes()
	}
	source := what.source
	source.VolumeHandle = made.GetVolumeId()
	source.VolumeAttributes = map[string]string{attributeProvisionerID: r.identity}
	maps.Copy(source.VolumeAttributes, made.GetVolumeContext())
	if asked := what.request.GetVolumeCapabilities(); r.config.ControllerPublishReadOnly && len(asked) == 1 &&
		asked[0].GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY {
		source.ReadOnly = true
	}
	if !util.CheckPersistentVolumeClaimModeBlock(claim) {
		source.FSType = what.fsType
	}
	pv := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: what.request.GetName(), Annotations: map[string]string{
			annDeletionSecretName: "", annDeletionSecretSpace: ""}},
		Spec: v1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			MountOptions:                  what.class.MountOptions,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)},
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: &source},
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			VolumeMode:                    claim.Spec.VolumeMode,
		},
	}
	if what.secret != nil {
		pv.Annotations[annDeletionSecretName] = what.secret.Name
		pv.Annotations[annDeletionSecretSpace] = what.secret.Namespace
	}
	if what.modifySecret != nil {
		pv.Annotations[annModifySecretName] = what.modifySecret.Name
		pv.Annotations[annModifySecretSpace] = what.modifySecret.Namespace
	}
	if what.class.ReclaimPolicy != nil {
		pv.Spec.PersistentVolumeReclaimPolicy = *what.class.ReclaimPolicy
	}
	if r.topology != nil {
		pv.Spec.NodeAffinity = volumeNodeAffinity(made.GetAccessibleTopology())
	}
	pv.Spec.VolumeAttributesClassName = what.attributes
	return pv
}
