package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/sim"
)

// Paths of the node as kubelet lays them out.
const (
	kubeletPath = `C:\var\lib\kubelet`
	stagePath   = kubeletPath + `\plugins\kubernetes.io\csi\simcloud.csi-windows\b1f2\globalmount`
	podPath     = kubeletPath + `\pods\2f1c8e0a-3c55-4a4e-9d2c-0f2d0f6a7c11`
	publishPath = podPath + `\volumes\kubernetes.io~csi\pvc-demo\mount`
	volumesPath = podPath + `\volumes\kubernetes.io~csi\pvc-demo`
)

// The claim.
const (
	claimBytes = 1 << 30
	grownBytes = 2 << 30
	nodeName   = "demo-node"
)

var letter = []byte("dear pod, this is your data\r\n")

// life is what a cluster asks of the driver for one claim: CSI calls to its
// controller and node services, which go down to csi-proxy.
type life struct {
	*report
	controller csi.ControllerClient
	nodes      csi.NodeClient
	node       sim.Controller
	client     *client.Client

	claim   *csi.Volume
	attach  map[string]string // publish context
	restore *csi.Volume
	// volume is the id of the staged volume on the node, for the attempts to do damage.
	volume string
}

// run walks through the claim's life. It stops at the first failure, since
// everything after it would fail as well.
func (l *life) run(ctx context.Context) {
	l.head("A claim's life, by CSI calls")
	for _, part := range []func(context.Context) bool{l.provision, l.mount, l.use, l.grow, l.leave, l.copy, l.restage} {
		if !part(ctx) {
			return
		}
	}
}

// capability is a volume for one node, with a file system.
func capability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// call is a step that makes one CSI call and looks at its answer.
func call[Q, A any](ctx context.Context, r *report, what, service, name string, method func(context.Context, Q, ...grpc.CallOption) (A, error), request Q, result func(A) (string, error)) bool {
	return r.do(ctx, step{what, service, name}, func(ctx context.Context) (string, error) {
		answer, err := method(ctx, request)
		if err != nil {
			return "", err
		}
		return result(answer)
	})
}

// says is the result of a step whose answer is of no interest.
func says[A any](text string) func(A) (string, error) {
	return func(A) (string, error) { return text, nil }
}

// provision makes the volume and attaches it to the node.
func (l *life) provision(ctx context.Context) bool {
	create := &csi.CreateVolumeRequest{
		Name: "pvc-demo", CapacityRange: &csi.CapacityRange{RequiredBytes: claimBytes}, VolumeCapabilities: []*csi.VolumeCapability{capability()},
	}
	return call(ctx, l.report, "The claim's volume is made", "controller", "CreateVolume", l.controller.CreateVolume, create, func(answer *csi.CreateVolumeResponse) (string, error) {
		l.claim = answer.GetVolume()
		return fmt.Sprintf("%d MiB", l.claim.GetCapacityBytes()>>20), nil
	}) && call(ctx, l.report, "It is made once more", "controller", "CreateVolume", l.controller.CreateVolume, create, func(answer *csi.CreateVolumeResponse) (string, error) {
		same := answer.GetVolume().GetVolumeId() == l.claim.GetVolumeId()
		return "the same volume", expect(nil, same, "another volume, %s", answer.GetVolume().GetVolumeId())
	}) && l.attachTo(ctx, "It is attached to the node", l.claim)
}

// attachTo attaches a volume to the node.
func (l *life) attachTo(ctx context.Context, what string, volume *csi.Volume) bool {
	return call(ctx, l.report, what, "controller", "ControllerPublishVolume", l.controller.ControllerPublishVolume,
		&csi.ControllerPublishVolumeRequest{VolumeId: volume.GetVolumeId(), NodeId: nodeName, VolumeCapability: capability(), VolumeContext: volume.GetVolumeContext()},
		func(answer *csi.ControllerPublishVolumeResponse) (string, error) {
			l.attach = answer.GetPublishContext()
			return "attached", nil
		})
}

