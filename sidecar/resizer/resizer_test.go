package resizer_test

import (
	"errors"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
	"github.com/csi-windows/csi-windows/sidecar/resizer"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

const (
	inProgress     = v1.PersistentVolumeClaimControllerResizeInProgress
	infeasible     = v1.PersistentVolumeClaimControllerResizeInfeasible
	nodePending    = v1.PersistentVolumeClaimNodeResizePending
	nodeInfeasible = v1.PersistentVolumeClaimNodeResizeInfeasible
	patchClaim     = "patch persistentvolumeclaims/status default/c"
	patchVolume    = "patch persistentvolumes v"
)

// scenario is one claim from the start of the resizer to where it comes.
type scenario struct {
	name    string
	info    csiclient.Info
	objects []runtime.Object
	config  resizer.Config
	// answers come first for their methods, the back-end's after them.
	answers map[string][]sidecartest.Answer
	node    bool
	// settleByClass is for drivers that only modify.
	settleByClass bool
	// state, calls, events and writes are what it comes to, and no more.
	state  string
	calls  []string
	events []string
	writes []string
}

func (s scenario) run(t *testing.T) {
	t.Parallel()
	b := newBed(t, s.info, s.objects)
	driver := newBackend(b)
	driver.node = s.node
	b.Driver.On("NodeGetCapabilities", sidecartest.Reply(&csi.NodeGetCapabilitiesResponse{
		Capabilities: []*csi.NodeServiceCapability{{Type: &csi.NodeServiceCapability_Rpc{
			Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_EXPAND_VOLUME},
		}}},
	}))
	for method, answers := range s.answers {
		b.Driver.Once(method, answers...)
	}
	// One worker handles claims in order, which settle relies on.
	s.config.Workers = 1
	stop := start(b, s.config)
	comesTo(b, s.state)
	check := func() error {
		return errors.Join(differs("calls", calls(b), s.calls), differs("events", reasons(b), s.events), differs("writes", writes(b), s.writes))
	}
	b.Eventually(check)
	settle(b, s.settleByClass)
	stop()
	comesTo(b, s.state)
	if err := check(); err != nil {
		t.Error(err)
	}
}

