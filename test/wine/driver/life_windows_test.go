package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/internal/freeport"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/wine/bed"
)

// The life of a disk of the simulated cloud, with both programs as they are shipped:
// with csi-proxy's node tasks, and with the driver's own over its primitives.
func TestC093_LifeOfADiskOverPipes(t *testing.T) {
	for name, flags := range map[string][]string{
		`nodeTasks="proxy"`: nil, "": {"-node-tasks=driver"},
	} {
		t.Run("tasks "+strings.Join(flags, ""), func(t *testing.T) {
			l := open(t)
			bed.Start(t, "-host=windows").WaitReady(t)
			d := l.cloudDriver(pipeEndpoint(), append(flags, "-host=auto")...)
			d.says(`host="proxy"`, "this is no HostProcess container")
			d.liveOnDisk()
			d.says(name)
		})
	}
}

// The same in a HostProcess pod: the driver works on the machine itself, without
// csi-proxy, and is reached by TCP on the loopback.
func TestC093_LifeOfADiskInProcess(t *testing.T) {
	l := open(t)
	t.Setenv("CONTAINER_SANDBOX_MOUNT_POINT", l.folder)
	d := l.cloudDriver("tcp://"+freeport.Address(t), "-cloud-dir=cloud")
	d.says(`host="local"`, "CONTAINER_SANDBOX_MOUNT_POINT is set")
	d.liveOnDisk()
	if _, err := os.Stat(filepath.Join(l.folder, "cloud")); err != nil {
		t.Errorf("a relative path is not below the container's folder: %v", err)
	}
}

// cloudDriver is a driver of the cloud with one node, this one.
func (l *lab) cloudDriver(endpoint string, flags ...string) *driver {
	l.Helper()
	return l.drive(endpoint, append([]string{
		"-driver=simcloud", "-cloud-dir=" + filepath.Join(l.folder, "cloud"), "-cloud-node=" + nodeName + "=" + l.Address, "-cloud-control=" + l.Address,
	}, flags...)...)
}

// disk is the one disk of the node, as the node sees it.
func (d *driver) disk() sim.DiskStatus {
	d.Helper()
	disks, err := d.Control.Disks(d.Context())
	d.OK(err)
	var found []sim.DiskStatus
	for _, disk := range disks {
		if !disk.System {
			found = append(found, disk)
		}
	}
	if len(found) != 1 {
		d.Fatalf("the node has %d disks, want 1", len(found))
	}
	return found[0]
}

// liveOnDisk plays the life of a volume, from CreateVolume to DeleteVolume.
func (d *driver) liveOnDisk() {
	d.Helper()
	created := ok(d, d.controller.CreateVolume, &csi.CreateVolumeRequest{
		Name: "pvc-1", CapacityRange: &csi.CapacityRange{RequiredBytes: gib}, VolumeCapabilities: []*csi.VolumeCapability{writer()},
	}).GetVolume()
	v := volume{id: created.GetVolumeId(), context: created.GetVolumeContext()}
	v.publish = ok(d, d.controller.ControllerPublishVolume, &csi.ControllerPublishVolumeRequest{
		VolumeId: v.id, NodeId: nodeName, VolumeCapability: writer(), VolumeContext: v.context,
	}).GetPublishContext()
	if disk := d.disk(); disk.Style != "RAW" || disk.SizeBytes != gib {
		d.Errorf("the attached disk is %+v", disk)
	}
	d.begin(v)
	if disk := d.disk(); disk.Style != "GPT" || disk.Offline || disk.ReadOnly || len(disk.Volumes) != 1 {
		d.Errorf("the staged disk is %+v", disk)
	}
	if total := d.totalBytes(v); total < 9*gib/10 || total > gib {
		d.Errorf("%d bytes before the expansion", total)
	}

	larger := &csi.CapacityRange{RequiredBytes: 2 * gib}
	ok(d, d.controller.ControllerExpandVolume, &csi.ControllerExpandVolumeRequest{VolumeId: v.id, CapacityRange: larger, VolumeCapability: writer()})
	ok(d, d.node.NodeExpandVolume, &csi.NodeExpandVolumeRequest{
		VolumeId: v.id, VolumePath: d.target, StagingTargetPath: d.staging, CapacityRange: larger, VolumeCapability: writer(),
	})
	if total := d.totalBytes(v); total < 19*gib/10 || total > 2*gib {
		d.Errorf("%d bytes after the expansion", total)
	}
	d.end(v)

	// What was written is there at the next stage.
	ok(d, d.node.NodeStageVolume, d.stageRequest(v))
	if data, err := d.Control.ReadFile(d.Context(), d.staging+`\file`); err != nil || string(data) != "data" {
		d.Errorf("staged again, and the file holds %q, %v", data, err)
	}
	ok(d, d.node.NodeUnstageVolume, &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: d.staging})
	ok(d, d.controller.ControllerUnpublishVolume, &csi.ControllerUnpublishVolumeRequest{VolumeId: v.id, NodeId: nodeName})
	if disks, err := d.Control.Disks(d.Context()); err != nil || len(disks) > 1 { // one has the system
		d.Errorf("the detached disk is still there: %+v, %v", disks, err)
	}
	ok(d, d.controller.DeleteVolume, &csi.DeleteVolumeRequest{VolumeId: v.id})
	if list := ok(d, d.controller.ListVolumes, &csi.ListVolumesRequest{}); len(list.GetEntries()) > 0 {
		d.Errorf("volumes are left: %v", list)
	}
}

