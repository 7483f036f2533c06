package mounter_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	mount "k8s.io/mount-utils"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// status is a disk as the node has it.
func (l *lab) status(disk string) sim.DiskStatus {
	l.Helper()
	states, err := l.node.Disks(l.Context())
	l.ok(err)
	at := slices.IndexFunc(states, func(d sim.DiskStatus) bool { return strconv.FormatUint(uint64(d.Number), 10) == disk })
	if at < 0 {
		l.Fatalf("no disk %s in %+v", disk, states)
	}
	return states[at]
}

// A read-only mount neither clears the flag that keeps a disk from being written to
// nor formats what is partitioned only.
func TestReadOnlyMountWritesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	full := l.mounted(root + `\rw`)
	l.ok(l.mounter.Unmount(root + `\rw`))
	l.ok(l.host.SetDiskReadOnly(t.Context(), l.status(full).Number, true))
	l.ok(l.mounter.FormatAndMount(full, root+`\ro`, "", []string{"ro"}))
	if !l.status(full).ReadOnly {
		t.Error("the disk can be written to")
	}
	l.ok(l.mounter.Unmount(root + `\ro`))
	l.ok(l.mounter.FormatAndMount(full, root+`\rw`, "", nil))
	if l.status(full).ReadOnly {
		t.Error("a writable mount of a disk that cannot be written to")
	}

	raw := l.disk()
	number := l.status(raw).Number
	l.ok(l.host.SetDiskState(t.Context(), number, true))
	l.ok(l.host.PartitionDisk(t.Context(), number))
	var mountError mount.MountError
	if err := l.mounter.FormatAndMount(raw, root+`\raw`, "", []string{"ro"}); !errors.As(err, &mountError) || mountError.Type != mount.UnformattedReadOnly {
		t.Errorf("a partition without a file system: %v", err)
	}
	ids, err := l.host.ListVolumesOnDisk(t.Context(), number, 0)
	l.ok(err)
	if formatted, err := l.host.IsVolumeFormatted(t.Context(), ids[0]); err != nil || formatted {
		t.Errorf("formatted %v, %v", formatted, err)
	}
}

// Of several volumes none is guessed.
func TestDiskWithTwoVolumesIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, false)
	disk := l.disk()
	l.ok(l.host.SetDiskState(t.Context(), l.status(disk).Number, true))
	rows, err := l.node.Query(t.Context(), cim.NamespaceStorage, "SELECT * FROM MSFT_Disk WHERE Number = "+disk)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	for _, call := range []struct {
		method string
		in     cim.Values
	}{
		{"Initialize", nil},
		{"CreatePartition", cim.Values{"Size": uint64(64 * mib)}},
		{"CreatePartition", cim.Values{"Size": uint64(64 * mib)}},
	} {
		if r, err := l.node.Exec(t.Context(), cim.NamespaceStorage, rows[0].Path, call.method, call.in); err != nil || r.ReturnValue != 0 {
			t.Fatalf("%s: %d, %v", call.method, r.ReturnValue, err)
		}
	}
	for _, options := range [][]string{nil, {"ro"}} {
		l.want(host.KindPrecondition, l.mounter.FormatAndMount(disk, root+`\m`, "", options))
	}
	if exists, err := l.mounter.ExistsPath(root + `\m`); exists || err != nil {
		t.Errorf("something was made at the target: %v, %v", exists, err)
	}
}
