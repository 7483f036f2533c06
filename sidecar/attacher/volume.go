package attacher

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/accessmodes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// unmet is the error of an attachment that lacks something and is worked on
// again when that is there: no retry by time would help.
type unmet struct {
	text string
	// isAbsent says that an object is not in the cache. It may be on its way.
	isAbsent bool
}

func (u *unmet) Error() string { return u.text }

func unmetf(format string, args ...any) error { return &unmet{text: fmt.Sprintf(format, args...)} }

func absentf(format string, args ...any) error {
	return &unmet{text: fmt.Sprintf(format, args...), isAbsent: true}
}

// volume is what an attachment wants attached.
type volume struct {
	pv     *v1.PersistentVolume // as in the cache; nil if inline
	spec   *v1.PersistentVolumeSpec
	source *v1.CSIPersistentVolumeSource
	// isMigrated says that the volume is one of an in-tree plugin, which the
	// driver serves.
	isMigrated bool
}

func (r *run) volumeOf(va *storagev1.VolumeAttachment) (*volume, error) {
	name, inline := volumeName(va), va.Spec.Source.InlineVolumeSpec
	switch {
	case name != "" && inline != nil:
		return nil, unmetf("VolumeAttachment %s names a volume and holds one inline", va.Name)
	case name != "":
		return r.namedVolume(name)
	case inline == nil:
		return nil, unmetf("VolumeAttachment %s names no volume", va.Name)
	case inline.CSI == nil:
		return nil, unmetf("the inline volume of VolumeAttachment %s is not one of CSI", va.Name)
	default:
		// Only volumes that pods have inline from an in-tree plugin come so.
		return r.own(va.Name, &volume{spec: inline, source: inline.CSI, isMigrated: true})
	}
}

func (r *run) namedVolume(name string) (*volume, error) {
	pv, err := r.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil, absentf("PersistentVolume %s does not exist", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read PersistentVolume %s: %w", name, err)
	}
	return r.volumeIn(pv)
}

// missingVolume is a volume that the cache does not have, as the API server
// has it: the cache may be behind, and whoever finds none leaves it attached.
func (r *run) missingVolume(ctx context.Context, name string) (*volume, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pv, err := r.env.Kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, absentf("PersistentVolume %s does not exist", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read PersistentVolume %s: %w", name, err)
	}
	return r.volumeIn(pv)
}

// volumeIn is what is to be attached of a PersistentVolume.
func (r *run) volumeIn(pv *v1.PersistentVolume) (*volume, error) {
	name := pv.Name
	if pv.Spec.CSI != nil {
		return r.own(name, &volume{pv: pv, spec: &pv.Spec, source: pv.Spec.CSI})
	}
	if !r.translator.IsPVMigratable(pv) {
		return nil, unmetf("PersistentVolume %s is not one of CSI", name)
	}
	translated, err := r.translator.TranslateInTreePVToCSI(r.translatorLog, pv)
	if err != nil {
		return nil, unmetf("PersistentVolume %s cannot be translated to CSI: %v", name, err)
	}
	return r.own(name, &volume{pv: pv, spec: &translated.Spec, source: translated.Spec.CSI, isMigrated: true})
}

// own refuses a volume of another driver.
func (r *run) own(name string, v *volume) (*volume, error) {
	if v.source.Driver != r.driver {
		return nil, unmetf("the volume of %s belongs to driver %s, not to %s", name, v.source.Driver, r.driver)
	}
	return v, nil
}

// at is the attachment of the volume to a node.
func (v *volume) at(va *storagev1.VolumeAttachment, nodeID string) attachment {
	return attachment{
		uid: va.UID, volumeName: volumeName(va), nodeName: va.Spec.NodeName,
		volumeID: v.source.VolumeHandle, nodeID: nodeID,
		secret: v.source.ControllerPublishSecretRef, isMigrated: v.isMigrated,
	}
}

// publishRequest is the call that attaches a volume, without its secrets.
func (r *run) publishRequest(v *volume, nodeID string) (*csi.ControllerPublishVolumeRequest, error) {
	mode, err := accessmodes.ToCSIAccessMode(v.spec.AccessModes, r.can.singleNodeMultiWriter)
	if err != nil {
		return nil, unmetf("access modes of volume %s: %v", v.source.VolumeHandle, err)
	}
	capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode}}
	if v.spec.VolumeMode != nil && *v.spec.VolumeMode == v1.PersistentVolumeBlock {
		capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		fsType := v.source.FSType
		if fsType == "" {
			fsType = r.config.DefaultFSType
		}
		capability.AccessType = &csi.VolumeCapability_Mount{
			Mount: &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: v.spec.MountOptions},
		}
	}
	return &csi.ControllerPublishVolumeRequest{
		VolumeId: v.source.VolumeHandle, NodeId: nodeID, VolumeCapability: capability,
		// By CSI the field is false unless the driver knows it.
		Readonly:      v.source.ReadOnly && r.can.publishReadOnly,
		VolumeContext: v.source.VolumeAttributes,
	}, nil
}

// secrets reads what a volume's secret holds. It is read for each call: a copy
// kept here would be one more place where it could leak, and would go stale.
func (r *run) secrets(ctx context.Context, reference *v1.SecretReference) (map[string]string, error) {
	if reference == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret, err := r.env.Kube.CoreV1().Secrets(reference.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read secret %s/%s for the driver: %w", reference.Namespace, reference.Name, err)
	}
	values, err := csiclient.Secrets(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", reference.Namespace, reference.Name, err)
	}
	return values, nil
}

// registeredNodeID is the id under which the driver registered on a node.
func (r *run) registeredNodeID(nodeName string) (string, error) {
	node, err := r.csiNodes.Get(nodeName)
	if apierrors.IsNotFound(err) {
		return "", absentf("node %s has no CSINode object: it is gone, or its kubelet has not started", nodeName)
	}
	if err != nil {
		return "", fmt.Errorf("read CSINode %s: %w", nodeName, err)
	}
	if id := nodeIDOf(node, r.driver); id != "" {
		return id, nil
	}
	return "", absentf("driver %s is not registered on node %s", r.driver, nodeName)
}

// nodeIDOf is the id of a node for a driver, "" if it is not registered there.
func nodeIDOf(node *storagev1.CSINode, driver string) string {
	for i := range node.Spec.Drivers {
		if node.Spec.Drivers[i].Name == driver {
			return node.Spec.Drivers[i].NodeID
		}
	}
	return ""
}