// The life of a unit of a pool, with CHAP; a wrong secret is refused and no secret is
// in a log or in the records.
func TestC050_LifeOfAUnitOverPipes(t *testing.T) {
	const iqn, portal, size = "iqn.2026-01.example:pool", "192.0.2.1:3260", 256 << 20
	l := open(t)
	l.OK(l.Control.SetISCSITarget(t.Context(), sim.ISCSITarget{
		IQN: iqn, Portals: []string{portal}, LUNs: []sim.DiskSpec{{Image: "unit", SizeBytes: size}}, ChapUser: "u", ChapSecret: "MARKER-secret",
	}))
	pool := filepath.Join(l.folder, "pool.yaml")
	l.OK(os.WriteFile(pool, fmt.Appendf(nil, "units:\n- {iqn: '%s', lun: 0, portals: ['%s'], sizeBytes: %d}\n", iqn, portal, size), 0o600))
	proxy := bed.Start(t, "-host=windows")
	proxy.WaitReady(t)
	d := l.drive(pipeEndpoint(), "-driver=iscsi", "-host=proxy", "-iscsi-pool-file="+pool, "-iscsi-state-dir="+filepath.Join(l.folder, "state"), "-v=4")

	created := ok(d, d.controller.CreateVolume, &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: []*csi.VolumeCapability{writer()}}).GetVolume()
	v := volume{id: created.GetVolumeId(), context: created.GetVolumeContext()}
	v.secrets = map[string]string{"node.session.auth.username": "u", "node.session.auth.password": "MARKER-wrong!"}
	if _, err := d.node.NodeStageVolume(t.Context(), d.stageRequest(v)); status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), "MARKER") {
		t.Errorf("a wrong secret: %v", err)
	}
	v.secrets["node.session.auth.password"] = "MARKER-secret"
	d.begin(v)
	if disk := d.disk(); disk.SizeBytes != size || disk.Style != "GPT" {
		t.Errorf("the unit is %+v", disk)
	}
	if total := d.totalBytes(v); total < size*8/10 || total > size {
		t.Errorf("%d bytes", total)
	}
	d.end(v)
	if disks, err := l.Control.Disks(t.Context()); err != nil || len(disks) > 1 {
		t.Errorf("unstaged, and the session is still there: %+v, %v", disks, err)
	}
	ok(d, d.controller.DeleteVolume, &csi.DeleteVolumeRequest{VolumeId: v.id})
	if strings.Contains(d.program.Text()+proxy.Text(), "MARKER") {
		t.Error("a secret is in a log")
	}
}

// The life of a share on a node; its folder was made by somebody else.
func TestLifeOfAShareOverPipes(t *testing.T) {
	l := open(t)
	share := filepath.Join(l.folder, "share")
	l.OK(os.MkdirAll(filepath.Join(share, "volumes", "a"), 0o755))
	l.OK(l.Control.SetSMBServer(t.Context(), sim.SMBServer{
		Name: "files", Users: map[string]string{"tester": "MARKER-secret"}, Shares: []sim.SMBShare{{Name: "share", Folder: share, SizeBytes: 8 * gib}},
	}))
	proxy := bed.Start(t, "-host=windows")
	proxy.WaitReady(t)
	d := l.drive(pipeEndpoint(), "-mode=node", "-driver=smb", "-host=proxy", "-smb-any-source", "-v=4")
	v := volume{id: "smb://files/share/volumes/a", secrets: map[string]string{"username": "tester", "password": "MARKER-wrong!"}}
	if _, err := d.node.NodeStageVolume(t.Context(), d.stageRequest(v)); status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), "MARKER") {
		t.Errorf("a wrong password: %v", err)
	}
	v.secrets["password"] = "MARKER-secret"
	d.begin(v)
	if data, err := os.ReadFile(filepath.Join(share, "volumes", "a", "file")); err != nil || string(data) != "data" {
		t.Errorf("on the server the file holds %q, %v", data, err)
	}
	if total := d.totalBytes(v); total != 8*gib {
		t.Errorf("%d bytes", total)
	}
	d.end(v)
	if data, err := os.ReadFile(filepath.Join(share, "volumes", "a", "file")); err != nil || string(data) != "data" {
		t.Errorf("unstaged, and on the server the file holds %q, %v", data, err)
	}
	if strings.Contains(d.program.Text()+proxy.Text(), "MARKER") {
		t.Error("a secret is in a log")
	}
}
