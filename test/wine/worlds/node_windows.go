package worlds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

// arrivalTime bounds the wait for a volume after a boot.
const arrivalTime = 30 * time.Second

// The working folder, and the paths below it, that the cases of package upstream use.
const (
	root       = `C:\k`
	mountPath  = root + `\m`
	objectPath = root + `\x`
	linkPath   = root + `\l`
)

// node is the bed in one test.
type node struct {
	*testing.T
	Bed
}

// Context is that of the csi-proxy: calls of one that has died would wait for ever.
func (n *node) Context() context.Context { return n.Ctx }

// on returns the bed for a subtest.
func (n *node) on(t *testing.T) *node { return &node{t, n.Bed} }

// newFolder makes a real folder.
func (n *node) newFolder() string {
	n.Helper()
	folder, err := os.MkdirTemp(n.Folder, "")
	n.ok(err)
	return folder
}

// ok fails the test at once when err is one.
func (n *node) ok(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// reset takes away everything that a case may have left.
func (n *node) reset() {
	n.Helper()
	ctx := n.Context()
	for _, iqn := range []string{tableIQN, otherIQN} {
		_ = n.Control.RemoveISCSITarget(ctx, iqn) // there may be none
	}
	_ = n.Control.RemoveSMBServer(ctx, "srv") // there may be none
	n.Services.SetInitiator(n.T, true)
	portals, err := n.Client.ListTargetPortals(ctx)
	n.ok(err)
	for _, p := range portals {
		n.ok(n.Client.RemoveTargetPortal(ctx, p))
	}
	mappings, err := n.Client.ListSmbGlobalMappings(ctx)
	n.ok(err)
	for _, m := range mappings {
		n.ok(n.Client.RemoveSmbGlobalMapping(ctx, m.RemotePath))
	}
	names, err := n.Control.ListDir(ctx, root)
	n.ok(err)
	for _, name := range names {
		n.ok(n.Client.Rmdir(ctx, root+`\`+name, true))
	}
	disks, err := n.Control.Disks(ctx)
	n.ok(err)
	for _, d := range disks {
		if !d.System {
			n.ok(n.Control.DetachDisk(ctx, d.Number))
		}
	}
	n.Services.SetInitiator(n.T, false)
}

// attach plugs a disk in.
func (n *node) attach(spec sim.DiskSpec) uint32 {
	n.Helper()
	spec.Image = n.NodePath(filepath.Join(n.newFolder(), "disk.img"))
	if spec.SizeBytes == 0 {
		spec.SizeBytes = 64 << 20
	}
	number, err := n.Control.AttachDisk(n.Context(), spec)
	n.ok(err)
	return number
}

// disk is a disk as the node has it.
func (n *node) disk(number uint32) sim.DiskStatus {
	n.Helper()
	disks, err := n.Control.Disks(n.Context())
	n.ok(err)
	i := slices.IndexFunc(disks, func(d sim.DiskStatus) bool { return d.Number == number })
	if i < 0 {
		n.Fatalf("there is no disk %d", number)
	}
	return disks[i]
}

// volume attaches a disk with one raw volume.
func (n *node) volume(sizeBytes int64) (disk uint32, id string) {
	n.Helper()
	disk = n.attach(sim.DiskSpec{SizeBytes: sizeBytes, Bus: "NVMe"})
	n.ok(n.Client.PartitionDisk(n.Context(), disk))
	volumes := n.disk(disk).Volumes
	if len(volumes) != 1 {
		n.Fatalf("volumes of disk %d: %q", disk, volumes)
	}
	return disk, volumes[0]
}

// formatted is volume with a file system.
func (n *node) formatted(sizeBytes int64) (disk uint32, id string) {
	n.Helper()
	disk, id = n.volume(sizeBytes)
	n.ok(n.Client.FormatVolume(n.Context(), id))
	return disk, id
}

// mounted is formatted, mounted at mountPath and with a file on it.
func (n *node) mounted() (disk uint32, id string) {
	n.Helper()
	disk, id = n.formatted(64 << 20)
	n.ok(n.Client.MountVolume(n.Context(), id, mountPath))
	n.write(mountPath+`\f`, "on the volume")
	return disk, id
}

// write writes a file as a program on the node does.
func (n *node) write(path, content string) {
	n.Helper()
	n.ok(n.Control.WriteFile(n.Context(), path, []byte(content)))
}

// holds fails the test unless a file of the node has the content.
func (n *node) holds(path, content string) {
	n.Helper()
	if got, err := n.Control.ReadFile(n.Context(), path); err != nil || string(got) != content {
		n.Errorf("%s holds %q, %v; want %q", path, got, err, content)
	}
}

// has fails the test unless a folder of the node holds just these names.
func (n *node) has(folder string, want ...string) {
	n.Helper()
	names, err := n.Control.ListDir(n.Context(), folder)
	n.ok(err)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		n.Errorf("%s holds %q, want %q", folder, names, want)
	}
}

// inState fails the test unless a service is in a state.
func (n *node) inState(name string, want uint32) {
	n.Helper()
	if have := n.Services.State(n.T, name); have != want {
		n.Errorf("service %s is in state %d, want %d", name, have, want)
	}
}

// powerCycle cuts the power and boots again: what was not flushed is lost. It
// waits until a volume has arrived again.
func (n *node) powerCycle(id string) {
	n.Helper()
	n.ok(n.Control.PowerCut(n.Context()))
	n.ok(n.Control.Boot(n.Context()))
	ctx, cancel := context.WithTimeout(n.Context(), arrivalTime)
	defer cancel()
	for {
		_, err := n.Client.GetVolume(ctx, id)
		if err == nil {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			n.Fatalf("the volume is not back: %v", err)
		}
	}
}

// connectedTargets fails the test unless just these targets have a session.
func (n *node) connectedTargets(want ...string) {
	n.Helper()
	targets, err := n.Client.ListTargets(n.Context())
	n.ok(err)
	have := []string{}
	for _, t := range targets {
		if t.Connected {
			have = append(have, t.IQN)
		}
	}
	if !slices.Equal(have, want) {
		n.Errorf("sessions with %q, want %q", have, want)
	}
}

// portals fails the test unless the initiator knows just these portals.
func (n *node) portals(want ...host.TargetPortal) {
	n.Helper()
	if have, err := n.Client.ListTargetPortals(n.Context()); err != nil || fmt.Sprint(have) != fmt.Sprint(want) {
		n.Errorf("the initiator knows %v, %v; want %v", have, err, want)
	}
}
