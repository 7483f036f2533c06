//go:build unix

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/bed"
)

// officialOnly has csi-proxy serve what every csi-proxy has.
const officialOnly = "-api=disk/*,volume/*,filesystem/*,smb/*,iscsi/*,system/*"

// attachedVolume is a volume that is attached to a node, with the calls that use it.
type attachedVolume struct {
	*bedDriver
	bed       *bed.Node
	stage     *csi.NodeStageVolumeRequest
	publish   *csi.NodePublishVolumeRequest
	unpublish *csi.NodeUnpublishVolumeRequest
	unstage   *csi.NodeUnstageVolumeRequest
}

// attachNew starts a driver over a node, and makes a volume and attaches it.
func attachNew(t *testing.T, n *bed.Node) *attachedVolume {
	t.Helper()
	d := startDriver(t, "-mode=all", "-driver=simcloud", "-node-id="+nodeNamed, "-cloud-dir="+t.TempDir(),
		"-cloud-node="+nodeNamed+"="+n.ControlAddress, "-socket-dir="+n.Place.Dir)
	volume := ok(d, d.controller.CreateVolume, &csi.CreateVolumeRequest{
		Name: "pvc-1", CapacityRange: &csi.CapacityRange{RequiredBytes: gib}, VolumeCapabilities: []*csi.VolumeCapability{writer()},
	}).GetVolume()
	id := volume.GetVolumeId()
	attached := ok(d, d.controller.ControllerPublishVolume, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: nodeNamed, VolumeCapability: writer()})
	return &attachedVolume{
		bedDriver: d, bed: n,
		stage: &csi.NodeStageVolumeRequest{
			VolumeId: id, StagingTargetPath: staging, VolumeCapability: writer(), PublishContext: attached.GetPublishContext(),
		},
		publish:   &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: writer()},
		unpublish: &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target},
		unstage:   &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging},
	}
}

// systemCall is a call of the operating system that changes the node.
type systemCall struct {
	name string
	// isNear tells from the disk that the call was reached, or nearly.
	isNear func(disk sim.DiskStatus) bool
}

