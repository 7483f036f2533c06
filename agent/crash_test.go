package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/sim"
)

// round is one run of an operation on objects of its own.
type round struct {
	do    func() error
	state func() string // what a clean run leaves behind
}

// failingCalls select every call of the node but CloseHandle: when a process
// ends, Windows closes its handles.
var failingCalls = []string{
	"cim.*", "win32.CreateFile", "win32.CreateSymlink", "win32.OpenAt", "win32.Info", "win32.Read*", "win32.De*",
	"win32.F*", "win32.V*", "win32.S*", "win32.Query*", "win32.Running*", "win32.Disk*",
}

// ioError is ERROR_IO_DEVICE.
const ioError = 1117

// dieAfter makes every call after the n-th fail, as if the agent had ended.
func (l *lab) dieAfter(n int) {
	l.Helper()
	seen := 0
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "*", Count: -1, Hook: func() {
		if seen++; seen != n {
			return
		}
		for _, call := range failingCalls {
			l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: call, Count: -1, Win32: ioError}))
		}
	}}))
}

// sweep cuts an operation off at every call it makes, repeats it until it
// succeeds, and wants the end state of a clean run. It also lets every single
// change fail once, after it has taken effect.
func sweep(t *testing.T, l *lab, next func() round) {
	t.Helper()
	clean := next()
	calls := l.callLog(func() { l.ok(clean.do()) })
	want := clean.state()
	nth := map[string]int{}
	for i, call := range calls {
		r := next()
		l.dieAfter(i)
		repeat(l, r, want, fmt.Sprintf("cut off after %d of %d calls (before %s %s)", i, len(calls), call.Name, call.Object))
		nth[call.Name]++
		if !changes(call.Name) {
			continue
		}
		r = next()
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: call.Name, Nth: nth[call.Name], After: true, Win32: ioError}))
		repeat(l, r, want, fmt.Sprintf("answer of %s %s lost", call.Name, call.Object))
	}
	l.noHandles()
}

// changes reports whether a call changes the node, so that losing its answer is
// something else than its failure. Opening is not among them: no Windows loses
// an answer that carries a handle.
func changes(name string) bool {
	switch name {
	case "win32.CreateSymlink", "win32.Delete", "win32.SetVolumeMountPoint", "win32.DeleteVolumeMountPoint", "win32.FlushFileBuffers":
		return true
	default:
		return strings.HasPrefix(name, "cim.Exec")
	}
}

// repeat runs a round into its fault, and again without.
func repeat(l *lab, r round, want, where string) {
	l.Helper()
	_ = r.do()
	l.ok(l.node.ClearFaults(l.ctx))
	l.restartAgent()
	if err := r.do(); err != nil {
		l.Errorf("%s: the repeat fails: %v", where, err)
		return
	}
	if got := r.state(); got != want {
		l.Errorf("%s: the end state is\n%s\nwant\n%s", where, got, want)
	}
}

func TestInvariant4_PartitionDisk(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	last := uint32(0)
	sweep(t, l, func() round {
		if last != 0 {
			l.ok(l.node.DetachDisk(l.ctx, last))
		}
		number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: filepath.Join(t.TempDir(), "d"), SizeBytes: 64 * mib, Bus: "SAS"})
		l.ok(err)
		last = number
		return round{
			do:    func() error { return l.agent.PartitionDisk(l.ctx, number) },
			state: func() string { return l.diskState(number) },
		}
	})
}

func (l *lab) diskState(number uint32) string {
	disks, err := l.node.Disks(l.ctx)
	l.ok(err)
	for _, d := range disks {
		if d.Number == number {
			return fmt.Sprintf("style %s, %d partitions, %d volumes, offline %v, read-only %v", d.Style, d.Partitions, len(d.Volumes), d.Offline, d.ReadOnly)
		}
	}
	return "no disk"
}

// A power cut loses what the disk had not written. Whatever is left of the
// table is taken up or made again, and never taken for somebody's data.
func TestInvariant4_PowerCutInPartitionDisk(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(c *sim.Config, _ *agent.Policy) { c.DiskWriteCache = true })
	want := ""
	for cut := 0; ; cut++ {
		number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: filepath.Join(t.TempDir(), "d"), SizeBytes: 64 * mib, Bus: "SAS"})
		l.ok(err)
		seen, done := 0, false
		l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "*", Count: -1, Hook: func() {
			if seen++; seen == cut {
				done = true
				l.ok(l.node.PowerCut(l.ctx))
			}
		}}))
		err = l.agent.PartitionDisk(l.ctx, number)
		l.ok(l.node.ClearFaults(l.ctx))
		if cut == 0 {
			l.ok(err)
			want = l.diskState(number)
		}
		if cut > 0 && !done {
			break
		}
		if cut > 0 {
			l.ok(l.node.Boot(l.ctx))
			l.restartAgent()
			if err := l.agent.PartitionDisk(l.ctx, number); err != nil {
				t.Errorf("power cut at call %d: %v", cut, err)
			} else if got := l.diskState(number); got != want {
				t.Errorf("power cut at call %d: %s, want %s", cut, got, want)
			}
		}
		l.ok(l.node.DetachDisk(l.ctx, number))
	}
}

