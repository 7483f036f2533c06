package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/internal/leaktest"
	"github.com/csi-windows/csi-windows/sim"
)

// The environment of a child that lives the life until it is to die.
const (
	crashDirEnv  = "CLOUD_TEST_CRASH_DIR"
	crashStepEnv = "CLOUD_TEST_CRASH_STEP"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		if err := crashChild(dir, os.Getenv(crashStepEnv)); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	leaktest.Main(m)
}

// crashTest is a cloud and a node that takes its disks.
type crashTest struct {
	c *Cloud
	n *sim.Node
}

func openCrash(dir string, step func(string)) (crashTest, error) {
	c, err := open(filepath.Join(dir, "cloud"), step)
	if err != nil {
		return crashTest{}, err
	}
	n, err := sim.Open(ctx, sim.Config{Dir: filepath.Join(dir, "node"), ArrivalPolls: -1})
	if err != nil {
		return crashTest{}, errors.Join(err, c.Close())
	}
	return crashTest{c, n}, nil
}

func (x crashTest) close() error { return errors.Join(x.n.Close(), x.c.Close()) }

// crashChild lives the life and kills itself at a step. It tells which part of the
// life it begins.
func crashChild(dir, at string) error {
	last, err := strconv.Atoi(at)
	if err != nil {
		return err
	}
	steps := 0
	x, err := openCrash(dir, func(string) {
		if steps++; steps != last {
			return
		}
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {}
	})
	if err != nil {
		return err
	}
	for i, part := range crashLife() {
		fmt.Println("part", i)
		if err := part(x); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	return x.close()
}

// crashLife is what is done with a cloud, one call a part. A caller whose call was
// cut short makes it again.
func crashLife() []func(crashTest) error {
	id := func(x crashTest, name string) string {
		d, _ := x.c.DiskNamed(ctx, name) // "" fails where it is used
		return d.ID
	}
	made := func(r CreateRequest, source string) func(crashTest) error {
		return func(x crashTest) error {
			if r.Source = id(x, source); source == "" {
				r.Source = ""
			}
			_, err := x.c.CreateDisk(ctx, r)
			return err
		}
	}
	return []func(crashTest) error{
		func(x crashTest) error {
			return x.c.SetZones(ctx, []Zone{{Name: DefaultZone}, {Name: "z", CapacityBytes: 1 << 40}})
		},
		made(CreateRequest{Name: "a", SizeBytes: 64 << 20}, ""),
		func(x crashTest) error { return writeAt(x.c.Image(id(x, "a")), 1<<20, "marked") },
		func(x crashTest) error { _, err := x.c.AttachDisk(ctx, id(x, "a"), "n", x.n); return err },
		made(CreateRequest{Name: "b", SizeBytes: 128 << 20, Zone: "z"}, "a"),
		func(x crashTest) error { _, err := x.c.SnapshotDisk(ctx, id(x, "a"), "s"); return err },
		func(x crashTest) error {
			_, err := x.c.SnapshotGroup(ctx, []string{id(x, "b"), id(x, "a")}, "kept")
			return err
		},
		func(x crashTest) error {
			_, err := x.c.SnapshotGroup(ctx, []string{id(x, "a"), id(x, "b")}, "gone")
			return err
		},
		func(x crashTest) error { _, err := x.c.GrowDisk(ctx, id(x, "a"), 96<<20); return err },
		func(x crashTest) error {
			_, err := x.c.ModifyDisk(ctx, id(x, "a"), Properties{Tier: TierPremium, IOPS: 9000})
			return err
		},
		func(x crashTest) error {
			return x.c.SetConditions(ctx, id(x, "b"), Condition{Status: StatusDegraded, Reason: "Slow"})
		},
		func(x crashTest) error { return x.c.DetachDisk(ctx, id(x, "a"), "n", x.n) },
		func(x crashTest) error { g, _ := x.c.GroupNamed(ctx, "gone"); return x.c.DeleteGroup(ctx, g.ID) },
		func(x crashTest) error {
			s, _ := x.c.SnapshotNamed(ctx, "s")
			_, err := x.c.CreateDisk(ctx, CreateRequest{Name: "c", Source: s.ID})
			return err
		},
		func(x crashTest) error { s, _ := x.c.SnapshotNamed(ctx, "s"); return x.c.DeleteSnapshot(ctx, s.ID) },
		func(x crashTest) error { return x.c.DeleteDisk(ctx, id(x, "b")) },
	}
}

func writeAt(path string, at int64, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(text), at)
	return errors.Join(err, file.Close())
}

