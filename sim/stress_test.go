package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// TestManyAtOnce lets everything happen to one node at the same time; the race
// detector and the absence of deadlocks are the proof.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	n := smbNode(t, Config{}, nil)
	ctx := context.Background()
	mapShare(t, n, cim.Values{"RemotePath": `\\srv\open`, "Credential": "u:p"})
	if err := n.MakeLink(ctx, `C:\share`, `\\srv\open`); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	work := []func(i int){
		func(i int) {
			spec := DiskSpec{Image: filepath.Join(dir, fmt.Sprint("d", i%3)), SizeBytes: 64 * mib, Bus: "NVMe"}
			if number, err := n.AttachDisk(ctx, spec); err == nil {
				_ = n.DetachDisk(ctx, number)
			}
		},
		func(int) {
			rows, err := n.Query(ctx, cim.NamespaceStorage, "SELECT ObjectId FROM MSFT_Disk WHERE PartitionStyle = 0")
			if err != nil {
				t.Error(err)
			}
			for _, row := range rows {
				_, _ = n.Exec(ctx, cim.NamespaceStorage, row.Path, "Initialize", nil)
				_, _ = n.Exec(ctx, cim.NamespaceStorage, row.Path, "CreatePartition", cim.Values{"UseMaximumSize": true})
			}
		},
		func(int) {
			rows, err := n.Query(ctx, cim.NamespaceStorage, "SELECT * FROM MSFT_Volume WHERE DriveLetter <> 67")
			if err != nil {
				t.Error(err)
			}
			for _, row := range rows {
				_, _ = n.Exec(ctx, cim.NamespaceStorage, row.Path, "Format", nil)
				_, _ = n.Exec(ctx, cim.NamespaceStorage, row.Path, "Flush", nil)
			}
		},
		func(i int) {
			folder := fmt.Sprintf(`C:\m%d`, i%4)
			_ = n.MakeDir(ctx, folder)
			names, _ := n.FindVolumes(ctx)
			for _, name := range names {
				_ = n.SetVolumeMountPoint(ctx, folder+`\`, name)
				_, _ = n.VolumePathNames(ctx, name)
			}
			_ = n.WriteFile(ctx, folder+`\f`, []byte("x"))
			_ = n.DeleteVolumeMountPoint(ctx, folder+`\`)
		},
		func(int) { _ = n.WriteFile(ctx, `C:\share\f`, []byte("x")) },
		func(i int) {
			h, err := n.CreateFile(ctx, fmt.Sprintf(`\\.\PhysicalDrive%d`, i%3), win32.Open{Access: win32.GenericRead, Share: 3})
			if err != nil {
				return
			}
			_, _ = n.ReadAt(ctx, h, make([]byte, 4096), 0)
			_, _ = n.DeviceIoControl(ctx, h, win32.IoctlDiskGetDriveLayoutEx, nil, make([]byte, 4096))
			if err := n.CloseHandle(h); err != nil {
				t.Error(err)
			}
		},
		func(i int) {
			_ = n.RecordCalls(ctx, i%2 == 0)
			_ = n.AddFault(ctx, Fault{Call: "cim.Query MSFT_Partition", Win32: 5})
			_ = n.ClearFaults(ctx)
			_, _ = n.CallLog(ctx)
		},
	}
	var wg sync.WaitGroup
	for _, do := range work {
		wg.Go(func() {
			for i := range 25 {
				do(i)
			}
		})
	}
	wg.Wait()
	if count, err := n.HandleCount(ctx); err != nil || count != 0 {
		t.Errorf("%d handles left, %v", count, err)
	}
}

// TestProcessKilled opens what a process that never closed its node left behind.
func TestProcessKilled(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{Bus: "NVMe"})
	volume := formatted(t, n, number)
	mount(t, n, `C:\m\`, volume)
	mustWrite(t, n, `C:\m\f`, "not flushed")

	left := t.TempDir()
	if err := os.CopyFS(filepath.Join(left, driveRoots), os.DirFS(filepath.Join(n.config.Dir, driveRoots))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(left, disksFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{stateFile, filesFile} {
		data, err := os.ReadFile(filepath.Join(n.config.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(left, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := CopyMedium(context.Background(), filepath.Join(n.config.Dir, disksFolder, "system.img"), filepath.Join(left, disksFolder, "system.img")); err != nil {
		t.Fatal(err)
	}
	again := openNode(t, Config{Dir: left})
	if got := content(again, `C:\m\f`); got != "not flushed" {
		t.Fatalf("after the kill: %q: the operating system went on, so its cache did", got)
	}
}
