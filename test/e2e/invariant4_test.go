package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/wire"
)

// step is one call of a driver that stages a volume; request is made of what the
// driver has learned so far.
type step struct {
	group, version, method string
	request                func(d *driver) string
}

// driver is what a driver knows while it stages: it finds the disk by its page 0x83
// identifier, as a number does not survive a restart of the node.
type driver struct {
	name, disk, volume string
}

// stageSteps is the way of a volume from an empty disk to a pod, in calls of several
// versions, as drivers of different age would make them.
func stageSteps() []step {
	volume := func(format string) func(*driver) string {
		return func(d *driver) string { return fmt.Sprintf(format, d.volume) }
	}
	disk := func(format string) func(*driver) string {
		return func(d *driver) string { return fmt.Sprintf(format, d.disk) }
	}
	return []step{
		{"disk", "v1beta2", "Rescan", func(*driver) string { return `{}` }},
		{"disk", "v1alpha1", "GetDiskNumberByName", func(d *driver) string { return fmt.Sprintf(`{"disk_name":%q}`, d.name) }},
		{"disk", "v1beta2", "SetAttachState", disk(`{"diskID":%q,"isOnline":true}`)},
		{"disk", "v1", "PartitionDisk", disk(`{"disk_number":%s}`)},
		{"volume", "v1beta1", "ListVolumesOnDisk", disk(`{"disk_id":%q}`)},
		{"volume", "v1", "FormatVolume", volume(`{"volume_id":%q}`)},
		{"filesystem", "v1alpha1", "Mkdir", func(*driver) string { return `{"path":"C:\\k\\plugins"}` }},
		{"volume", "v2alpha1", "MountVolume", volume(`{"volume_id":%q,"target_path":"C:\\k\\plugins\\stage"}`)},
		{"volume", "v1", "ResizeVolume", volume(`{"volume_id":%q}`)},
		{"filesystem", "v1", "Mkdir", func(*driver) string { return `{"path":"C:\\k\\pods"}` }},
		{"filesystem", "v1beta1", "LinkPath", func(*driver) string {
			return `{"source_path":"C:\\k\\plugins\\stage","target_path":"C:\\k\\pods\\volume"}`
		}},
	}
}

// stage makes every step from the first, for the disk of a name; what is done already
// is done again. It ends at the first failure.
func stage(s *stack.Stack, name string) error {
	d := &driver{name: name}
	for _, at := range stageSteps() {
		answer, err := s.Call(at.group, at.version, at.method, at.request(d))
		if err != nil {
			return fmt.Errorf("%s: %w", at.method, err)
		}
		if err := d.learn(at.method, answer); err != nil {
			return err
		}
	}
	return nil
}

