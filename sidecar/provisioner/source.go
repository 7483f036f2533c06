package provisioner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	snapshotGroup = snapshotv1.GroupName
	snapshotKind  = "VolumeSnapshot"
	claimKind     = "PersistentVolumeClaim"
)

// filling is where the first content of a volume comes from.
type filling struct{ group, kind, namespace, name string }

func (f filling) isSnapshot() bool { return f.kind == snapshotKind && f.group == snapshotGroup }

func (f filling) isClaim() bool { return f.kind == claimKind && f.group == "" }

// fillingOf is what a claim wants to be filled from; ok is false for nothing.
func fillingOf(claim *v1.PersistentVolumeClaim) (f filling, ok bool) {
	group := func(group *string) string {
		if group == nil {
			return ""
		}
		return *group
	}
	if source := claim.Spec.DataSource; source != nil {
		return filling{group(source.APIGroup), source.Kind, claim.Namespace, source.Name}, true
	}
	if source := claim.Spec.DataSourceRef; source != nil {
		f := filling{group(source.APIGroup), source.Kind, claim.Namespace, source.Name}
		if source.Namespace != nil && *source.Namespace != "" {
			f.namespace = *source.Namespace
		}
		return f, true
	}
	return filling{}, false
}

// filledByOthers reports whether a claim is left to a volume populator, which
// makes its volume by way of a claim of its own.
func filledByOthers(claim *v1.PersistentVolumeClaim) bool {
	f, ok := fillingOf(claim)
	return ok && !f.isSnapshot() && !f.isClaim()
}

// contentSource is what the driver is to fill the volume from, nil for nothing.
func (r *run) contentSource(ctx context.Context, claim *v1.PersistentVolumeClaim) (*csi.VolumeContentSource, error) {
	from, ok := fillingOf(claim)
	switch {
	case !ok:
		return nil, nil
	case from.name == "":
		return nil, errors.New("the claim's data source has no name")
	case from.namespace != claim.Namespace:
		return nil, fmt.Errorf("the claim's data source is in namespace %s: sources in other namespaces are not supported", from.namespace)
	case from.isSnapshot():
		if err := r.needs(r.info.Controller[csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT], "CREATE_DELETE_SNAPSHOT", "volumes from snapshots"); err != nil {
			return nil, err
		}
		handle, err := r.snapshotHandle(ctx, claim, from)
		if err != nil {
			return nil, fmt.Errorf("volume from snapshot %s: %w", from.name, err)
		}
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: handle}}}, nil
	}
	if err := r.needs(r.info.Controller[csi.ControllerServiceCapability_RPC_CLONE_VOLUME], "CLONE_VOLUME", "clones"); err != nil {
		return nil, err
	}
	handle, err := r.cloneHandle(ctx, claim, from)
	if err != nil {
		return nil, fmt.Errorf("clone of claim %s: %w", from.name, err)
	}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: handle}}}, nil
}

