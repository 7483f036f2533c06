package winos_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

func TestDisks(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Bus: "SAS", Serial: "  abc ", FriendlyName: "Msft Virtual Disk"})
	disks, err := os.Disks(t.Context())
	must(t, err)
	disk, err := os.Disk(t.Context(), number)
	must(t, err)
	i := slices.IndexFunc(disks, func(d agent.OSDisk) bool { return d.Number == number })
	if i < 0 || disks[i] != disk {
		t.Fatalf("disk %+v is not in %+v", disk, disks)
	}
	want := agent.OSDisk{
		Number: number, HasLocation: true, Location: disk.Location, FriendlyName: "Msft Virtual Disk", BusType: "SAS",
		Style: host.StyleRaw, SizeBytes: 5 * gib, Offline: true, OfflineReason: "Policy", ReadOnly: true,
	}
	isTrue(t, disk == want && disk.Location.LUNID != "", "disk = %+v, want %+v", disk, want)
	_, err = os.Disk(t.Context(), 99)
	wantKind(t, err, host.KindNotFound)
	for _, d := range disks {
		isTrue(t, d.System == (d.Number == 0 && number != 0), "disk %d: system %v", d.Number, d.System)
	}
}

func TestDiskIDs(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Serial: " vol-1 ", IDs: []sim.DeviceID{
		{CodeSet: 2, Type: 1, ID: []byte("Msft    x")}, {CodeSet: 1, Type: 3, ID: []byte{0x60, 0xAB}},
	}})
	none := attach(t, node, sim.DiskSpec{})
	ids, err := os.DiskIDs(t.Context(), number)
	must(t, err)
	isTrue(t, ids == host.DiskIDs{Page83: "60ab", SerialNumber: "vol-1"}, "ids = %+v", ids)
	ids, err = os.DiskIDs(t.Context(), none)
	must(t, err)
	isTrue(t, ids == host.DiskIDs{}, "ids of a disk without any = %+v", ids)
	_, err = os.DiskIDs(t.Context(), 99)
	wantKind(t, err, host.KindNotFound)

	bad := attach(t, node, sim.DiskSpec{Page83: []byte{12, 0, 0, 0, 12, 0, 0, 0, 5, 0, 0, 0}})
	_, err = os.DiskIDs(t.Context(), bad)
	wantKind(t, err, host.KindInternal)
}

// newNode checks that no handle is left.
func TestC006_HandlesAreClosed(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Serial: "x", IDs: []sim.DeviceID{{CodeSet: 1, Type: 3, ID: []byte{1}}}})
	addFault(t, node, sim.Fault{Call: "win32.DeviceIoControl 0x2D1400", Count: -1, Win32: 1117})
	before, err := node.HandleCount(t.Context())
	must(t, err)
	for range 1000 {
		_, err := os.DiskIDs(t.Context(), number)
		wantKind(t, err, host.KindInternal)
	}
	after, err := node.HandleCount(t.Context())
	must(t, err)
	isTrue(t, before == after, "%d handles before, %d after", before, after)
}

func TestC003_PartitionDisk(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Bus: "SAS"})
	must(t, os.SetDiskOnline(t.Context(), number, true))
	must(t, os.SetDiskReadOnly(t.Context(), number, false))
	partitions, err := os.Partitions(t.Context(), number)
	must(t, err)
	isTrue(t, len(partitions) == 0, "raw disk has %+v", partitions)

	must(t, os.InitializeDisk(t.Context(), number))
	wantKind(t, os.InitializeDisk(t.Context(), number), host.KindExists)
	partitions, err = os.Partitions(t.Context(), number)
	must(t, err)
	isTrue(t, slices.Equal(roles(partitions), []agent.PartitionRole{agent.RoleReserved}), "after Initialize %+v", partitions)
	ids, err := os.VolumeIDs(t.Context(), number, 0)
	must(t, err)
	isTrue(t, len(ids) == 0, "the reserved partition has volumes %q", ids)

	must(t, os.CreateDataPartition(t.Context(), number))
	partitions, err = os.Partitions(t.Context(), number)
	must(t, err)
	isTrue(t, slices.Equal(roles(partitions), []agent.PartitionRole{agent.RoleReserved, agent.RoleData}), "after CreatePartition %+v", partitions)
	ids, err = os.VolumeIDs(t.Context(), number, 0)
	must(t, err)
	isTrue(t, len(ids) == 1 && ids[0] != "", "volumes %q, want one as soon as the call returns", ids)
	disk, err := os.VolumeDisk(t.Context(), ids[0])
	must(t, err)
	isTrue(t, disk == number, "volume lies on disk %d, not %d", disk, number)
}

func TestCreateDataPartitionOnMBR(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Bus: "NVMe"})
	rows, err := node.Query(t.Context(), cim.NamespaceStorage, "SELECT ObjectId FROM MSFT_Disk WHERE PartitionStyle = 0")
	must(t, err)
	_, err = node.Exec(t.Context(), cim.NamespaceStorage, rows[0].Path, "Initialize", cim.Values{"PartitionStyle": uint16(1)})
	must(t, err)
	must(t, os.CreateDataPartition(t.Context(), number))
	partitions, err := os.Partitions(t.Context(), number)
	must(t, err)
	isTrue(t, len(partitions) == 1 && partitions[0].Type == "0x07" && partitions[0].Role == agent.RoleData, "partitions %+v", partitions)
}

func TestCreateDataPartitionAgainstOddAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault sim.Fault
	}{
		{"letter in use, the partition was made all the same", sim.Fault{Call: "cim.Exec MSFT_Disk.CreatePartition", After: true, ReturnValue: 42002}},
		{"cache out of date", sim.Fault{Call: "cim.Exec MSFT_Disk.CreatePartition", ReturnValue: 40003}},
		{"WMI too busy", sim.Fault{Call: "cim.Exec MSFT_Disk.CreatePartition", CIM: &cim.Error{HRESULT: cim.ServerTooBusy}}},
		{"WMI restarts under a query", sim.Fault{Call: "cim.Query MSFT_Disk", CIM: &cim.Error{HRESULT: cim.RPCDisconnected}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node, os := newNode(t, sim.Config{})
			number := attach(t, node, sim.DiskSpec{Bus: "NVMe"})
			must(t, os.InitializeDisk(t.Context(), number))
			addFault(t, node, tt.fault)
			must(t, os.CreateDataPartition(t.Context(), number))
			partitions, err := os.Partitions(t.Context(), number)
			must(t, err)
			isTrue(t, len(partitions) == 2, "partitions %+v", partitions)
		})
	}
}

func TestCreateDataPartitionStopsWaiting(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{ArrivalPolls: 1 << 30})
	number := attach(t, node, sim.DiskSpec{Bus: "NVMe"})
	must(t, os.InitializeDisk(t.Context(), number))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	wantKind(t, os.CreateDataPartition(ctx, number), host.KindTimeout)
}

func TestSetDiskState(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Bus: "NVMe"})
	for _, online := range []bool{false, false, true, true} {
		must(t, os.SetDiskOnline(t.Context(), number, online))
		disk, err := os.Disk(t.Context(), number)
		must(t, err)
		isTrue(t, disk.Offline != online, "online %v: disk %+v", online, disk)
	}
	for _, readOnly := range []bool{true, true, false} {
		must(t, os.SetDiskReadOnly(t.Context(), number, readOnly))
		disk, err := os.Disk(t.Context(), number)
		must(t, err)
		isTrue(t, disk.ReadOnly == readOnly, "read-only %v: disk %+v", readOnly, disk)
	}
	wantKind(t, os.SetDiskOnline(t.Context(), 99, true), host.KindNotFound)
	wantKind(t, os.SetDiskReadOnly(t.Context(), 99, true), host.KindNotFound)
	wantKind(t, os.InitializeDisk(t.Context(), 99), host.KindNotFound)
}

// A build that refuses attributes of a raw disk does not stop us.
func TestC001_ReadOnlyOfARawDisk(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Bus: "SAS"})
	must(t, os.SetDiskOnline(t.Context(), number, true))
	addFault(t, node, sim.Fault{Call: "cim.Exec MSFT_Disk.SetAttributes", Count: -1, ReturnValue: 41000})
	must(t, os.SetDiskReadOnly(t.Context(), number, false))
	disk, err := os.Disk(t.Context(), number)
	must(t, err)
	isTrue(t, !disk.ReadOnly, "disk %+v", disk)
	addFault(t, node, sim.Fault{Call: "win32.DeviceIoControl 0x7C0F4", Win32: 5})
	wantKind(t, os.SetDiskReadOnly(t.Context(), number, true), host.KindDenied)
}

func TestReadDisk(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Bus: "NVMe", SizeBytes: gib})
	must(t, node.CorruptDisk(t.Context(), number, gib-4096, []byte("tail")))
	buffer := make([]byte, 8192)
	n, err := os.ReadDisk(t.Context(), number, gib-4096, buffer)
	isTrue(t, err == nil && n == 4096 && string(buffer[:4]) == "tail", "at the end: %d bytes %q, %v", n, buffer[:4], err)
	n, err = os.ReadDisk(t.Context(), number, gib, buffer)
	isTrue(t, err == nil && n == 0, "past the end: %d bytes, %v", n, err)
	addFault(t, node, sim.Fault{Call: "win32.ReadAt", Win32: 1117})
	_, err = os.ReadDisk(t.Context(), number, 0, buffer)
	wantKind(t, err, host.KindInternal)
}

func TestRescan(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Bus: "NVMe"})
	must(t, node.GrowDisk(t.Context(), number, 7*gib))
	must(t, os.Rescan(t.Context()))
	disk, err := os.Disk(t.Context(), number)
	must(t, err)
	isTrue(t, disk.SizeBytes == 7*gib, "size %d after a rescan", disk.SizeBytes)
}

// The two reads a node plugin repeats most do not go through WMI.
func TestDiskStateAndSize(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Bus: "SAS"})
	addFault(t, node, sim.Fault{Call: "cim.*", Count: -1, ReturnValue: 1})
	offline, readOnly, err := os.DiskState(t.Context(), number)
	must(t, err)
	isTrue(t, offline && readOnly, "a fresh shared disk is offline %v, read-only %v", offline, readOnly)
	offline, readOnly, err = os.DiskState(t.Context(), 0)
	must(t, err)
	isTrue(t, !offline && !readOnly, "the system disk is offline %v, read-only %v", offline, readOnly)
	sizeBytes, err := os.DiskSizeBytes(t.Context(), number)
	must(t, err)
	isTrue(t, sizeBytes == 5*gib, "size = %d", sizeBytes)
	_, _, err = os.DiskState(t.Context(), 99)
	wantKind(t, err, host.KindNotFound)
	_, err = os.DiskSizeBytes(t.Context(), 99)
	wantKind(t, err, host.KindNotFound)
}
