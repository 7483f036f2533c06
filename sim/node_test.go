package sim

import (
	"context"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestLifeOfADisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := openNode(t, Config{Dir: dir})
	number := attach(t, n, DiskSpec{Bus: "SAS", Serial: "X1"})
	fresh := one(t, n, "SELECT * FROM MSFT_Disk WHERE Number = %d", number)
	if fresh.Props["IsOffline"] != true || fresh.Props["IsReadOnly"] != true || fresh.Props["OfflineReason"] != uint16(1) {
		t.Fatalf("fresh disk on a shared bus: %v", fresh.Props)
	}
	volume := ""
	t.Run("partition and format", func(t *testing.T) {
		code(t, n, fresh.Path, "Initialize", nil, 0)
		code(t, n, fresh.Path, "CreatePartition", map[string]any{"UseMaximumSize": true}, 0)
		partition := dataPartition(t, n, number)
		if partition.Props["Offset"] != uint64(16<<20) {
			t.Fatalf("data partition at %v, want 16 MiB", partition.Props["Offset"])
		}
		found := false
		for range 5 { // the volume arrives later
			rows := query(t, n, "ASSOCIATORS OF {%s} WHERE AssocClass = MSFT_PartitionToVolume", partition.Path)
			if found = len(rows) == 1; found {
				volume = rows[0].Props["Path"].(string)
				code(t, n, rows[0].Path, "Format", nil, 0)
				break
			}
		}
		if !found {
			t.Fatal("volume does not arrive")
		}
		if want := `\\?\Volume` + partition.Props["Guid"].(string) + `\`; volume != want {
			t.Fatalf("volume %s, want %s", volume, want)
		}
	})
	mount(t, n, `C:\mnt\a\`, volume)
	mustWrite(t, n, `C:\mnt\a\dir\file`, "hello")
	if got := content(n, volume+`dir\file`); got != "hello" {
		t.Fatalf("file on the volume: %q", got)
	}
	ctx := context.Background()
	if err := n.DeleteVolumeMountPoint(ctx, `C:\mnt\a\`); err != nil {
		t.Fatal(err)
	}
	if got := content(n, `C:\mnt\a\dir\file`); got != "" {
		t.Fatalf("file without mount: %q", got)
	}
	mount(t, n, `C:\mnt\b\`, volume)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}

	n = openNode(t, Config{Dir: dir})
	if got := content(n, `C:\mnt\b\dir\file`); got != "hello" {
		t.Fatalf("file after restart: %q", got)
	}
	again := one(t, n, "SELECT * FROM MSFT_Disk WHERE Number = %d", number)
	if again.Props["IsOffline"] != false || again.Props["PartitionStyle"] != uint16(2) {
		t.Fatalf("disk after restart: %v", again.Props)
	}
	paths, err := n.VolumePathNames(ctx, volume)
	if err != nil || len(paths) != 1 || paths[0] != `C:\mnt\b\` {
		t.Fatalf("paths %v, %v", paths, err)
	}
}

func TestSecondOwnerIsRefused(t *testing.T) {
	t.Parallel()
	n := instant(t)
	if _, err := Open(context.Background(), Config{Dir: n.config.Dir}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Fatalf("second open: %v", err)
	}
}

func TestMappedDrive(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openNode(t, Config{Drives: map[byte]string{'C': folder, 'E': t.TempDir()}})
	mustWrite(t, n, `C:\var\lib\x`, "1")
	mustWrite(t, n, `E:\y`, "2")
	attributes, err := n.FileAttributes(context.Background(), `C:\var\lib`)
	if err != nil || attributes&win32.AttrDirectory == 0 {
		t.Fatalf("attributes 0x%X, %v", attributes, err)
	}
	if rows := query(t, n, "SELECT DriveLetter FROM MSFT_Volume"); len(rows) != 2 {
		t.Fatalf("%d volumes, want 2", len(rows))
	}
}