// killedAt makes a CSI call that comes no further than to a call of the operating
// system, kills csi-proxy there, and starts it again.
func (v *attachedVolume) killedAt(call systemCall, do func(context.Context) error) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.Context(), callTime)
	defer cancel()
	v.must(v.bed.AddFault(ctx, sim.Fault{Call: call.name, After: true, Hang: true}))
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	for !call.isNear(v.dataDisks()[0]) {
		select {
		case err := <-ended:
			v.Fatalf("%s was not called: %v", call.name, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	v.bed.Proxy.Kill()
	if code := status.Code(<-ended); code != codes.Unavailable {
		v.Errorf("%s was cut off: got %v, want %v", call.name, code, codes.Unavailable)
	}
	v.bed.StartProxy()
}

func (v *attachedVolume) must(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

// stagedOnce fails the test unless the volume is on the node once, and mounted once.
func (v *attachedVolume) stagedOnce() {
	v.Helper()
	mounts, err := v.bed.Connect(nil).ListMounts(v.Context())
	v.must(err)
	count := 0
	for _, m := range mounts {
		if strings.HasPrefix(strings.ToLower(m.Path), strings.ToLower(`C:\var\lib\kubelet\plugins`)) {
			count++
		}
	}
	volumes := 0
	for _, disk := range v.dataDisks() {
		volumes += len(disk.Volumes)
	}
	if count != 1 || volumes != 1 {
		v.Errorf("%d mount points and %d volumes, want one of each: %+v", count, volumes, mounts)
	}
}

// dataDisks are the disks of the node without the system's.
func (v *attachedVolume) dataDisks() (disks []sim.DiskStatus) {
	v.Helper()
	all, err := v.bed.Disks(v.Context())
	v.must(err)
	for _, disk := range all {
		if !disk.System {
			disks = append(disks, disk)
		}
	}
	return disks
}

// goneFromNode fails the test when the disk is in use or a hold is left.
func (v *attachedVolume) goneFromNode() {
	v.Helper()
	if disks := v.dataDisks(); len(disks) != 1 || !disks[0].Offline {
		v.Errorf("the disk stays online: %+v", disks)
	}
	groups, err := v.bed.ListDir(v.Context(), node.DefaultFolder)
	if err != nil {
		return // no hold was ever made
	}
	for _, group := range groups {
		if names, err := v.bed.ListDir(v.Context(), node.DefaultFolder+`\`+group); err != nil || len(names) > 0 {
			v.Errorf("%s holds %q, %v", group, names, err)
		}
	}
}

// csi-proxy is killed in the middle of a task, and started again. The kubelet repeats
// the call, and finds neither less nor more than after one call.
func TestCsiProxyIsKilledInTheMiddleOfATask(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"group node": nil, "official": {officialOnly}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := bed.StartNode(t, flags...)
			v := attachNew(t, n)
			stage := func(ctx context.Context) error { _, err := v.node.NodeStageVolume(ctx, v.stage); return err }
			unstage := func(ctx context.Context) error { _, err := v.node.NodeUnstageVolume(ctx, v.unstage); return err }
			for _, call := range []systemCall{
				{"cim.Exec MSFT_Disk.Initialize", func(d sim.DiskStatus) bool { return d.Style == "GPT" }},
				{"cim.Exec MSFT_Volume.Format", func(d sim.DiskStatus) bool { return len(d.Volumes) > 0 }},
			} {
				v.killedAt(call, stage)
			}
			ok(v.bedDriver, v.node.NodeStageVolume, v.stage)
			ok(v.bedDriver, v.node.NodePublishVolume, v.publish)
			v.must(n.WriteFile(t.Context(), target+`\file`, []byte("data")))
			if data, err := n.ReadFile(t.Context(), staging+`\file`); err != nil || string(data) != "data" {
				t.Errorf("the file holds %q, %v", data, err)
			}
			if flags == nil {
				v.stagedOnce()
			}
			ok(v.bedDriver, v.node.NodeUnpublishVolume, v.unpublish)
			v.killedAt(systemCall{"cim.Exec MSFT_Disk.Offline", func(d sim.DiskStatus) bool { return d.Offline }}, unstage)
			ok(v.bedDriver, v.node.NodeUnstageVolume, v.unstage)
			v.goneFromNode()
		})
	}
}

// csi-proxy is replaced by one that has the official groups only, and by ours again,
// while a volume is staged. Each goes on with what the other has made.
func TestC062_CsiProxyIsReplacedWhileAVolumeIsStaged(t *testing.T) {
	t.Parallel()
	for name, replacement := range map[string][]string{"by an official one": {officialOnly}, "by ours": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := []string{officialOnly}
			if replacement != nil {
				first = nil
			}
			n := bed.StartNode(t, first...)
			v := attachNew(t, n)
			ok(v.bedDriver, v.node.NodeStageVolume, v.stage)
			ok(v.bedDriver, v.node.NodePublishVolume, v.publish)
			v.must(n.WriteFile(t.Context(), target+`\file`, []byte("data")))
			n.ReplaceProxy(replacement...)
			ok(v.bedDriver, v.node.NodeStageVolume, v.stage)
			ok(v.bedDriver, v.node.NodePublishVolume, v.publish)
			ok(v.bedDriver, v.node.NodeUnpublishVolume, v.unpublish)
			ok(v.bedDriver, v.node.NodePublishVolume, v.publish)
			if data, err := n.ReadFile(t.Context(), target+`\file`); err != nil || string(data) != "data" {
				t.Errorf("the file holds %q, %v", data, err)
			}
			n.ReplaceProxy(first...)
			ok(v.bedDriver, v.node.NodeUnpublishVolume, v.unpublish)
			n.ReplaceProxy(replacement...)
			ok(v.bedDriver, v.node.NodeUnstageVolume, v.unstage)
			v.goneFromNode()
		})
	}
}