func TestInvariant4_FormatVolume(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	last := uint32(0)
	sweep(t, l, func() round {
		if last != 0 {
			l.ok(l.node.DetachDisk(l.ctx, last))
		}
		last = l.disk(64 * mib)
		l.ok(l.os.SetDiskOnline(l.ctx, last, true))
		l.ok(l.os.InitializeDisk(l.ctx, last))
		l.ok(l.os.CreateDataPartition(l.ctx, last))
		ids, err := l.os.VolumeIDs(l.ctx, last, 0)
		l.ok(err)
		return round{
			do: func() error { return l.agent.FormatVolume(l.ctx, ids[0]) },
			state: func() string {
				volume, err := l.os.Volume(l.ctx, ids[0])
				l.ok(err)
				return fmt.Sprintf("%s of %d bytes", volume.FileSystem, volume.SizeBytes)
			},
		}
	})
}

func TestInvariant4_MountAndUnmount(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.formatted(64 * mib)
	mounts := func() string {
		paths, err := l.os.MountPaths(l.ctx, id)
		l.ok(err)
		return strings.ToLower(strings.Join(paths, " "))
	}
	path := root + `\a\b\mount`
	sweep(t, l, func() round {
		l.ok(l.agent.UnmountVolume(l.ctx, id, path))
		l.ok(l.agent.Rmdir(l.ctx, root+`\a`, true))
		return round{do: func() error { return l.agent.MountVolume(l.ctx, id, path) }, state: mounts}
	})
	sweep(t, l, func() round {
		l.ok(l.agent.MountVolume(l.ctx, id, path))
		return round{do: func() error { return l.agent.UnmountVolume(l.ctx, id, path) }, state: mounts}
	})
}

func TestInvariant4_Folders(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	id := l.formatted(64 * mib)
	l.ok(l.agent.MountVolume(l.ctx, id, root+`\kept`))
	l.write(root+`\kept\file`, "kept")
	tree := func() string {
		names, err := l.node.ListDir(l.ctx, root)
		l.ok(err)
		l.holds(root+`\kept\file`, "kept")
		l.exists(root+`\t\a`, len(names) > 1)
		return strings.Join(names, " ")
	}
	sweep(t, l, func() round {
		l.ok(l.agent.Rmdir(l.ctx, root+`\t`, true))
		return round{do: func() error { return l.agent.Mkdir(l.ctx, root+`\t\a\b`) }, state: tree}
	})
	sweep(t, l, func() round {
		l.write(root+`\t\a\file`, "x")
		l.ok(l.agent.CreateSymlink(l.ctx, root+`\kept`, root+`\t\link`))
		l.ok(l.agent.MountVolume(l.ctx, id, root+`\t\mount`))
		return round{do: func() error { return l.agent.Rmdir(l.ctx, root+`\t`, true) }, state: tree}
	})
}

func TestInvariant4_Links(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	folder := l.share()
	l.ok(os.Mkdir(filepath.Join(folder, "sub"), 0o755))
	l.ok(l.agent.Mkdir(l.ctx, root+`\source`))
	links := func() string {
		link, err := l.agent.GetLink(l.ctx, root+`\link`)
		l.ok(err)
		return fmt.Sprint(link, l.mappings())
	}
	sweep(t, l, func() round {
		l.ok(l.agent.Rmdir(l.ctx, root+`\link`, false))
		return round{do: func() error { return l.agent.CreateSymlink(l.ctx, root+`\source`, root+`\link`) }, state: links}
	})
	sweep(t, l, func() round {
		l.ok(l.agent.Rmdir(l.ctx, root+`\link`, false))
		l.ok(l.agent.RemoveSmbGlobalMapping(l.ctx, `\\srv\share`))
		return round{do: func() error {
			return l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share\sub`, root+`\link`, "u", "pw")
		}, state: links}
	})
}

func TestInvariant4_ConnectTarget(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.targets()
	l.ok(l.agent.AddTargetPortal(l.ctx, portal()))
	sessions := func() string {
		sessions, err := l.os.Sessions(l.ctx)
		l.ok(err)
		return fmt.Sprint(len(sessions))
	}
	sweep(t, l, func() round {
		l.ok(l.agent.DisconnectTarget(l.ctx, portal(), iqn1))
		return round{do: func() error { return l.agent.ConnectTarget(l.ctx, portal(), iqn1, chap(secret1)) }, state: sessions}
	})
	sweep(t, l, func() round {
		l.ok(l.agent.ConnectTarget(l.ctx, portal(), iqn1, chap(secret1)))
		return round{do: func() error { return l.agent.DisconnectTarget(l.ctx, portal(), iqn1) }, state: sessions}
	})
}

// An interrupted growth leaves a file system that is smaller than its
// partition; the repeat finishes it.
func TestInvariant4_ResizeVolume(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	last := uint32(0)
	sweep(t, l, func() round {
		if last != 0 {
			l.ok(l.node.DetachDisk(l.ctx, last))
		}
		last = l.disk(64 * mib)
		l.ok(l.agent.PartitionDisk(l.ctx, last))
		id := l.onlyVolume(last)
		l.ok(l.agent.FormatVolume(l.ctx, id))
		l.ok(l.node.GrowDisk(l.ctx, last, 512*mib))
		return round{
			do: func() error { return l.agent.ResizeVolume(l.ctx, id, 0) },
			state: func() string {
				volume, err := l.os.Volume(l.ctx, id)
				l.ok(err)
				return fmt.Sprintf("%d of %d bytes", volume.SizeBytes, volume.PartitionSizeBytes)
			},
		}
	})
}
