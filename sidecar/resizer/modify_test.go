package resizer_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"github.com/csi-windows/csi-windows/sidecar/resizer"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

const (
	modifyPending    = v1.PersistentVolumeClaimModifyVolumePending
	modifyInProgress = v1.PersistentVolumeClaimModifyVolumeInProgress
	modifyInfeasible = v1.PersistentVolumeClaimModifyVolumeInfeasible
)

func TestModification(t *testing.T) {
	gold, silver := attributes("gold", "iops", "900"), attributes("silver", "iops", "300")
	once := func(answers ...sidecartest.Answer) map[string][]sidecartest.Answer {
		return map[string][]sidecartest.Answer{alter: answers}
	}
	three := []string{patchClaim, patchVolume, patchClaim}
	for _, s := range []scenario{
		{
			name: "gives a volume its class in three writes", objects: bound(asks("gold"), gold),
			state:  "claim 1Gi class gold | volume 1Gi class gold",
			calls:  []string{"modify iops=900"},
			events: []string{"Normal VolumeModifySuccessful"},
			writes: three,
		},
		{
			name: "serves a driver that cannot expand", objects: bound(asks("gold"), request(2*gib), gold),
			info: able(without(csi.ControllerServiceCapability_RPC_EXPAND_VOLUME)), answers: map[string][]sidecartest.Answer{
				"NodeGetCapabilities": {sidecartest.Fail(codes.Unimplemented, "no node service here")},
			}, settleByClass: true,
			state:  "claim 1Gi class gold | volume 1Gi class gold",
			calls:  []string{"modify iops=900"},
			events: []string{"Normal VolumeModifySuccessful"},
			writes: three,
		},
		{
			name: "adds the names of claim and volume when it is told to", objects: bound(asks("gold"), gold), config: resizer.Config{ExtraModifyMetadata: true},
			state:  "claim 1Gi class gold | volume 1Gi class gold",
			calls:  []string{"modify csi.storage.k8s.io/pv/name=v csi.storage.k8s.io/pvc/name=c csi.storage.k8s.io/pvc/namespace=default iops=900"},
			events: []string{"Normal VolumeModifySuccessful"},
			writes: three,
		},
		{
			name: "leaves classes alone when it is told to", objects: bound(asks("gold"), gold), config: resizer.Config{NoModify: true},
			state: "claim 1Gi | volume 1Gi",
		},
		{
			name: "changes from class to class", objects: bound(asks("gold"), hasClass("silver"), gold, silver),
			state:  "claim 1Gi class gold | volume 1Gi class gold",
			calls:  []string{"modify iops=900"},
			events: []string{"Normal VolumeModifySuccessful"},
			writes: three,
		},
		{
			name: "waits for a class that is missing, and says so once", objects: bound(asks("gold")),
			state:  "claim 1Gi Pending  | volume 1Gi",
			events: []string{"Warning VolumeModifyFailed"},
			writes: []string{patchClaim},
		},
		{
			name: "waits for a class of another driver's to be made for this one", objects: bound(asks("gold"), foreign("gold")),
			state:  "claim 1Gi Pending  | volume 1Gi",
			events: []string{"Warning VolumeModifyFailed"},
			writes: []string{patchClaim},
		},
		{
			name: "forgets a class that was missing and is not asked for any more", objects: bound(modifying("", modifyPending)),
			state:  "claim 1Gi | volume 1Gi",
			writes: []string{patchClaim},
		},
		{
			name: "repeats a call that failed", objects: bound(asks("gold"), gold), config: quick,
			answers: once(sidecartest.Fail(codes.Internal, "broken"), sidecartest.Fail(codes.Internal, "broken")),
			state:   "claim 1Gi class gold | volume 1Gi class gold",
			calls:   []string{"modify iops=900", "modify iops=900", "modify iops=900"},
			events:  []string{"Warning VolumeModifyFailed", "Warning VolumeModifyFailed", "Normal VolumeModifySuccessful"},
			writes:  []string{patchClaim, patchClaim, patchVolume, patchClaim},
		},
		{
			name: "does not repeat soon what the driver calls infeasible", objects: bound(asks("gold"), gold), config: quick,
			answers: once(sidecartest.Fail(codes.InvalidArgument, "no such iops")),
			state:   "claim 1Gi Infeasible gold ModifyVolumeError ModifyingVolume | volume 1Gi",
			calls:   []string{"modify iops=900"},
			events:  []string{"Warning VolumeModifyFailed"},
			writes:  []string{patchClaim, patchClaim},
		},
		{
			name: "finishes a call that was under way before it takes another class", config: quick,
			objects: bound(asks("silver"), modifying("gold", modifyInProgress), condition("ModifyingVolume"), gold, silver),
			state:   "claim 1Gi class silver | volume 1Gi class silver",
			calls:   []string{"modify iops=900", "modify iops=300"},
			events:  []string{"Normal VolumeModifySuccessful", "Normal VolumeModifySuccessful"},
			writes:  []string{patchVolume, patchClaim, patchClaim, patchVolume, patchClaim},
		},
		{
			name: "takes another class when a call that was under way fails", config: quick,
			objects: bound(asks("silver"), modifying("gold", modifyInProgress), condition("ModifyingVolume"), gold, silver),
			answers: once(lost, sidecartest.Fail(codes.Internal, "broken")),
			state:   "claim 1Gi class silver | volume 1Gi class silver",
			calls:   []string{"modify iops=900", "modify iops=900", "modify iops=300"},
			events:  []string{"Warning VolumeModifyFailed", "Warning VolumeModifyFailed", "Normal VolumeModifySuccessful"},
			// Twice the failure, then three for the other class.
			writes: []string{patchClaim, patchClaim, patchClaim, patchVolume, patchClaim},
		},
		{
			name: "takes another class at once after an infeasible one", config: quick,
			objects: bound(asks("silver"), modifying("gold", modifyInfeasible), condition("ModifyingVolume", "ModifyVolumeError"), gold, silver),
			state:   "claim 1Gi class silver | volume 1Gi class silver",
			calls:   []string{"modify iops=300"},
			events:  []string{"Normal VolumeModifySuccessful"},
			writes:  three,
		},
		{
			name: "gives the volume its old class again when the claim goes back", config: quick,
			objects: bound(asks("silver"), hasClass("silver"), modifying("gold", modifyInfeasible), condition("ModifyingVolume", "ModifyVolumeError"), gold, silver),
			state:   "claim 1Gi class silver | volume 1Gi class silver",
			calls:   []string{"modify iops=300"},
			events:  []string{"Normal VolumeModifySuccessful"},
			writes:  three,
		},
		{
			name: "stops when no class is asked for any more", config: quick,
			objects: bound(modifying("gold", modifyInfeasible), condition("ModifyingVolume", "ModifyVolumeError"), gold),
			state:   "claim 1Gi Infeasible gold ModifyVolumeError | volume 1Gi",
			events:  []string{"Normal VolumeModifyCanceled"},
			writes:  []string{patchClaim},
		},
		{
			name: "goes on with a class that was under way though none is asked for", config: quick,
			objects: bound(modifying("gold", modifyInProgress), condition("ModifyingVolume"), gold),
			state:   "claim 1Gi class gold | volume 1Gi class gold",
			calls:   []string{"modify iops=900"},
			events:  []string{"Normal VolumeModifySuccessful"},
			writes:  []string{patchVolume, patchClaim},
		},
		{
			name: "leaves alone what is of another driver", config: quick,
			objects: bound(asks("gold"), gold, func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = "other.example.com" }),
			state:   "claim 1Gi | volume 1Gi",
		},
		{
			name: "expands first and then modifies", objects: bound(asks("gold"), request(2*gib), gold),
			state:  "claim 2Gi allocated 2Gi class gold no-node-expansion | volume 2Gi class gold",
			calls:  []string{"expand 2Gi", "modify iops=900"},
			events: []string{"Normal VolumeResizeSuccessful", "Normal VolumeModifySuccessful"},
			writes: append(three[:3:3], three...),
		},
		{
			name: "modifies though the expansion is infeasible", objects: bound(asks("gold"), request(2*gib), gold), config: quick,
			answers: map[string][]sidecartest.Answer{expand: {sidecartest.Fail(codes.OutOfRange, "too large")}},
			state:   "claim 1Gi allocated 2Gi ControllerResizeInfeasible class gold ControllerResizeError Resizing | volume 1Gi class gold",
			calls:   []string{"expand 2Gi", "modify iops=900"},
			events:  []string{"Warning VolumeResizeFailed", "Normal VolumeModifySuccessful"},
			writes:  append([]string{patchClaim, patchClaim}, three...),
		},
		{
			name: "never modifies while an expansion may be under way", objects: bound(asks("gold"), request(2*gib), gold), config: quick,
			answers: map[string][]sidecartest.Answer{expand: {lost, sidecartest.Fail(codes.Aborted, "under way")}},
			state:   "claim 2Gi allocated 2Gi class gold no-node-expansion | volume 2Gi class gold",
			calls:   []string{"expand 2Gi", "expand 2Gi", "expand 2Gi", "modify iops=900"},
			events:  []string{"Warning VolumeResizeFailed", "Warning VolumeResizeFailed", "Normal VolumeResizeSuccessful", "Normal VolumeModifySuccessful"},
			writes:  append(three[:3:3], three...),
		},
		{
			name:    "never expands while a modification may be under way",
			objects: bound(asks("gold"), request(2*gib), modifying("gold", modifyInProgress), condition("ModifyingVolume"), gold),
			config:  quick, answers: once(lost),
			state:  "claim 2Gi allocated 2Gi class gold no-node-expansion | volume 2Gi class gold",
			calls:  []string{"modify iops=900", "modify iops=900", "expand 2Gi"},
			events: []string{"Warning VolumeModifyFailed", "Normal VolumeModifySuccessful", "Normal VolumeResizeSuccessful"},
			writes: []string{patchClaim, patchVolume, patchClaim, patchClaim, patchVolume, patchClaim},
		},
	} {
		if s.info.Plugin == nil {
			s.info = able()
		}
		t.Run(s.name, s.run)
	}
}
