package snapshotter

// Names on the objects of snapshots, shared with the snapshot-controller.
//
// Source: https://github.com/kubernetes-csi/external-snapshotter (annotations,
// finalizers, labels and reserved parameters).
const (
	// annMember is on the contents of a group's members; its value is the
	// group's handle.
	annMember = "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle"
	// labelManagedBy is on the contents that the sidecar of a node handles.
	labelManagedBy = "snapshot.storage.kubernetes.io/managed-by"
	// reservedPrefix begins the parameters that are not the driver's.
	reservedPrefix = "csi.storage.k8s.io/"
)

// words are what the two kinds of contents are called, and what is on them.
type words struct {
	kind, apiGroup string
	// noun is what is taken, in messages.
	noun string
	// call is the CSI call that takes it.
	call string
	// marker is the annotation of a content whose snapshot may be under way.
	marker string
	// beingDeleted is the annotation of one whose snapshot object goes.
	beingDeleted string
	// finalizer keeps a content until its snapshot is gone.
	finalizer string
	// secretName and secretNamespace are the annotations that name the secret.
	secretName, secretNamespace string
	// classSecret and classLookSecret begin the class' parameters for the
	// secret of taking and removing, and that of looking.
	classSecret, classLookSecret string
	// metadata begins the parameters that tell the driver names.
	metadata string
	// template begins the tokens in the names of secrets.
	template string
	// createFailed, checkFailed and deleteFailed are reasons of events.
	createFailed, checkFailed, deleteFailed string
}

var snapshotWords = words{
	kind: "VolumeSnapshotContent", apiGroup: "snapshot.storage.k8s.io",
	noun: "snapshot", call: "CreateSnapshot",
	marker:          "snapshot.storage.kubernetes.io/volumesnapshot-being-created",
	beingDeleted:    "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted",
	finalizer:       "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection",
	secretName:      "snapshot.storage.kubernetes.io/deletion-secret-name",
	secretNamespace: "snapshot.storage.kubernetes.io/deletion-secret-namespace",
	classSecret:     "snapshotter-secret",
	classLookSecret: "snapshotter-list-secret",
	metadata:        "volumesnapshot",
	template:        "volumesnapshot",
	createFailed:    "SnapshotCreationFailed",
	checkFailed:     "SnapshotContentCheckandUpdateFailed",
	deleteFailed:    "SnapshotDeleteError",
}

var groupWords = words{
	kind: "VolumeGroupSnapshotContent", apiGroup: "groupsnapshot.storage.k8s.io",
	noun: "group snapshot", call: "CreateVolumeGroupSnapshot",
	marker:          "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-created",
	beingDeleted:    "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-deleted",
	finalizer:       "groupsnapshot.storage.kubernetes.io/volumegroupsnapshotcontent-bound-protection",
	secretName:      "groupsnapshot.storage.kubernetes.io/deletion-secret-name",
	secretNamespace: "groupsnapshot.storage.kubernetes.io/deletion-secret-namespace",
	classSecret:     "group-snapshotter-secret",
	classLookSecret: "group-snapshotter-get-secret",
	metadata:        "volumegroupsnapshot",
	template:        "volumegroupsnapshot",
	createFailed:    "GroupSnapshotCreationFailed",
	checkFailed:     "GroupSnapshotContentCheckandUpdateFailed",
	deleteFailed:    "GroupSnapshotDeleteError",
}
