package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// C001: a disk that is offline and read-only comes online and stays as read-only as it
// was found; the flag is cleared by a call of its own, after which a write works. What
// the medium refuses is an error, and the disk is as it was.
func TestC001_WriteProtectedDisk(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	ctx := context.Background()
	disk, id := s.Mounted(mountPath)
	s.OK(s.OS.SetDiskReadOnly(ctx, disk, true))
	s.OK(s.OS.SetDiskOnline(ctx, disk, false))
	request := fmt.Sprintf(`{"disk_number":%d,"is_online":true}`, disk)
	s.Must("disk", "v1", "SetDiskState", request)
	if d := s.Disk(disk); d.Offline || !d.ReadOnly {
		t.Errorf("brought online, the disk is %+v", d)
	}
	if err := s.Node.WriteFile(ctx, mountPath+`\file`, []byte("x")); err == nil {
		t.Error("a read-only disk takes a write")
	}
	c := s.Client()
	for _, failure := range []sim.Fault{
		{Call: "cim.Exec MSFT_Disk.SetAttributes", Count: -1, ReturnValue: 4}, {Call: "cim.Exec MSFT_Disk.SetAttributes", Count: -1, Win32: 5},
	} {
		s.OK(s.Node.AddFault(ctx, failure))
		if err := c.SetDiskReadOnly(ctx, disk, false); err == nil {
			t.Errorf("with %+v the flag was cleared", failure)
		}
		s.OK(s.Node.ClearFaults(ctx))
		if d := s.Disk(disk); !d.ReadOnly {
			t.Errorf("the disk is %+v", d)
		}
	}
	for range 2 {
		s.OK(c.SetDiskReadOnly(ctx, disk, false))
	}
	s.WriteFile(mountPath+`\file`, "x")
	s.Holds(id+"file", "x")
	protected := s.Attach(sim.DiskSpec{Bus: "NVMe", WriteProtected: true})
	if _, err := s.Call("disk", "v1", "PartitionDisk", fmt.Sprintf(`{"disk_number":%d}`, protected)); err == nil || status.Code(err) == codes.Unknown {
		t.Errorf("a medium that cannot be written was partitioned: %v", err)
	}
}

// C004: whatever a device says of itself, the listing goes on, and the identifiers are
// the same in every version.
func TestC004_IdentifiersOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	naa := []byte{0x60, 0x0A, 0x09, 0x80, 0x00, 0xff}
	for _, spec := range []sim.DiskSpec{
		{Serial: "  S-1  ", IDs: []sim.DeviceID{{CodeSet: 2, Type: 1, ID: []byte("Google  persistent-disk-1   ")}}},
		{IDs: []sim.DeviceID{{CodeSet: 1, Type: 3, ID: naa}}},
		{IDs: []sim.DeviceID{{CodeSet: 1, Type: 3, Association: 1, ID: []byte{1, 2}}, {CodeSet: 2, Type: 8, ID: []byte("eui.0025")}, {CodeSet: 1, Type: 3, ID: naa}}},
		{Page83: []byte{}},
		{Page83: []byte("short")},
		{Page83: make([]byte, 4096)},
		{Page83: []byte{16, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 8, 0, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0}},
	} {
		s.Attach(spec)
	}
	for _, version := range []string{"v1beta1", "v1beta2", "v1beta3", "v1"} {
		answer := s.Must("disk", version, "ListDiskIDs", `{}`)
		for disk, want := range map[int]string{1: "persistent-disk-1", 2: "600a098000ff"} {
			if !strings.Contains(answer, want) {
				t.Errorf("%s: disk %d, %q, is not in %s", version, disk, want, answer)
			}
		}
		for disk := range 8 {
			if !strings.Contains(answer, fmt.Sprintf(`"%d":{`, disk)) {
				t.Errorf("%s: disk %d is missing in %s", version, disk, answer)
			}
		}
		if strings.Contains(answer, "  S-1") || strings.Contains(answer, "0102") {
			t.Errorf("%s: blanks around a serial number, or the identifier of a port, in %s", version, answer)
		}
	}
	for range 20 {
		if a, b := s.Must("disk", "v1alpha1", "GetDiskNumberByName", `{"disk_name":"600a098000ff"}`), `{"diskNumber":"2"}`; a != b {
			t.Fatalf("GetDiskNumberByName = %s, want %s", a, b)
		}
	}
}