// learn keeps what an answer tells.
func (d *driver) learn(method, answer string) error {
	quoted := strings.Split(answer, `"`)
	switch method {
	case "GetDiskNumberByName":
		d.disk = quoted[3]
	case "ListVolumesOnDisk":
		if len(quoted) != 5 {
			return errors.New("the disk has not one volume: " + answer)
		}
		d.volume = strings.ReplaceAll(quoted[3], `\\`, `\`)
	}
	return nil
}

// unstage undoes stage, so that the next round begins with an empty disk.
func unstage(s *stack.Stack, disk uint32) {
	s.Helper()
	s.OK(s.Agent.Rmdir(context.Background(), `C:\k\pods`, true))
	s.OK(s.Agent.Rmdir(context.Background(), `C:\k\plugins`, true))
	s.OK(s.Node.DetachDisk(context.Background(), disk))
}

// stagedState is what the node looks like once a volume is staged.
func stagedState(s *stack.Stack, disk uint32) string {
	s.Helper()
	d := s.Disk(disk)
	state := fmt.Sprint(d.Style, d.Partitions, len(d.Volumes), d.Offline, d.ReadOnly, s.Names(`C:\k`), s.Names(`C:\k\pods`), s.Names(`C:\k\plugins`))
	for _, id := range d.Volumes {
		state += fmt.Sprint(" ", s.MountPaths(id))
	}
	return state
}

// Invariant 4: while a volume is staged, the power is cut after every single call that
// can have changed the node. After the node has booted and the agent runs again, the
// driver begins from the first step and ends where one clean run ends; what it writes
// then is kept.
func TestC021_C022_Invariant4_PowerCutAnywhereWhileStaging(t *testing.T) {
	t.Parallel()
	const shards = 3 // a power cut waits for the disk more than it computes
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			powerCutsWhileStaging(t, shard, shards)
		})
	}
}

func powerCutsWhileStaging(t *testing.T, shard, shards int) {
	s := stack.New(t, func(cfg *stack.Config) {
		cfg.Node.DiskWriteCache = true
		for _, at := range stageSteps() {
			if api := (wire.API{Group: at.group, Version: at.version}); !slices.Contains(cfg.APIs, api) {
				cfg.APIs = append(cfg.APIs, api)
			}
		}
	})
	clean := attachNamed(s, "clean")
	calls := s.Calls(func() { s.OK(stage(s, "clean")) })
	want := stagedState(s, clean)
	unstage(s, clean)
	var cuts []int // the calls before which the power is cut
	for nth := range calls {
		if nth == 0 || mayChange(calls[nth-1]) { // else the node is as it was at the call before
			cuts = append(cuts, nth)
		}
	}
	if len(cuts) < 20 {
		t.Errorf("only %d of %d calls change anything", len(cuts), len(calls))
	}
	for i := shard; i < len(cuts); i += shards {
		nth := cuts[i]
		where := fmt.Sprintf("power cut at call %d of %d (%s)", nth+1, len(calls), calls[nth])
		name := fmt.Sprint("disk", nth)
		disk := attachNamed(s, name)
		s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "*", Nth: nth + 1, Hook: func() { s.OK(s.Node.PowerCut(context.Background())) }}))
		_ = stage(s, name) // fails, unless it was over but for a handle to close
		s.PowerCycle()
		if err := stage(s, name); err != nil {
			t.Fatalf("%s: the repeat fails: %v", where, err)
		}
		if got := stagedState(s, disk); got != want {
			t.Errorf("%s: the node is %s, want %s", where, got, want)
		}
		mustKeep(s, disk)
		unstage(s, disk)
	}
}

// attachNamed attaches a disk the node has never seen, with a page 0x83 identifier.
func attachNamed(s *stack.Stack, name string) uint32 {
	s.Helper()
	return s.Attach(sim.DiskSpec{Bus: "SAS", IDs: []sim.DeviceID{{CodeSet: 2, Type: 8, ID: []byte(name)}}})
}

// mustKeep fails the test unless a file that is written and flushed outlives a power cut.
func mustKeep(s *stack.Stack, disk uint32) {
	s.Helper()
	s.WriteFile(`C:\k\pods\volume\file`, "kept")
	s.Must("volume", "v1", "WriteVolumeCache", fmt.Sprintf(`{"volume_id":%q}`, s.Disk(disk).Volumes[0]))
	s.OK(s.Node.PowerCut(context.Background()))
	s.OK(s.Node.Boot(context.Background()))
	s.Holds(`C:\k\pods\volume\file`, "kept")
}

// mayChange reports whether a call may have changed what a power cut leaves behind.
func mayChange(call string) bool {
	for _, prefix := range []string{
		"cim.Exec", "win32.OpenAt", "win32.CreateSymlink", "win32.SetVolumeMountPoint", "win32.Delete", "win32.FlushFileBuffers",
		"win32.DeviceIoControl 0x9", // those of file systems, FSCTL_SET_REPARSE_POINT among them
	} {
		if strings.HasPrefix(call, prefix) {
			return true
		}
	}
	return false
}
