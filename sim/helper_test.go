package sim

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/internal/leaktest"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// openNode opens a node that ends with the test.
func openNode(t *testing.T, config Config) *Node {
	t.Helper()
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	n, err := Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// instant is a node on which devices arrive and services change at once.
func instant(t *testing.T) *Node {
	t.Helper()
	return openNode(t, Config{ArrivalPolls: -1, ServicePolls: -1})
}

func attach(t *testing.T, n *Node, spec DiskSpec) uint32 {
	t.Helper()
	if spec.Image == "" {
		spec.Image = filepath.Join(t.TempDir(), "disk.img")
	}
	if spec.SizeBytes == 0 {
		spec.SizeBytes = 5 * gib
	}
	number, err := n.AttachDisk(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func query(t *testing.T, n *Node, format string, args ...any) []cim.Instance {
	t.Helper()
	rows, err := n.Query(context.Background(), namespaceOf(format), fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func namespaceOf(text string) string {
	switch {
	case strings.Contains(text, "Smb"):
		return cim.NamespaceSMB
	case strings.Contains(text, "Win32_"):
		return cim.NamespaceCIMV2
	}
	return cim.NamespaceStorage
}

// one is query for exactly one row.
func one(t *testing.T, n *Node, format string, args ...any) cim.Instance {
	t.Helper()
	rows := query(t, n, format, args...)
	if len(rows) != 1 {
		t.Fatalf("%s: %d rows, want 1", fmt.Sprintf(format, args...), len(rows))
	}
	return rows[0]
}

func exec(t *testing.T, n *Node, path, method string, in cim.Values) cim.Result {
	t.Helper()
	result, err := n.Exec(context.Background(), namespaceOf(path), path, method, in)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return result
}

// code calls a method and wants a return value.
func code(t *testing.T, n *Node, path, method string, in cim.Values, want uint32) cim.Result {
	t.Helper()
	result := exec(t, n, path, method, in)
	if result.ReturnValue != want {
		t.Fatalf("%s returns %d (0x%X), want %d", method, result.ReturnValue, result.ReturnValue, want)
	}
	return result
}

func diskPath(t *testing.T, n *Node, number uint32) string {
	t.Helper()
	return one(t, n, "SELECT ObjectId FROM MSFT_Disk WHERE Number = %d", number).Path
}

// formatted brings a disk to one NTFS volume and returns the volume's name.
func formatted(t *testing.T, n *Node, number uint32) string {
	t.Helper()
	disk := diskPath(t, n, number)
	code(t, n, disk, "Initialize", cim.Values{"PartitionStyle": uint16(2)}, 0)
	code(t, n, disk, "CreatePartition", cim.Values{"UseMaximumSize": true}, 0)
	volume := dataVolume(t, n, number)
	code(t, n, volume.Path, "Format", cim.Values{"FileSystem": "NTFS"}, 0)
	return volume.Props["Path"].(string)
}

func dataPartition(t *testing.T, n *Node, number uint32) cim.Instance {
	t.Helper()
	return one(t, n, "SELECT * FROM MSFT_Partition WHERE DiskNumber = %d AND PartitionNumber = 2", number)
}

func dataVolume(t *testing.T, n *Node, number uint32) cim.Instance {
	t.Helper()
	return one(t, n, "ASSOCIATORS OF {%s} WHERE AssocClass = MSFT_PartitionToVolume", dataPartition(t, n, number).Path)
}

func mustWrite(t *testing.T, n *Node, path, text string) {
	t.Helper()
	if err := n.WriteFile(context.Background(), path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// content reads a file; a missing one is "".
func content(n *Node, path string) string {
	data, err := n.ReadFile(context.Background(), path)
	if err != nil {
		return ""
	}
	return string(data)
}

func mount(t *testing.T, n *Node, folder, volume string) {
	t.Helper()
	if err := n.MakeDir(context.Background(), strings.TrimSuffix(folder, `\`)); err != nil {
		t.Fatal(err)
	}
	if err := n.SetVolumeMountPoint(context.Background(), folder, volume); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, n *Node, path string, access uint32) win32.Handle {
	t.Helper()
	h, err := n.CreateFile(context.Background(), path, win32.Open{Access: access, Share: win32.ShareRead | win32.ShareWrite})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.CloseHandle(h) })
	return h
}

// wqlText escapes a text for a literal.
func wqlText(s string) string { return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) }
