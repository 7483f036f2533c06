package sidecartest

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What the objects made here have in common.
const (
	// Namespace is where claims, pods and secrets are.
	Namespace = "default"
	// ClassName is the storage class of claims and volumes.
	ClassName = "fast"
	// GiB is the size of claims and volumes.
	GiB int64 = 1 << 30
)

// named is the metadata of an object: its identity is its name with a prefix,
// so that objects refer to one another without being looked up.
func named(prefix, name, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(prefix + "-" + name)}
}

func changed[T any](object *T, changes []func(*T)) *T {
	for _, change := range changes {
		change(object)
	}
	return object
}

// Size is a quantity of bytes.
func Size(sizeBytes int64) resource.Quantity {
	return *resource.NewQuantity(sizeBytes, resource.BinarySI)
}

// PVC is a claim of 1 GiB of the class, pending, with uid "pvc-NAME".
func PVC(name string, changes ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	class, mode := ClassName, v1.PersistentVolumeFilesystem
	return changed(&v1.PersistentVolumeClaim{
		ObjectMeta: named("pvc", name, Namespace),
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			StorageClassName: &class,
			VolumeMode:       &mode,
			Resources:        v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: Size(GiB)}},
		},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	}, changes)
}

// PV is an available volume of 1 GiB of the driver, with uid "pv-NAME" and
// handle "handle-NAME", that was provisioned and is to be deleted.
func PV(name string, changes ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	mode := v1.PersistentVolumeFilesystem
	meta := named("pv", name, "")
	meta.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": DriverName}
	return changed(&v1.PersistentVolume{
		ObjectMeta: meta,
		Spec: v1.PersistentVolumeSpec{
			AccessModes:                   []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Capacity:                      v1.ResourceList{v1.ResourceStorage: Size(GiB)},
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			StorageClassName:              ClassName,
			VolumeMode:                    &mode,
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: DriverName, VolumeHandle: "handle-" + name, FSType: "ntfs",
			}},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}, changes)
}

// Bind binds a claim and a volume to one another.
func Bind(pvc *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
	pvc.Spec.VolumeName = pv.Name
	pvc.Status.Phase = v1.ClaimBound
	pvc.Status.AccessModes = pv.Spec.AccessModes
	pvc.Status.Capacity = pv.Spec.Capacity.DeepCopy()
	pv.Spec.ClaimRef = &v1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID,
	}
	pv.Status.Phase = v1.VolumeBound
}

// StorageClass is a class of the driver that binds at once, with uid "sc-NAME".
func StorageClass(name string, changes ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	reclaim, binding, expand := v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate, true
	return changed(&storagev1.StorageClass{
		ObjectMeta:           named("sc", name, ""),
		Provisioner:          DriverName,
		ReclaimPolicy:        &reclaim,
		VolumeBindingMode:    &binding,
		AllowVolumeExpansion: &expand,
	}, changes)
}

// Node is a node with uid "node-NAME" and its name as hostname label.
func Node(name string, changes ...func(*v1.Node)) *v1.Node {
	meta := named("node", name, "")
	meta.Labels = map[string]string{v1.LabelHostname: name, v1.LabelOSStable: "windows"}
	return changed(&v1.Node{ObjectMeta: meta}, changes)
}

// CSINode says that the driver runs on a node under the id "id-NODE".
func CSINode(node string, topologyKeys ...string) *storagev1.CSINode {
	meta := named("csinode", node, "")
	meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID("node-" + node)}}
	return &storagev1.CSINode{ObjectMeta: meta, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: DriverName, NodeID: "id-" + node, TopologyKeys: topologyKeys},
	}}}
}

// VA wants a volume on a node. Its name is "PV-NODE", its uid "va-PV-NODE".
func VA(pv, node string, changes ...func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	return changed(&storagev1.VolumeAttachment{
		ObjectMeta: named("va", pv+"-"+node, ""),
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: DriverName, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv},
		},
	}, changes)
}

// Secret holds pairs of keys and values, with uid "secret-NAME".
func Secret(name string, pairs ...string) *v1.Secret {
	secret := &v1.Secret{ObjectMeta: named("secret", name, Namespace), Data: map[string][]byte{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		secret.Data[pairs[i]] = []byte(pairs[i+1])
	}
	return secret
}

// Deleting marks an object as being deleted, as the API server does when it
// has finalizers.
func Deleting(object metav1.Object) {
	now := metav1.Now()
	object.SetDeletionTimestamp(&now)
}