// picture is all a cloud and its node hold, without the names that differ from
// one run to the next. It fails for what is half made.
func picture(t *testing.T, x crashTest) string {
	t.Helper()
	var lines []string
	names := map[string]string{}
	for kind, all := range map[string][]Disk{disksFolder: x.c.Disks(ctx), snapshotsFolder: x.c.Snapshots(ctx)} {
		for _, d := range all {
			info, err := os.Stat(x.c.imageOf(kind, d.ID))
			if err != nil || info.Size() != d.SizeBytes {
				t.Fatalf("%s %q is half made: %v", kind, d.Name, err)
			}
			data := make([]byte, 6)
			file, err := os.Open(x.c.imageOf(kind, d.ID))
			if err == nil {
				_, err = file.ReadAt(data, 1<<20)
				_ = file.Close()
			}
			names[d.ID] = d.Name
			lines = append(lines, fmt.Sprintf("%s %s %d %s at %s %t %+v %v: %q %v", kind, d.Name, d.SizeBytes, d.Zone,
				d.AttachedTo, d.FromSnapshot, d.Properties, d.Conditions, data, err))
		}
		entries, err := os.ReadDir(filepath.Join(x.c.dir, kind))
		if err != nil || len(entries) != len(all) {
			t.Fatalf("%d folders of %d %s, %v", len(entries), len(all), kind, err)
		}
	}
	for _, g := range x.c.groups {
		line := "group " + g.Name
		for _, id := range g.SnapshotIDs {
			s, err := x.c.Snapshot(ctx, id)
			if err != nil || s.GroupID != g.ID {
				t.Fatalf("group %q is half made: %v", g.Name, err)
			}
			line += " " + names[s.Source]
		}
		lines = append(lines, line)
	}
	disks, err := x.n.Disks(ctx)
	lines = append(lines, fmt.Sprint(len(disks), " disks on the node ", err, x.c.Zones(ctx)))
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// finish opens what a dead process left, lives the rest of the life, and pictures it.
func finish(t *testing.T, dir string, from int) string {
	t.Helper()
	x, err := openCrash(dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.close(); err != nil {
			t.Error(err)
		}
	}()
	picture(t, x) // nothing is half made before the call is repeated either
	for i, part := range crashLife()[from:] {
		if err := part(x); err != nil {
			t.Fatalf("part %d again: %v", from+i, err)
		}
	}
	return picture(t, x)
}

// runChild lets a child live until a step and tells the part it was in, or that it
// lived to the end.
func runChild(t *testing.T, dir string, step int) (part int, whole bool) {
	t.Helper()
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	child := exec.CommandContext(limit, os.Args[0])
	child.Env = append(os.Environ(), crashDirEnv+"="+dir, crashStepEnv+"="+strconv.Itoa(step))
	out, err := child.Output()
	part = strings.Count(string(out), "part ") - 1
	if err == nil {
		return part, true
	}
	if strings.Contains(string(out), "child:") || limit.Err() != nil {
		t.Fatalf("step %d: %v\n%s", step, err, out)
	}
	return part, false
}

// The process is killed before every change of the folder, and the call that was
// under way is made again: no disk is lost, none is there twice, none is half made.
func TestC068_KilledAtEveryStep(t *testing.T) {
	t.Parallel()
	want := finish(t, t.TempDir(), 0)
	for step := 1; ; step++ {
		dir := t.TempDir()
		part, whole := runChild(t, dir, step)
		if whole {
			if step < 40 {
				t.Errorf("only %d steps", step-1)
			}
			t.Logf("killed at %d steps of %d calls; each ends as an undisturbed run does:\n%s", step-1, len(crashLife()), want)
			return
		}
		if got := finish(t, dir, max(part, 0)); got != want {
			t.Errorf("killed at step %d, in part %d:\n%s\nwant\n%s", step, part, got, want)
		}
	}
}