func TestExpansion(t *testing.T) {
	for _, s := range []scenario{
		{
			name: "grows a volume in three writes", info: able(), objects: bound(request(2 * gib)), config: quick,
			state:  "claim 2Gi allocated 2Gi no-node-expansion | volume 2Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Normal VolumeResizeSuccessful"},
			writes: []string{patchClaim, patchVolume, patchClaim},
		},
		{
			name: "leaves the file system to the node", info: able(), objects: bound(request(2 * gib)), config: quick, node: true,
			state:  "claim 1Gi allocated 2Gi NodeResizePending FileSystemResizePending Resizing | volume 2Gi before 1Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Normal FileSystemResizeRequired"},
			writes: []string{patchClaim, patchVolume, patchClaim},
		},
		{
			name: "leaves the volume's annotation out when it is told to", info: able(), objects: bound(request(2 * gib)),
			config: resizer.Config{NoResizeAnnotation: true}, node: true,
			state:  "claim 1Gi allocated 2Gi NodeResizePending FileSystemResizePending Resizing | volume 2Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Normal FileSystemResizeRequired"},
			writes: []string{patchClaim, patchVolume, patchClaim},
		},
		{
			name: "tells of every call when it is told to", info: able(), objects: bound(request(2 * gib)), config: resizer.Config{StartEvents: true},
			state:  "claim 2Gi allocated 2Gi no-node-expansion | volume 2Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Normal Resizing", "Normal VolumeResizeSuccessful"},
			writes: []string{patchClaim, patchVolume, patchClaim},
		},
		{
			name: "leaves all to the node when the driver expands there alone", info: able(without(csi.ControllerServiceCapability_RPC_EXPAND_VOLUME)),
			objects: bound(request(2 * gib)), config: quick,
			state:  "claim 1Gi allocated 2Gi NodeResizePending FileSystemResizePending Resizing | volume 2Gi before 1Gi",
			events: []string{"Normal FileSystemResizeRequired"},
			writes: []string{patchClaim, patchVolume, patchClaim},
		},
		{
			name: "takes the answer's size", info: able(), objects: bound(request(2 * gib)), config: quick,
			answers: map[string][]sidecartest.Answer{expand: {grown(4*gib, false)}},
			state:   "claim 4Gi allocated 2Gi no-node-expansion | volume 4Gi",
			calls:   []string{"expand 2Gi"},
			events:  []string{"Normal VolumeResizeSuccessful"},
			writes:  []string{patchClaim, patchVolume, patchClaim},
		},
		{
			name: "rounds a request up to bytes", info: able(), config: quick,
			objects: bound(func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests[storage] = *sizeText("1500000000500m") }),
			state:   "claim 1500000001 allocated 1500000001 no-node-expansion | volume 1500000001",
			calls:   []string{"expand 1500000001"},
			events:  []string{"Normal VolumeResizeSuccessful"},
			writes:  []string{patchClaim, patchVolume, patchClaim},
		},
		{
			name: "finishes a call that was under way before it takes a smaller size", info: able(), config: quick,
			objects: bound(request(2*gib), begun(5*gib, inProgress), condition("Resizing")),
			state:   "claim 5Gi allocated 5Gi no-node-expansion | volume 5Gi",
			calls:   []string{"expand 5Gi"},
			events:  []string{"Normal VolumeResizeSuccessful"},
			writes:  []string{patchVolume, patchClaim},
		},
		{
			name: "takes a smaller size after one was infeasible", info: able(), config: quick,
			objects: bound(request(2*gib), begun(5*gib, infeasible), condition("Resizing", "ControllerResizeError")),
			state:   "claim 2Gi allocated 2Gi no-node-expansion | volume 2Gi",
			calls:   []string{"expand 2Gi"},
			events:  []string{"Normal VolumeResizeSuccessful"},
			writes:  []string{patchClaim, patchVolume, patchClaim},
		},
		{
			name: "leaves a claim to the node that it waits for", info: able(), config: quick,
			objects: bound(request(2*gib), begun(2*gib, nodePending), condition("FileSystemResizePending"), volumeSize(2*gib)),
			state:   "claim 1Gi allocated 2Gi NodeResizePending FileSystemResizePending | volume 2Gi",
		},
		{
			name: "finishes what the volume has and the claim does not say", info: able(), config: quick, node: true,
			objects: bound(request(2*gib), begun(2*gib, inProgress), condition("Resizing"), volumeSize(2*gib)),
			state:   "claim 1Gi allocated 2Gi NodeResizePending FileSystemResizePending Resizing | volume 2Gi before 1Gi",
			calls:   []string{"expand 2Gi"},
			events:  []string{"Normal FileSystemResizeRequired"},
			writes:  []string{patchVolume, patchClaim},
		},
		{
			name: "never makes a volume smaller", info: able(), config: quick,
			objects: bound(request(2*gib), begun(2*gib, inProgress), condition("Resizing"), volumeSize(3*gib)),
			state:   "claim 3Gi allocated 2Gi no-node-expansion | volume 3Gi",
			calls:   []string{"expand 2Gi"},
			events:  []string{"Normal VolumeResizeSuccessful"},
			writes:  []string{patchClaim},
		},
		{
			name: "says that a repetition may be under way after an infeasible call", info: able(), config: patient,
			objects: bound(request(2*gib), begun(2*gib, infeasible), condition("Resizing", "ControllerResizeError")),
			answers: map[string][]sidecartest.Answer{expand: {lost}},
			state:   "claim 1Gi allocated 2Gi ControllerResizeInProgress ControllerResizeError Resizing | volume 1Gi",
			calls:   []string{"expand 2Gi"},
			events:  []string{"Warning VolumeResizeFailed"},
			writes:  []string{patchClaim},
		},
		{
			name: "lets nodes expand again while a call is under way", info: able(), config: patient,
			objects: bound(request(2*gib), noNodeExpansion), answers: map[string][]sidecartest.Answer{expand: {lost}},
			state:  "claim 1Gi allocated 2Gi ControllerResizeInProgress Resizing | volume 1Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Warning VolumeResizeFailed"},
			writes: []string{patchClaim},
		},
		{
			name: "leaves the old size on a volume whose file system is to grow", info: able(), config: quick,
			objects: bound(request(2*gib), begun(2*gib, nodePending), volumeSize(2*gib), sizeBefore("1Gi")),
			state:   "claim 1Gi allocated 2Gi NodeResizePending | volume 2Gi before 1Gi",
		},
		{
			name: "takes the old size off a volume whose file system has grown", info: able(), config: quick,
			objects: bound(request(2*gib), begun(2*gib, ""), volumeSize(2*gib), claimSize(2*gib), sizeBefore("1Gi")),
			state:   "claim 2Gi allocated 2Gi | volume 2Gi",
			writes:  []string{patchVolume},
		},
		{
			name: "leaves alone what is of another driver", info: able(), config: quick,
			objects: bound(request(2*gib), sizeBefore("1Gi"), func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = "other.example.com" }),
			state:   "claim 1Gi | volume 1Gi before 1Gi",
		},
		{
			name: "leaves alone a volume that is bound to another claim of the name", info: able(), config: quick,
			objects: bound(request(2*gib), func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "older" }),
			state:   "claim 1Gi | volume 1Gi",
		},
		{
			name: "does nothing for claims that have what they ask for", info: able(), config: quick,
			objects: bound(),
			state:   "claim 1Gi | volume 1Gi",
		},
	} {
		t.Run(s.name, s.run)
	}
}