// stage stages a volume at the staging path.
func (l *life) stage(ctx context.Context, what, result string, volume *csi.Volume) bool {
	return call(ctx, l.report, what, "node", "NodeStageVolume", l.nodes.NodeStageVolume, &csi.NodeStageVolumeRequest{
		VolumeId: volume.GetVolumeId(), PublishContext: l.attach, StagingTargetPath: stagePath,
		VolumeCapability: capability(), VolumeContext: volume.GetVolumeContext(),
	}, says[*csi.NodeStageVolumeResponse](result))
}

// mount makes the volume usable on the node and visible to the pod.
func (l *life) mount(ctx context.Context) bool {
	return l.stage(ctx, "It is found, formatted and staged", "NTFS", l.claim) && l.stage(ctx, "It is staged once more", "left as it is", l.claim) && l.publish(ctx, l.claim)
}

func (l *life) publish(ctx context.Context, volume *csi.Volume) bool {
	return call(ctx, l.report, "It is published to the pod", "node", "NodePublishVolume", l.nodes.NodePublishVolume, &csi.NodePublishVolumeRequest{
		VolumeId: volume.GetVolumeId(), PublishContext: l.attach, StagingTargetPath: stagePath, TargetPath: publishPath,
		VolumeCapability: capability(), VolumeContext: volume.GetVolumeContext(),
	}, says[*csi.NodePublishVolumeResponse]("linked"))
}

// use writes as the pod does, and measures.
func (l *life) use(ctx context.Context) bool {
	return l.do(ctx, step{"The pod writes a file", "", "(program on the node)"}, func(ctx context.Context) (string, error) {
		return fmt.Sprintf("%d bytes", len(letter)), l.node.WriteFile(ctx, publishPath+`\letter.txt`, letter)
	}) && l.stats(ctx, claimBytes)
}

// stats measures the volume, which is about sizeBytes large.
func (l *life) stats(ctx context.Context, sizeBytes int64) bool {
	return call(ctx, l.report, "It is measured", "node", "NodeGetVolumeStats", l.nodes.NodeGetVolumeStats,
		&csi.NodeGetVolumeStatsRequest{VolumeId: l.claim.GetVolumeId(), VolumePath: publishPath}, func(answer *csi.NodeGetVolumeStatsResponse) (string, error) {
			for _, usage := range answer.GetUsage() {
				if usage.GetUnit() == csi.VolumeUsage_BYTES {
					text := fmt.Sprintf("%d MiB, %d KiB used", usage.GetTotal()>>20, usage.GetUsed()>>10)
					return text, expect(nil, usage.GetTotal() > sizeBytes*9/10 && usage.GetUsed() > 0, "sizes are wrong: %s", text)
				}
			}
			return "", errors.New("no sizes")
		})
}

// grow enlarges the volume while the pod uses it.
func (l *life) grow(ctx context.Context) bool {
	grown := &csi.CapacityRange{RequiredBytes: grownBytes}
	return call(ctx, l.report, "The claim asks for more", "controller", "ControllerExpandVolume", l.controller.ControllerExpandVolume,
		&csi.ControllerExpandVolumeRequest{VolumeId: l.claim.GetVolumeId(), CapacityRange: grown, VolumeCapability: capability()},
		func(answer *csi.ControllerExpandVolumeResponse) (string, error) {
			return fmt.Sprintf("%d MiB", answer.GetCapacityBytes()>>20), expect(nil, answer.GetNodeExpansionRequired(), "the node is not asked to grow the file system")
		}) && call(ctx, l.report, "The file system follows", "node", "NodeExpandVolume", l.nodes.NodeExpandVolume,
		&csi.NodeExpandVolumeRequest{VolumeId: l.claim.GetVolumeId(), VolumePath: publishPath, StagingTargetPath: stagePath, CapacityRange: grown, VolumeCapability: capability()},
		says[*csi.NodeExpandVolumeResponse]("grown")) && l.stats(ctx, grownBytes)
}

