package sim

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// fuzzNode is a node with one formatted disk.
func fuzzNode(f *testing.F) (n *Node, volume string) {
	f.Helper()
	ctx := context.Background()
	n, err := Open(ctx, Config{Dir: f.TempDir(), ArrivalPolls: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = n.Close() })
	if _, err := n.AttachDisk(ctx, DiskSpec{Image: filepath.Join(f.TempDir(), "d"), SizeBytes: 64 * mib, Bus: "NVMe"}); err != nil {
		f.Fatal(err)
	}
	rows, err := n.Query(ctx, cim.NamespaceStorage, "SELECT ObjectId FROM MSFT_Disk WHERE Number = 1")
	if err != nil {
		f.Fatal(err)
	}
	for _, method := range []string{"Initialize", "CreatePartition"} {
		in := cim.Values{}
		if method == "CreatePartition" {
			in["UseMaximumSize"] = true
		}
		if _, err := n.Exec(ctx, cim.NamespaceStorage, rows[0].Path, method, in); err != nil {
			f.Fatal(err)
		}
	}
	disks, err := n.Disks(ctx)
	if err != nil {
		f.Fatal(err)
	}
	return n, disks[1].Volumes[0]
}

// FuzzIoctl sends any buffer with any control code: no panic, an *win32.Error,
// and never more bytes than the buffer holds.
func FuzzIoctl(f *testing.F) {
	n, volume := fuzzNode(f)
	for code := range n.ioctls {
		f.Add(code, []byte{}, uint16(0), true)
		f.Add(code, make([]byte, 40), uint16(4096), false)
	}
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, code uint32, in []byte, size uint16, onVolume bool) {
		path := `\\.\PhysicalDrive1`
		if onVolume {
			path = volume[:len(volume)-1]
		}
		h, err := n.CreateFile(ctx, path, win32.Open{Access: readWrite, Share: win32.ShareRead | win32.ShareWrite})
		if err != nil {
			return // an earlier input took the disk offline
		}
		defer func() { _ = n.CloseHandle(h) }()
		out := make([]byte, size)
		count, err := n.DeviceIoControl(ctx, h, code, in, out)
		var e *win32.Error
		if count > len(out) || err != nil && !errors.As(err, &e) {
			t.Errorf("0x%X: %d of %d bytes, %v", code, count, len(out), err)
		}
	})
}

// FuzzSession sends any query and any method path.
func FuzzSession(f *testing.F) {
	n, _ := fuzzNode(f)
	for _, text := range []string{
		"SELECT * FROM MSFT_Disk WHERE Number = 1", "ASSOCIATORS OF {MSFT_Disk.ObjectId=\"x\"}", "SELECT Number, Nope FROM MSFT_Disk",
		"MSFT_StorageSetting", "MSFT_StorageSetting=@", `MSFT_iSCSITarget.NodeAddress="a"`,
	} {
		f.Add(text, "UpdateHostStorageCache")
	}
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, text, method string) {
		var e *cim.Error
		if _, err := n.Query(ctx, cim.NamespaceStorage, text); err != nil && !errors.As(err, &e) {
			t.Errorf("query %q: %v", text, err)
		}
		if _, err := n.Exec(ctx, cim.NamespaceStorage, text, method, nil); err != nil && !errors.As(err, &e) {
			t.Errorf("method %q of %q: %v", method, text, err)
		}
	})
}
