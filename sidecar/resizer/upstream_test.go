package resizer_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

// TestClaimsInUnusualStates lists what users of upstream's program came to ask
// about.
func TestClaimsInUnusualStates(t *testing.T) {
	lostClaim := func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimLost }
	for _, s := range []scenario{
		{
			name: "a claim that lost its volume is left alone", config: quick, objects: bound(request(2*gib), lostClaim),
			state: "claim 1Gi | volume 1Gi",
		},
		{
			name: "a request that grows waits for the node's part of the one before", config: quick, node: true,
			objects: bound(request(3*gib), begun(2*gib, nodePending), condition("FileSystemResizePending"), volumeSize(2*gib)),
			state:   "claim 1Gi allocated 2Gi NodeResizePending FileSystemResizePending | volume 2Gi",
		},
		{
			name: "and goes on after it", config: quick, node: true,
			objects: bound(request(3*gib), begun(2*gib, ""), claimSize(2*gib), volumeSize(2*gib)),
			state:   "claim 2Gi allocated 3Gi NodeResizePending FileSystemResizePending Resizing | volume 3Gi before 2Gi",
			calls:   []string{"expand 3Gi"},
			events:  []string{"Normal FileSystemResizeRequired"},
			writes:  []string{patchClaim, patchVolume, patchClaim},
		},
		{
			name: "a volume that somebody made larger is taken as it is", config: quick,
			objects: bound(request(2*gib), volumeSize(3*gib)),
			state:   "claim 3Gi allocated 2Gi no-node-expansion | volume 3Gi",
			calls:   []string{"expand 2Gi"},
			events:  []string{"Normal VolumeResizeSuccessful"},
			writes:  []string{patchClaim, patchClaim},
		},
		{
			name: "a back-end without room may be at it still", config: patient, objects: bound(request(2 * gib)),
			answers: map[string][]sidecartest.Answer{expand: {sidecartest.Fail(codes.ResourceExhausted, "no room")}},
			state:   "claim 1Gi allocated 2Gi ControllerResizeInProgress Resizing | volume 1Gi",
			calls:   []string{"expand 2Gi"},
			events:  []string{"Warning VolumeResizeFailed"},
			writes:  []string{patchClaim},
		},
	} {
		s.info = able()
		t.Run(s.name, s.run)
	}
}