// leave ends the pod, and takes the volume from the node.
func (l *life) leave(ctx context.Context) bool {
	return call(ctx, l.report, "The pod ends", "node", "NodeUnpublishVolume", l.nodes.NodeUnpublishVolume,
		&csi.NodeUnpublishVolumeRequest{VolumeId: l.claim.GetVolumeId(), TargetPath: publishPath}, says[*csi.NodeUnpublishVolumeResponse]("the link only")) &&
		call(ctx, l.report, "It leaves the node", "node", "NodeUnstageVolume", l.nodes.NodeUnstageVolume,
			&csi.NodeUnstageVolumeRequest{VolumeId: l.claim.GetVolumeId(), StagingTargetPath: stagePath}, says[*csi.NodeUnstageVolumeResponse]("flushed, unmounted, offline")) &&
		l.do(ctx, step{"The staging path is empty now", "", "(program on the node)"}, func(ctx context.Context) (string, error) {
			if _, err := l.node.ReadFile(ctx, stagePath+`\letter.txt`); err == nil {
				return "", errors.New("the file is still there")
			}
			return "no file", nil
		}) && call(ctx, l.report, "It is detached", "controller", "ControllerUnpublishVolume", l.controller.ControllerUnpublishVolume,
		&csi.ControllerUnpublishVolumeRequest{VolumeId: l.claim.GetVolumeId(), NodeId: nodeName}, says[*csi.ControllerUnpublishVolumeResponse]("detached"))
}

// copy snapshots the volume and makes another from the snapshot.
func (l *life) copy(ctx context.Context) bool {
	var snapshot *csi.Snapshot
	return call(ctx, l.report, "It is snapshotted", "controller", "CreateSnapshot", l.controller.CreateSnapshot,
		&csi.CreateSnapshotRequest{Name: "snapshot-demo", SourceVolumeId: l.claim.GetVolumeId()}, func(answer *csi.CreateSnapshotResponse) (string, error) {
			snapshot = answer.GetSnapshot()
			return "ready", expect(nil, snapshot.GetReadyToUse(), "it is not ready")
		}) && l.do(ctx, step{"Another volume is made from the snapshot", "controller", "CreateVolume"}, func(ctx context.Context) (string, error) {
		answer, err := l.controller.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: "pvc-restored", CapacityRange: &csi.CapacityRange{RequiredBytes: grownBytes}, VolumeCapabilities: []*csi.VolumeCapability{capability()},
			VolumeContentSource: &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: snapshot.GetSnapshotId()}}},
		})
		l.restore = answer.GetVolume()
		return "restored", err
	}) && call(ctx, l.report, "The snapshot is deleted", "controller", "DeleteSnapshot", l.controller.DeleteSnapshot,
		&csi.DeleteSnapshotRequest{SnapshotId: snapshot.GetSnapshotId()}, says[*csi.DeleteSnapshotResponse]("deleted"))
}

// restage uses the restored volume, and deletes the first. It stays staged for the
// attempts to do damage.
func (l *life) restage(ctx context.Context) bool {
	return call(ctx, l.report, "The claim is deleted", "controller", "DeleteVolume", l.controller.DeleteVolume,
		&csi.DeleteVolumeRequest{VolumeId: l.claim.GetVolumeId()}, says[*csi.DeleteVolumeResponse]("deleted")) &&
		l.attachTo(ctx, "The restored volume is attached", l.restore) && l.stage(ctx, "It is staged", "not formatted: it holds data", l.restore) &&
		l.do(ctx, step{"The file is there", "", "(program on the node)"}, func(ctx context.Context) (string, error) {
			data, err := l.node.ReadFile(ctx, stagePath+`\letter.txt`)
			return fmt.Sprintf("%d bytes, the same", len(data)), expect(err, bytes.Equal(data, letter), "the file holds %q", data)
		}) && l.do(ctx, step{"The volume's id on the node", "volume", "GetVolumeIDFromTargetPath"}, func(ctx context.Context) (id string, err error) {
		l.volume, err = l.client.GetVolumeIDFromTargetPath(ctx, stagePath)
		return l.volume, err
	})
}

// expect is err, or the described failure when what should hold does not.
func expect(err error, holds bool, format string, args ...any) error {
	if err != nil || holds {
		return err
	}
	return fmt.Errorf(format, args...)
}
