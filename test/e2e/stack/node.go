package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// background is for calls to the node that no test bounds.
var background = context.Background()

// Attach plugs a disk in. An image is made when the disk names none.
func (s *Stack) Attach(spec sim.DiskSpec) uint32 {
	s.Helper()
	if spec.Image == "" {
		spec.Image = s.image()
	}
	if spec.SizeBytes == 0 {
		spec.SizeBytes = 64 * MiB
	}
	number, err := s.Node.AttachDisk(background, spec)
	s.OK(err)
	return number
}

// Volume attaches a disk of the size with one empty volume on it.
func (s *Stack) Volume(sizeBytes int64) (disk uint32, id string) {
	s.Helper()
	disk = s.Attach(sim.DiskSpec{SizeBytes: sizeBytes, Bus: "NVMe"})
	s.OK(s.OS.InitializeDisk(background, disk))
	s.OK(s.OS.CreateDataPartition(background, disk))
	volumes := s.Disk(disk).Volumes
	if len(volumes) != 1 {
		s.Fatalf("volumes on disk %d: %q", disk, volumes)
	}
	return disk, volumes[0]
}

// Formatted is Volume with NTFS on it.
func (s *Stack) Formatted(sizeBytes int64) (disk uint32, id string) {
	s.Helper()
	disk, id = s.Volume(sizeBytes)
	s.OK(s.OS.FormatVolume(background, id, host.FormatOptions{FileSystem: "NTFS"}))
	return disk, id
}

// Mounted is Formatted, mounted at a path below the root.
func (s *Stack) Mounted(path string) (disk uint32, id string) {
	s.Helper()
	disk, id = s.Formatted(64 * MiB)
	s.MakeDir(path)
	s.OK(s.Node.SetVolumeMountPoint(background, path+`\`, id))
	return disk, id
}

// Disk is the state of a disk as the node has it.
func (s *Stack) Disk(number uint32) sim.DiskStatus {
	s.Helper()
	disks, err := s.Node.Disks(background)
	s.OK(err)
	for _, d := range disks {
		if d.Number == number {
			return d
		}
	}
	s.Fatalf("there is no disk %d", number)
	return sim.DiskStatus{}
}

// MountPaths are the paths at which the node has a volume mounted.
func (s *Stack) MountPaths(id string) []string {
	s.Helper()
	paths, err := s.Node.VolumePathNames(background, id)
	s.OK(err)
	return paths
}

// MakeDir makes a folder on the node.
func (s *Stack) MakeDir(path string) {
	s.Helper()
	s.OK(s.Node.MakeDir(background, path))
}

// WriteFile writes a file on the node.
func (s *Stack) WriteFile(path, content string) {
	s.Helper()
	s.OK(s.Node.WriteFile(background, path, []byte(content)))
}

// Holds fails the test unless a file of the node has the content.
func (s *Stack) Holds(path, content string) {
	s.Helper()
	if got, err := s.Node.ReadFile(background, path); err != nil || string(got) != content {
		s.Errorf("%s holds %q, %v; want %q", path, got, err, content)
	}
}

// Names are the names in a folder of the node, and nil when there is no such folder.
func (s *Stack) Names(path string) []string {
	s.Helper()
	names, err := s.Node.ListDir(background, path)
	if err != nil {
		return nil
	}
	return names
}

// Has reports whether a folder of the node has a child of the name, whatever it is.
func (s *Stack) Has(folder, name string) bool {
	s.Helper()
	for _, n := range s.Names(folder) {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// Query returns the instances of a WQL query.
func (s *Stack) Query(namespace, text string) []cim.Instance {
	s.Helper()
	instances, err := s.Node.Query(background, namespace, text)
	s.OK(err)
	return instances
}

// Mappings are the remote paths of the node's global mappings.
func (s *Stack) Mappings() []string {
	s.Helper()
	paths := []string{}
	for _, m := range s.Query(cim.NamespaceSMB, "SELECT * FROM MSFT_SmbGlobalMapping") {
		paths = append(paths, fmt.Sprint(m.Props["RemotePath"]))
	}
	return paths
}

// Share puts a file server "srv" with a share "share" on the network, for the user
// and password, and returns the real folder with the share's content.
func (s *Stack) Share(user, password string, change ...func(*sim.SMBServer)) string {
	s.Helper()
	folder := s.TempDir()
	server := sim.SMBServer{Name: "srv", Users: map[string]string{user: password}, Shares: []sim.SMBShare{
		{Name: "share", Folder: folder}, {Name: "other", Folder: s.TempDir()},
	}}
	for _, c := range change {
		c(&server)
	}
	s.OK(s.Node.SetSMBServer(background, server))
	return folder
}

// RealFile writes a file outside the node, for instance in a share's folder.
func (s *Stack) RealFile(content string, path ...string) {
	s.Helper()
	name := filepath.Join(path...)
	s.OK(errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644)))
}

// Calls returns the calls that do makes on the node, "name object" each.
func (s *Stack) Calls(do func()) []string {
	s.Helper()
	s.OK(s.Node.RecordCalls(background, true))
	do()
	log, err := s.Node.CallLog(background)
	s.OK(errors.Join(err, s.Node.RecordCalls(background, false)))
	calls := make([]string, 0, len(log))
	for _, call := range log {
		calls = append(calls, strings.TrimSpace(call.Name+" "+call.Object))
	}
	return calls
}

// Handles is how many handles the node has open.
func (s *Stack) Handles() int {
	s.Helper()
	open, err := s.Node.HandleCount(background)
	s.OK(err)
	return open
}

// Quoted is a text as it stands inside the quotes of a JSON request.
func Quoted(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}
