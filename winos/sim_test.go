package winos_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/internal/leaktest"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/cim"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const gib = int64(1) << 30

// fast are bounds that do not slow a test down.
var fast = winos.Options{
	PollInterval: time.Microsecond,
	Retry:        cim.RetryPolicy{FirstDelay: time.Microsecond, LongestDelay: time.Microsecond},
}

// newNode opens a simulated node, and the OS on top of it. When the test ends no
// handle may be open.
func newNode(t *testing.T, config sim.Config) (*sim.Node, *winos.OS) {
	t.Helper()
	config.Dir = t.TempDir()
	node, err := sim.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if open, err := node.HandleCount(t.Context()); open != 0 {
			t.Errorf("%d handles are left open (%v)", open, err)
		}
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	return node, winos.New(node, node, fast)
}

func attach(t *testing.T, node *sim.Node, spec sim.DiskSpec) uint32 {
	t.Helper()
	spec.Image = filepath.Join(t.TempDir(), "disk.img")
	if spec.SizeBytes == 0 {
		spec.SizeBytes = 5 * gib
	}
	number, err := node.AttachDisk(t.Context(), spec)
	must(t, err)
	return number
}

// newVolume makes a disk with one volume of NTFS.
func newVolume(t *testing.T, node *sim.Node, os *winos.OS) (disk uint32, id string) {
	t.Helper()
	disk = attach(t, node, sim.DiskSpec{Bus: "NVMe"})
	must(t, os.InitializeDisk(t.Context(), disk))
	must(t, os.CreateDataPartition(t.Context(), disk))
	ids, err := os.VolumeIDs(t.Context(), disk, 0)
	must(t, err)
	if len(ids) != 1 {
		t.Fatalf("volumes %q, want one", ids)
	}
	must(t, os.FormatVolume(t.Context(), ids[0], host.FormatOptions{}))
	return disk, ids[0]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, kind host.Kind) {
	t.Helper()
	if !host.IsKind(err, kind) {
		t.Errorf("error %v, want kind %v", err, kind)
	}
}

func addFault(t *testing.T, node *sim.Node, fault sim.Fault) {
	t.Helper()
	must(t, node.AddFault(t.Context(), fault))
}

// calls returns the names of the calls that do makes.
func calls(t *testing.T, node *sim.Node, do func()) []string {
	t.Helper()
	must(t, node.RecordCalls(t.Context(), true))
	do()
	log, err := node.CallLog(t.Context())
	must(t, err)
	must(t, node.RecordCalls(t.Context(), false))
	names := make([]string, len(log))
	for i, call := range log {
		names[i] = call.Name
	}
	return names
}

func isTrue(t *testing.T, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// roles are the roles of the partitions in the order of the table.
func roles(partitions []agent.Partition) []agent.PartitionRole {
	all := make([]agent.PartitionRole, len(partitions))
	for i, p := range partitions {
		all[i] = p.Role
	}
	return all
}

func count(list []string, text string) int {
	n := 0
	for _, s := range list {
		if s == text {
			n++
		}
	}
	return n
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