// TestC087_ResizeIsReportedAsTheDriverAnswered: a failed or senseless answer is
// never taken for success.
func TestC087_ResizeIsReportedAsTheDriverAnswered(t *testing.T) {
	once := func(answers ...sidecartest.Answer) map[string][]sidecartest.Answer {
		return map[string][]sidecartest.Answer{expand: answers}
	}
	for _, s := range []scenario{
		{
			name: "a time-out is a failure and leaves the volume", config: patient, answers: once(lost),
			state:  "claim 1Gi allocated 2Gi ControllerResizeInProgress Resizing | volume 1Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Warning VolumeResizeFailed"},
			writes: []string{patchClaim},
		},
		{
			name: "a time-out is repeated until the driver answers", config: quick, answers: once(lost, lost),
			state:  "claim 2Gi allocated 2Gi no-node-expansion | volume 2Gi",
			calls:  []string{"expand 2Gi", "expand 2Gi", "expand 2Gi"},
			events: []string{"Warning VolumeResizeFailed", "Warning VolumeResizeFailed", "Normal VolumeResizeSuccessful"},
			writes: []string{patchClaim, patchVolume, patchClaim},
		},
		{
			name: "a size of 0 is a failure and leaves the volume", config: patient, answers: once(grown(0, false)),
			state:  "claim 1Gi allocated 2Gi ControllerResizeInProgress Resizing | volume 1Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Warning VolumeResizeFailed"},
			writes: []string{patchClaim},
		},
		{
			name: "a size below the request is a failure and leaves the volume", config: patient, answers: once(grown(2*gib-1, true)),
			state:  "claim 1Gi allocated 2Gi ControllerResizeInProgress Resizing | volume 1Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Warning VolumeResizeFailed"},
			writes: []string{patchClaim},
		},
		{
			name: "a refusal is a failure, shown in the claim", config: patient, answers: once(sidecartest.Fail(codes.Internal, "broken")),
			state:  "claim 1Gi allocated 2Gi ControllerResizeInProgress ControllerResizeError Resizing | volume 1Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Warning VolumeResizeFailed"},
			writes: []string{patchClaim, patchClaim},
		},
		{
			name: "a refusal that repeats is written once", config: quick,
			answers: once(sidecartest.Fail(codes.Internal, "broken"), sidecartest.Fail(codes.Internal, "broken")),
			state:   "claim 2Gi allocated 2Gi no-node-expansion | volume 2Gi",
			calls:   []string{"expand 2Gi", "expand 2Gi", "expand 2Gi"},
			events:  []string{"Warning VolumeResizeFailed", "Warning VolumeResizeFailed", "Normal VolumeResizeSuccessful"},
			writes:  []string{patchClaim, patchClaim, patchVolume, patchClaim},
		},
		{
			name: "a larger size is taken, and the node's part honoured", config: quick, answers: once(grown(3*gib, true)),
			state:  "claim 1Gi allocated 2Gi NodeResizePending FileSystemResizePending Resizing | volume 3Gi before 1Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Normal FileSystemResizeRequired"},
			writes: []string{patchClaim, patchVolume, patchClaim},
		},
	} {
		s.info, s.objects = able(), bound(request(2*gib))
		t.Run(s.name, s.run)
	}
	for _, code := range []codes.Code{codes.InvalidArgument, codes.OutOfRange, codes.NotFound} {
		t.Run("infeasible: "+code.String(), scenario{
			info: able(), objects: bound(request(2 * gib)), config: quick, answers: once(sidecartest.Fail(code, "no")),
			state:  "claim 1Gi allocated 2Gi ControllerResizeInfeasible ControllerResizeError Resizing | volume 1Gi",
			calls:  []string{"expand 2Gi"},
			events: []string{"Warning VolumeResizeFailed"},
			writes: []string{patchClaim, patchClaim},
		}.run)
	}
}