// C007: two disks with one logical unit number are told apart by their adapter, in
// every version and whatever their order; a disk without an address is not listed.
func TestC007_OneUnitNumberOnTwoAdapters(t *testing.T) {
	t.Parallel()
	place := func(text string) sim.DiskSpec { return sim.DiskSpec{Location: &text} }
	first, second := place("Integrated : Adapter 0 : Port 0 : Target 0 : LUN 1"), place("Integrated : Adapter 1 : Port 0 : Target 0 : LUN 1")
	for _, order := range [][]sim.DiskSpec{{first, second}, {second, first}} {
		s := stack.New(t)
		for _, spec := range append(order, place("PCI Slot 3"), place(""), place("nonsense : LUN")) {
			s.Attach(spec)
		}
		for _, version := range []string{"v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1"} {
			answer := s.Must("disk", version, "ListDiskLocations", `{}`)
			for i, spec := range order {
				want := fmt.Sprintf(`"%d":{"Adapter":"%c","Bus":"0","Target":"0","LUNID":"1"}`, i+1, (*spec.Location)[len("Integrated : Adapter ")])
				if !strings.Contains(answer, want) {
					t.Errorf("%s: %s is not in %s", version, want, answer)
				}
			}
			for _, unlisted := range []string{`"3":`, `"4":`, `"5":`} {
				if strings.Contains(answer, unlisted) {
					t.Errorf("%s: a disk without an address is in %s", version, answer)
				}
			}
		}
	}
}

// C009: taken offline, a disk lets go of its volumes and the cloud can have it; online
// again it is as it was, with the other disks untouched all the while.
func TestC009_OfflineForTheCloud(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	disk, id := s.Mounted(mountPath)
	other, _ := s.Mounted(stack.Root + `\other`)
	s.WriteFile(mountPath+`\file`, "kept")
	unmount := fmt.Sprintf(`{"volume_id":%q,"target_path":%q}`, id, mountPath)
	for range 2 {
		s.Must("volume", "v1", "UnmountVolume", unmount)
		s.Must("disk", "v1beta2", "SetAttachState", fmt.Sprintf(`{"diskID":"%d"}`, disk))
	}
	if d := s.Disk(disk); !d.Offline || len(d.Volumes) > 0 {
		t.Errorf("taken offline, the disk is %+v", d)
	}
	if d := s.Disk(other); d.Offline {
		t.Errorf("the other disk is %+v", d)
	}
	s.Refused(codes.NotFound, "volume", "v1", "MountVolume", unmount)
	spec := s.Disk(disk).Spec
	s.OK(s.Node.DetachDisk(context.Background(), disk)) // what the cloud waits for
	disk = s.Attach(spec)
	s.Must("disk", "v1", "SetDiskState", fmt.Sprintf(`{"disk_number":%d,"is_online":true}`, disk))
	s.Must("volume", "v1", "MountVolume", unmount)
	s.Holds(mountPath+`\file`, "kept")
	s.WriteFile(mountPath+`\file`, "written again")
}

// C010: of two disks that are copies of one another both can be used; the first keeps
// its identity and its content.
func TestC010_CopyOfADiskOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	first, id := s.Formatted(64 * stack.MiB)
	s.WriteFile(id+"file", "original")
	s.Must("volume", "v1", "WriteVolumeCache", fmt.Sprintf(`{"volume_id":%q}`, id))
	image := filepath.Join(t.TempDir(), "copy")
	s.OK(sim.CopyMedium(context.Background(), s.Disk(first).Spec.Image, image))
	before := fmt.Sprint(s.Disk(first), s.ImageSum(first))
	second := s.Attach(sim.DiskSpec{Image: image, Bus: "NVMe", Serial: "COPY"})
	_, err := s.Call("disk", "v1", "SetDiskState", fmt.Sprintf(`{"disk_number":%d,"is_online":true}`, second))
	if after := fmt.Sprint(s.Disk(first), s.ImageSum(first)); after != before {
		t.Errorf("the first disk was %s and is %s", before, after)
	}
	if err != nil {
		text := status.Convert(err).Message()
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(text, fmt.Sprint(first)) || !strings.Contains(text, fmt.Sprint(second)) {
			t.Errorf("%v does not name both disks", err)
		}
		return
	}
	s.OK(s.Client().SetDiskReadOnly(context.Background(), second, false))
	copied := s.Disk(second).Volumes
	if len(copied) != 1 || strings.EqualFold(copied[0], id) {
		t.Fatalf("the volumes of the copy are %q", copied)
	}
	s.Holds(copied[0]+"file", "original")
	s.WriteFile(copied[0]+"file", "changed")
	s.Holds(id+"file", "original")
}

// The product's own client sees the node as csi-proxy's does, additions included.
func TestClientOverTheStack(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	disk, id := s.Mounted(mountPath)
	var h host.Host = s.Client()
	ctx := s.Context()
	mounts, err := h.ListMounts(ctx)
	s.OK(err)
	if !strings.Contains(fmt.Sprint(mounts), strings.ToLower(id)) && !strings.Contains(fmt.Sprint(mounts), id) {
		t.Errorf("mounts are %v", mounts)
	}
	volume, err := h.GetVolume(ctx, id)
	s.OK(err)
	if volume.DiskNumber != disk || volume.FileSystem != "NTFS" {
		t.Errorf("the volume is %+v", volume)
	}
	link, err := h.GetLink(ctx, mountPath)
	s.OK(err)
	if link.Kind != host.LinkMountPoint || !strings.EqualFold(link.Target, id) {
		t.Errorf("the mount point is %+v", link)
	}
	if err := h.Mkdir(ctx, `C:\outside`); !host.IsKind(err, host.KindInvalid) {
		t.Errorf("Mkdir outside: %v", err)
	}
}
