package winos_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const noVolume = `\\?\Volume{00000000-1111-2222-3333-444444444444}\`

func TestVolume(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	disk, id := newVolume(t, node, os)
	v, err := os.Volume(t.Context(), id)
	must(t, err)
	want := agent.OSVolume{
		ID: id, DiskNumber: disk, PartitionNumber: 2, FileSystem: "NTFS", ClusterBytes: 4096, Health: host.HealthOK,
		PartitionSizeBytes: v.PartitionSizeBytes, SizeBytes: v.SizeBytes, FreeBytes: v.FreeBytes,
	}
	isTrue(t, v == want, "volume = %+v, want %+v", v, want)
	isTrue(t, 4*gib < v.SizeBytes && v.SizeBytes <= v.PartitionSizeBytes && v.PartitionSizeBytes < 5*gib, "sizes %+v", v)
	volumes, err := os.Volumes(t.Context())
	must(t, err)
	isTrue(t, slices.Contains(volumes, v), "%+v is not in %+v", v, volumes)
	total, free, err := os.VolumeStats(t.Context(), id)
	must(t, err)
	isTrue(t, total == v.SizeBytes && free == v.FreeBytes && free < total, "stats %d, %d of %+v", total, free, v)
	sector := make([]byte, 4096)
	_, err = os.ReadVolume(t.Context(), id, 0, sector)
	must(t, err)
	isTrue(t, strings.HasPrefix(string(sector[3:]), "NTFS"), "boot sector % x", sector[:16])
}

func TestVolumeMissing(t *testing.T) {
	t.Parallel()
	_, os := newNode(t, sim.Config{})
	_, err := os.Volume(t.Context(), noVolume)
	wantKind(t, err, host.KindNotFound)
	_, err = os.VolumeDisk(t.Context(), noVolume)
	wantKind(t, err, host.KindNotFound)
	_, _, err = os.VolumeStats(t.Context(), noVolume)
	wantKind(t, err, host.KindNotFound)
	_, err = os.MountPaths(t.Context(), noVolume)
	wantKind(t, err, host.KindNotFound)
	_, _, err = os.SupportedSizes(t.Context(), noVolume)
	wantKind(t, err, host.KindNotFound)
	wantKind(t, os.FormatVolume(t.Context(), noVolume, host.FormatOptions{}), host.KindNotFound)
	wantKind(t, os.FlushVolume(t.Context(), noVolume), host.KindNotFound)
	wantKind(t, os.ResizeVolume(t.Context(), noVolume, gib), host.KindNotFound)
}

func TestFormatVolume(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	disk := attach(t, node, sim.DiskSpec{Bus: "NVMe"})
	must(t, os.InitializeDisk(t.Context(), disk))
	must(t, os.CreateDataPartition(t.Context(), disk))
	ids, err := os.VolumeIDs(t.Context(), disk, 2)
	must(t, err)
	raw, err := os.Volume(t.Context(), ids[0])
	must(t, err)
	isTrue(t, raw.FileSystem == "" || raw.FileSystem == "RAW", "new volume holds %q", raw.FileSystem)
	_, _, err = os.VolumeStats(t.Context(), ids[0])
	wantKind(t, err, host.KindPrecondition)

	addFault(t, node, sim.Fault{Call: "cim.Exec MSFT_Volume.Format", Count: 2, ReturnValue: 6}) // still looked at
	must(t, os.FormatVolume(t.Context(), ids[0], host.FormatOptions{FileSystem: "refs", ClusterBytes: 65536, Label: "data"}))
	v, err := os.Volume(t.Context(), ids[0])
	must(t, err)
	isTrue(t, v.FileSystem == "ReFS" && v.Label == "data" && v.ClusterBytes == 65536, "volume %+v", v)
	wantKind(t, os.FormatVolume(t.Context(), ids[0], host.FormatOptions{FileSystem: "ext4"}), host.KindUnsupported)
}

func TestFlushVolume(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	disk, id := newVolume(t, node, os)
	made := calls(t, node, func() { must(t, os.FlushVolume(t.Context(), id)) })
	isTrue(t, count(made, "win32.FlushFileBuffers") == 1, "calls %q", made)
	addFault(t, node, sim.Fault{Call: "win32.FlushFileBuffers", Count: 2, Win32: 19})
	wantKind(t, os.FlushVolume(t.Context(), id), host.KindPrecondition)
	must(t, os.SetDiskReadOnly(t.Context(), disk, true))
	must(t, os.FlushVolume(t.Context(), id)) // mounted read-only: nothing to write
}

func TestC013_SupportedSizes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault sim.Fault
	}{
		{"as Windows says", sim.Fault{}},
		{"the service behind it is disabled", sim.Fault{Call: "cim.Exec MSFT_Partition.GetSupportedSize", Count: -1, ReturnValue: 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node, os := newNode(t, sim.Config{})
			disk, id := newVolume(t, node, os)
			before, err := os.Volume(t.Context(), id)
			must(t, err)
			must(t, node.GrowDisk(t.Context(), disk, 9*gib))
			if tt.fault.Call != "" {
				addFault(t, node, tt.fault)
			}
			least, most, err := os.SupportedSizes(t.Context(), id)
			must(t, err)
			isTrue(t, 0 < least && least <= before.PartitionSizeBytes, "smallest size %d of %d", least, before.PartitionSizeBytes)
			isTrue(t, 9*gib-20<<20 < most && most < 9*gib-16<<20, "largest size %d", most)
			must(t, os.ResizeVolume(t.Context(), id, most))
			after, err := os.Volume(t.Context(), id)
			must(t, err)
			isTrue(t, after.PartitionSizeBytes == most && after.SizeBytes > before.SizeBytes+3*gib, "after %+v, before %+v", after, before)
		})
	}
}

func TestC013_NullIsNotZero(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	_, id := newVolume(t, node, os)
	withNull := newOS(nullSizes{node}, node)
	v, err := os.Volume(t.Context(), id)
	must(t, err)
	least, most, err := withNull.SupportedSizes(t.Context(), id)
	must(t, err)
	isTrue(t, least == v.PartitionSizeBytes && most >= least, "sizes %d to %d of %d", least, most, v.PartitionSizeBytes)
}

func TestResizeVolume(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	disk, id := newVolume(t, node, os)
	must(t, node.GrowDisk(t.Context(), disk, 9*gib))
	_, _, err := os.SupportedSizes(t.Context(), id)
	must(t, err)
	wantKind(t, os.ResizeVolume(t.Context(), id, 20*gib), host.KindInvalid)
	addFault(t, node, sim.Fault{Call: "cim.Exec MSFT_Partition.Resize", ReturnValue: 40003})
	must(t, os.ResizeVolume(t.Context(), id, 8*gib))
	v, err := os.Volume(t.Context(), id)
	must(t, err)
	isTrue(t, v.PartitionSizeBytes == 8*gib, "volume %+v", v)
}

// What Windows sees on a volume before and after it is formatted.
func TestVolumeFileSystem(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	disk := attach(t, node, sim.DiskSpec{Bus: "NVMe"})
	must(t, os.InitializeDisk(t.Context(), disk))
	must(t, os.CreateDataPartition(t.Context(), disk))
	ids, err := os.VolumeIDs(t.Context(), disk, 0)
	must(t, err)
	id := ids[0]
	raw, err := os.VolumeFileSystem(t.Context(), id)
	must(t, err)
	must(t, os.FormatVolume(t.Context(), id, host.FormatOptions{FileSystem: "ReFS"}))
	formatted, err := os.VolumeFileSystem(t.Context(), id)
	must(t, err)
	isTrue(t, raw == "" && formatted == "ReFS", "%q before, %q after", raw, formatted)
	_, err = os.VolumeFileSystem(t.Context(), noVolume)
	isTrue(t, host.IsKind(err, host.KindNotFound), "of no volume: %v", err)
}

// Questions that a control code or a volume call answers do not reach WMI.
func TestFewCalls(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	disk, id := newVolume(t, node, os)
	for name, tt := range map[string]struct {
		ask  func() error
		most int
	}{
		"VolumeStats":      {func() error { _, _, err := os.VolumeStats(t.Context(), id); return err }, 1},
		"MountPaths":       {func() error { _, err := os.MountPaths(t.Context(), id); return err }, 1},
		"VolumeFileSystem": {func() error { _, err := os.VolumeFileSystem(t.Context(), id); return err }, 1},
		"VolumeDisk":       {func() error { _, err := os.VolumeDisk(t.Context(), id); return err }, 3},
		"DiskIDs":          {func() error { _, err := os.DiskIDs(t.Context(), disk); return err }, 4},
		"Partitions":       {func() error { _, err := os.Partitions(t.Context(), disk); return err }, 3},
		"FlushVolume":      {func() error { return os.FlushVolume(t.Context(), id) }, 3},
	} {
		made := calls(t, node, func() { must(t, tt.ask()) })
		isTrue(t, len(made) <= tt.most, "%s makes %d calls: %q", name, len(made), made)
		for _, call := range made {
			isTrue(t, !strings.HasPrefix(call, "cim."), "%s asks WMI: %s", name, call)
		}
	}
	for name, ask := range map[string]func() error{
		"Disk":      func() error { _, err := os.Disk(t.Context(), disk); return err },
		"VolumeIDs": func() error { _, err := os.VolumeIDs(t.Context(), disk, 0); return err },
	} {
		made := calls(t, node, func() { must(t, ask()) })
		isTrue(t, len(made) == 1, "%s makes %d calls: %q", name, len(made), made)
	}
}

func TestVolumeOnSeveralDisks(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	_, id := newVolume(t, node, os)
	spanned := newOS(node, spanningAPI{node})
	_, err := spanned.VolumeDisk(t.Context(), id)
	wantKind(t, err, host.KindPrecondition)
}

func TestErrorsKeepTheirCode(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	number := attach(t, node, sim.DiskSpec{Bus: "NVMe"})
	must(t, os.InitializeDisk(t.Context(), number))
	err := os.InitializeDisk(t.Context(), number)
	code, ok := cim.ReturnCode(err)
	isTrue(t, ok && code == 41001 && strings.Contains(err.Error(), "disk already initialized"), "error %v", err)
}

// endlessAPI is a node whose volumes and shares have the space that a server tells.
type endlessAPI struct {
	*sim.Node
	total, free uint64
}

func (a endlessAPI) DiskFreeSpace(context.Context, string) (totalBytes, freeBytes uint64, err error) {
	return a.total, a.free, nil
}

// There are servers that tell 2^63 bytes and more, and such that tell more free bytes,
// those of the medium, than bytes, those of a quota.
func TestSizesAreNeverNegative(t *testing.T) {
	t.Parallel()
	node, _ := newNode(t, sim.Config{})
	for _, test := range []struct {
		total, free         uint64
		wantTotal, wantFree int64
	}{
		{1 << 63, 1<<63 - 1, math.MaxInt64, math.MaxInt64},
		{math.MaxUint64, math.MaxUint64, math.MaxInt64, math.MaxInt64},
		{5, 6, 5, 5},
		{6, 5, 6, 5},
	} {
		os := newOS(node, endlessAPI{node, test.total, test.free})
		for name, ask := range map[string]func(context.Context, string) (int64, int64, error){
			noVolume: os.VolumeStats, `\\srv\share`: os.RemoteStats,
		} {
			total, free, err := ask(t.Context(), name)
			must(t, err)
			isTrue(t, total == test.wantTotal && free == test.wantFree, "%s with %+v: %d, %d", name, test, total, free)
		}
	}
}
