package life

import (
	"context"
	"fmt"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// trial is the scene of a driver with some capabilities.
type trial struct {
	*scene
	has    set
	volume *corev1.PersistentVolume
	// static is the id of a volume that the driver did not make for a claim.
	static string
}

// run asks for everything there is.
func (y *trial) run() {
	y.makeClass()
	y.begin()
	y.use()
	y.readOnly()
	y.attributes()
	y.clone()
	y.snapshots()
	y.groups()
	y.freeRoom()
	y.end()
}

// begin has a claim get its volume, or hear that it gets none.
func (y *trial) begin() {
	y.t.Helper()
	y.claim("claim", "64Mi")
	if y.has["controller"] {
		y.volume = y.bound("claim")
		made := requestOf(y.t, y.driver.since(0, "CreateVolume")[0], &csi.CreateVolumeRequest{})
		y.hasMode(made.GetVolumeCapabilities()[0])
		if asked := made.GetAccessibilityRequirements() != nil; asked != y.has["topology"] {
			y.t.Errorf("it was asked for at %v", made.GetAccessibilityRequirements())
		}
		if bound := y.volume.Spec.NodeAffinity != nil; bound != y.has["topology"] {
			y.t.Errorf("it can be used at %v", y.volume.Spec.NodeAffinity)
		}
		return
	}
	y.event("claim", "ProvisioningFailed", "CREATE_DELETE_VOLUME")
	y.noClaim("claim")
	y.static = y.store("static", 64<<20)
	name := y.staticVolume(y.static, "claim")
	y.claim("claim", "64Mi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = name })
	y.volume = y.bound("claim")
}

// hasMode fails the test if a mode of access is said in words the driver does not know.
func (y *trial) hasMode(capability *csi.VolumeCapability) {
	y.t.Helper()
	want := csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	if y.has["multi-writer"] {
		want = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	}
	if mode := capability.GetAccessMode().GetMode(); mode != want {
		y.t.Errorf("the mode of access is %v, not %v", mode, want)
	}
}

// use attaches the volume for a pod, and has it grow meanwhile.
func (y *trial) use() {
	y.t.Helper()
	y.pod("pod", "", "claim")
	node := y.runs("pod")
	calls := y.driver.since(0, "ControllerPublishVolume")
	if y.has["attach"] {
		y.hasMode(requestOf(y.t, calls[0], &csi.ControllerPublishVolumeRequest{}).GetVolumeCapability())
		_, err := y.controller.ControllerUnpublishVolume(y.t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: y.volume.Spec.CSI.VolumeHandle, NodeId: node})
		y.must(err)
	}
	if y.has.reconciles() {
		y.wait("what the back-end has lost is attached again", func(context.Context) error {
			if count := len(y.driver.since(0, "ControllerPublishVolume")); count < 2 {
				return fmt.Errorf("asked for %d times", count)
			}
			return nil
		})
	}
	y.grow("claim", "128Mi")
	if y.has.expandsAtAll() {
		y.grown("claim", y.volume.Name, "128Mi")
	} else {
		y.event("claim", "ExternalExpanding", "")
		v, err := y.c.Client.CoreV1().PersistentVolumes().Get(y.t.Context(), y.volume.Name, metav1.GetOptions{})
		y.must(err)
		if have := v.Spec.Capacity[corev1.ResourceStorage]; have.Value() != 64<<20 {
			y.t.Errorf("the volume has %v", have.String())
		}
	}
	y.noPod("pod")
	y.noAttachment()
}

// readOnly attaches a volume that says it is only to be read.
func (y *trial) readOnly() {
	y.t.Helper()
	id := y.store("readonly", 64<<20)
	name := y.staticVolume(id, "readonly", func(volume *corev1.PersistentVolume) { volume.Spec.CSI.ReadOnly = true })
	mark := y.driver.mark()
	y.attach("va-"+y.name, nodes[0], name)
	y.attached("va-"+y.name, true)
	for _, call := range y.driver.since(mark, "ControllerPublishVolume") {
		if says := requestOf(y.t, call, &csi.ControllerPublishVolumeRequest{}).GetReadonly(); says != y.has["readonly"] {
			y.t.Errorf("read-only: %v", says)
		}
	}
	y.detach("va-" + y.name)
	y.deleteVolume(name)
	y.noVolume(name)
	y.remove(id)
}

// attributes asks for a class of attributes, at the beginning and later.
func (y *trial) attributes() {
	y.t.Helper()
	slow, fast := y.attributesClass("slow", y.slow), y.attributesClass("fast", y.fast)
	y.claim("slow", "64Mi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = &slow })
	switch {
	case !y.has["controller"]:
		y.event("slow", "ProvisioningFailed", "CREATE_DELETE_VOLUME")
	case !y.has["modify"]:
		y.event("slow", "ProvisioningFailed", "MODIFY_VOLUME")
	default:
		y.hasClass("slow", y.bound("slow").Name, slow)
	}
	y.noClaim("slow")
	y.patchClaim("claim", map[string]any{"volumeAttributesClassName": fast})
	if y.has["modify"] {
		y.hasClass("claim", y.volume.Name, fast)
	}
}

// clone asks for a copy.
func (y *trial) clone() {
	y.t.Helper()
	y.claim("clone", "128Mi", from("", "PersistentVolumeClaim", "claim"))
	switch {
	case !y.has["controller"]:
		y.event("clone", "ProvisioningFailed", "CREATE_DELETE_VOLUME")
	case !y.has["clone"]:
		y.event("clone", "ProvisioningFailed", "CLONE_VOLUME")
	default:
		y.bound("clone")
	}
	y.noClaim("clone")
}

// snapshots takes one, makes a volume of it, and looks at one that was there before.
func (y *trial) snapshots() {
	y.t.Helper()
	y.snapshotClass(snapshotClassKind, "VolumeSnapshotClass", "Delete")
	y.snapshot("snapshot", "claim")
	if !y.has["snapshot"] {
		y.refused(snapshotKind, "snapshot", "CREATE_DELETE_SNAPSHOT")
		y.unmake(snapshotKind, "snapshot")
		return
	}
	y.ready(snapshotKind, "snapshot")
	y.claim("restored", "128Mi", from(snapshotKind.Group, "VolumeSnapshot", "snapshot"))
	if y.has["controller"] {
		y.bound("restored")
	} else {
		y.event("restored", "ProvisioningFailed", "CREATE_DELETE_VOLUME")
	}
	y.noClaim("restored")
	y.imported(y.handleOf("snapshot"))
	y.unmake(snapshotKind, "snapshot")
}

// imported makes the objects of a snapshot of the back-end.
func (y *trial) imported(handle string) {
	y.t.Helper()
	name := y.name + "-imported"
	y.make(contentKind, `{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotContent, metadata: {name: %s},
 spec: {driver: %s, deletionPolicy: Retain, source: {snapshotHandle: %s}, volumeSnapshotRef: {namespace: %s, name: imported}}}`, name, y.target.name, handle, y.name)
	y.make(snapshotKind, `{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: imported}, spec: {source: {volumeSnapshotContentName: %s}}}`, name)
	y.ready(snapshotKind, "imported")
	y.unmake(snapshotKind, "imported")
	y.unmake(contentKind, name)
}

// groups takes a group snapshot of one volume.
func (y *trial) groups() {
	y.t.Helper()
	y.snapshotClass(groupClassKind, "VolumeGroupSnapshotClass", "Delete")
	y.label("claim", "of", "group")
	y.make(groupKind, `{apiVersion: groupsnapshot.storage.k8s.io/v1, kind: VolumeGroupSnapshot, metadata: {name: group},
 spec: {volumeGroupSnapshotClassName: %s, source: {selector: {matchLabels: {of: group}}}}}`, y.name)
	if y.has.takesGroups() {
		y.ready(groupKind, "group")
	} else {
		y.refused(groupKind, "group", "CREATE_DELETE_")
		y.groupNamesItsContent("group")
	}
	y.unmake(groupKind, "group")
}

// label puts a label on a claim.
func (y *trial) label(name, key, value string) {
	y.t.Helper()
	y.must(y.mergeClaim(name, fmt.Appendf(nil, `{"metadata": {"labels": {%q: %q}}}`, key, value)))
}

// refused waits until a snapshot, or a group of them, says why there will be none.
func (y *trial) refused(kind schema.GroupVersionResource, name, text string) {
	y.t.Helper()
	y.wait(kind.Resource+" "+name+" says why there is none", func(ctx context.Context) error {
		object, err := y.of(kind).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if says, _, _ := unstructured.NestedString(object.Object, "status", "error", "message"); !strings.Contains(says, text) {
			return fmt.Errorf("%v; events: %s", object.Object["status"], y.events(ctx, name))
		}
		return nil
	})
}

// groupNamesItsContent waits until a group does: when one that does not is deleted, the
// snapshot-controller leaves its content in the cluster.
func (y *trial) groupNamesItsContent(group string) {
	y.t.Helper()
	y.wait("the group names its content", func(ctx context.Context) error {
		object, err := y.of(groupKind).Get(ctx, group, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if name, _, _ := unstructured.NestedString(object.Object, "status", "boundVolumeGroupSnapshotContentName"); name == "" {
			return fmt.Errorf("%v", object.Object["status"])
		}
		return nil
	})
}

// freeRoom makes a class whose free room is of interest.
func (y *trial) freeRoom() {
	y.t.Helper()
	if !y.has["capacity"] {
		return // a class that waits for pods is told of nothing: see end
	}
	name, mode := y.name+"-late", storagev1.VolumeBindingWaitForFirstConsumer
	_, err := y.c.Client.StorageV1().StorageClasses().Create(y.t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: y.target.name, VolumeBindingMode: &mode,
	}, metav1.CreateOptions{})
	y.must(err)
	want := 1 // for the whole cluster
	if y.has["topology"] {
		want = len(zones)
	}
	y.wait("capacity is published", func(ctx context.Context) error { return y.hasRooms(ctx, want) })
	y.must(y.c.Client.StorageV1().StorageClasses().Delete(y.t.Context(), name, metav1.DeleteOptions{}))
	y.wait("capacity goes with its class", func(ctx context.Context) error { return y.hasRooms(ctx, 0) })
}

// hasRooms fails unless so many capacity objects of the driver are published.
func (y *trial) hasRooms(ctx context.Context, count int) error {
	list, err := y.c.Client.StorageV1().CSIStorageCapacities(cluster.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "csi.storage.k8s.io/drivername=" + y.target.name})
	if err == nil && len(list.Items) != count {
		err = fmt.Errorf("%d objects, not %d", len(list.Items), count)
	}
	return err
}

// end has everything go.
func (y *trial) end() {
	y.t.Helper()
	y.noClaim("claim")
	if y.static != "" {
		y.deleteVolume(y.volume.Name)
		y.noVolume(y.volume.Name)
		y.remove(y.static)
	}
	y.empty()
	y.must(y.hasRooms(y.t.Context(), 0))
}
