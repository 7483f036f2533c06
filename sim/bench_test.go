package sim

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

func benchNode(b *testing.B) *Node {
	b.Helper()
	n, err := Open(context.Background(), Config{Dir: b.TempDir(), ArrivalPolls: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = n.Close() })
	for range 4 {
		if _, err := n.AttachDisk(context.Background(), DiskSpec{Image: filepath.Join(b.TempDir(), "d"), SizeBytes: gib, Bus: "NVMe"}); err != nil {
			b.Fatal(err)
		}
	}
	return n
}

// BenchmarkQueryDisk is one row of MSFT_Disk as the agent asks for it.
func BenchmarkQueryDisk(b *testing.B) {
	n := benchNode(b)
	for b.Loop() {
		rows, err := n.Query(context.Background(), cim.NamespaceStorage,
			"SELECT ObjectId, Number, Size, IsOffline, IsReadOnly, PartitionStyle, BusType FROM MSFT_Disk WHERE Number = 2")
		if err != nil || len(rows) != 1 {
			b.Fatal(rows, err)
		}
	}
}

// BenchmarkDeviceNumber is opening a disk, one IOCTL, and closing it.
func BenchmarkDeviceNumber(b *testing.B) {
	n := benchNode(b)
	out := make([]byte, 12)
	for b.Loop() {
		h, err := n.CreateFile(context.Background(), `\\.\PhysicalDrive2`, win32.Open{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := n.DeviceIoControl(context.Background(), h, win32.IoctlStorageGetDeviceNumber, nil, out); err != nil {
			b.Fatal(err)
		}
		if err := n.CloseHandle(h); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewNode is a new node, opened and closed.
func BenchmarkNewNode(b *testing.B) {
	for b.Loop() {
		n, err := Open(context.Background(), Config{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		if err := n.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAttachDetach is a small disk that comes and goes.
func BenchmarkAttachDetach(b *testing.B) {
	n := benchNode(b)
	spec := DiskSpec{Image: filepath.Join(b.TempDir(), "x"), SizeBytes: gib, Bus: "NVMe"}
	for b.Loop() {
		number, err := n.AttachDisk(context.Background(), spec)
		if err != nil {
			b.Fatal(err)
		}
		if err := n.DetachDisk(context.Background(), number); err != nil {
			b.Fatal(err)
		}
	}
}