// snapshotHandle checks that the claim can be filled from the snapshot. The
// objects are read from the API server: the usual role may not watch them.
func (r *run) snapshotHandle(ctx context.Context, claim *v1.PersistentVolumeClaim, from filling) (string, error) {
	if r.env.Snapshots == nil {
		return "", errors.New("this process reads no snapshots")
	}
	snapshot, err := r.env.Snapshots.SnapshotV1().VolumeSnapshots(from.namespace).Get(ctx, from.name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	status := snapshot.Status
	switch {
	case snapshot.DeletionTimestamp != nil && !keptForVolumes(snapshot):
		return "", errors.New("it is being deleted")
	case status == nil || status.BoundVolumeSnapshotContentName == nil:
		return "", errors.New("it is not bound to a content")
	case status.ReadyToUse == nil || !*status.ReadyToUse:
		return "", errors.New("it is not ready")
	}
	content, err := r.env.Snapshots.SnapshotV1().VolumeSnapshotContents().Get(ctx, *status.BoundVolumeSnapshotContentName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	back := content.Spec.VolumeSnapshotRef
	switch {
	case back.UID != snapshot.UID || back.Namespace != snapshot.Namespace || back.Name != snapshot.Name:
		return "", fmt.Errorf("its content %s is bound to another snapshot", content.Name)
	case content.Spec.Driver != r.driver:
		return "", fmt.Errorf("its content %s is of driver %s, not of %s", content.Name, content.Spec.Driver, r.driver)
	case content.Status == nil || content.Status.SnapshotHandle == nil || *content.Status.SnapshotHandle == "":
		return "", fmt.Errorf("its content %s has no handle", content.Name)
	}
	if size := claim.Spec.Resources.Requests[v1.ResourceStorage]; status.RestoreSize != nil && size.Cmp(*status.RestoreSize) < 0 {
		return "", fmt.Errorf("the claim asks for %s, less than the %s it needs", size.String(), status.RestoreSize.String())
	}
	if err := r.mayChangeMode(claim, content); err != nil {
		return "", err
	}
	return *content.Status.SnapshotHandle, nil
}

// keptForVolumes reports whether the snapshot, which is being deleted, is there until
// the volumes that wait for it are made. To refuse them would have them wait for
// each other for ever.
func keptForVolumes(snapshot *snapshotv1.VolumeSnapshot) bool {
	return slices.Contains(snapshot.Finalizers, snapshotFinalizer) || slices.Contains(snapshot.Finalizers, snapshotFinalizerUpstream)
}

// mayChangeMode refuses to use the bytes of a file system as a block volume or
// the reverse, by which a user could feed a crafted file system to the kernel,
// unless whoever owns the content allows it.
func (r *run) mayChangeMode(claim *v1.PersistentVolumeClaim, content *snapshotv1.VolumeSnapshotContent) error {
	of := content.Spec.SourceVolumeMode
	if r.config.AllowVolumeModeConversion || of == nil || claim.Spec.VolumeMode == nil || *of == *claim.Spec.VolumeMode {
		return nil
	}
	if allowed, err := strconv.ParseBool(content.Annotations[annAllowModeChange]); err == nil && allowed {
		return nil
	}
	return fmt.Errorf("it is of a volume of mode %s, the claim wants %s, and its content %s lacks the annotation %s: \"true\"",
		*of, *claim.Spec.VolumeMode, content.Name, annAllowModeChange)
}

// cloneHandle checks that the claim's volume can be cloned, and protects it
// until that is done.
func (r *run) cloneHandle(ctx context.Context, claim *v1.PersistentVolumeClaim, from filling) (string, error) {
	object, exists, err := r.claims.GetStore().GetByKey(from.namespace + "/" + from.name)
	if err != nil || !exists {
		return "", errors.Join(errors.New("it does not exist"), err)
	}
	source := object.(*v1.PersistentVolumeClaim)
	size, sourceSize := claim.Spec.Resources.Requests[v1.ResourceStorage], source.Spec.Resources.Requests[v1.ResourceStorage]
	switch {
	case source.DeletionTimestamp != nil && !waitsAsSource(source): // which goes only when its clones are made
		return "", errors.New("it is being deleted")
	case source.Status.Phase != v1.ClaimBound || source.Spec.VolumeName == "":
		return "", errors.New("it is not bound")
	case source.Spec.StorageClassName == nil || claim.Spec.StorageClassName == nil:
		return "", errors.New("source and clone must both name a storage class")
	case size.Cmp(sourceSize) < 0:
		return "", fmt.Errorf("the clone asks for %s, less than the %s of its source", size.String(), sourceSize.String())
	}
	object, exists, err = r.volumes.GetStore().GetByKey(source.Spec.VolumeName)
	if err != nil || !exists {
		return "", errors.Join(fmt.Errorf("its volume %s does not exist", source.Spec.VolumeName), err)
	}
	pv := object.(*v1.PersistentVolume)
	back := pv.Spec.ClaimRef
	switch {
	case pv.Status.Phase != v1.VolumeBound || back == nil || back.UID != source.UID || back.Namespace != source.Namespace || back.Name != source.Name:
		return "", fmt.Errorf("its volume %s is not bound to it", pv.Name)
	case modeOf(pv.Spec.VolumeMode) != modeOf(claim.Spec.VolumeMode):
		return "", fmt.Errorf("it is of volume mode %s, the clone wants %s", modeOf(pv.Spec.VolumeMode), modeOf(claim.Spec.VolumeMode))
	}
	if pv, _, err = r.asCSI(ctx, pv); err != nil || pv.Spec.CSI.Driver != r.driver {
		return "", fmt.Errorf("its volume %s is not of driver %s", source.Spec.VolumeName, r.driver)
	}
	return handleOf(pv), r.protectSource(ctx, source)
}

func modeOf(mode *v1.PersistentVolumeMode) v1.PersistentVolumeMode {
	if mode == nil {
		return v1.PersistentVolumeFilesystem
	}
	return *mode
}

// protectSource keeps the source of a clone until the clone is made.
func (r *run) protectSource(ctx context.Context, source *v1.PersistentVolumeClaim) error {
	if slices.Contains(source.Finalizers, cloneFinalizer) {
		return nil
	}
	source = source.DeepCopy()
	source.Finalizers = append(source.Finalizers, cloneFinalizer)
	if _, err := r.env.Kube.CoreV1().PersistentVolumeClaims(source.Namespace).Update(ctx, source, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("protect the source: %w", err)
	}
	return nil
}
