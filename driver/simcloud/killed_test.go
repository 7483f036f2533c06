package simcloud

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

// killDirEnv is the environment of a child that works until it is killed.
const killDirEnv = "SIMCLOUD_TEST_KILL_DIR"

// cluster is a backend with one node that takes its disks, both kept in a folder.
type cluster struct {
	*Backend
	node *sim.Node
	stop func() error
}

func openCluster(dir string) (cluster, error) {
	n, err := sim.Open(ctx, sim.Config{Dir: filepath.Join(dir, "node"), ArrivalPolls: -1})
	if err != nil {
		return cluster{}, err
	}
	b, err := New(Config{
		Dir: filepath.Join(dir, "cloud"), Nodes: []cloud.Node{{Name: "n"}},
		Connect: func(cloud.Node) (sim.DiskController, error) { return insideProcess{n}, nil },
	})
	if err != nil {
		return cluster{}, errors.Join(err, n.Close())
	}
	return cluster{b, n, func() error { return errors.Join(b.Close(), n.Close()) }}, nil
}

// claim makes what is kept for claim i, again and again the same. Of every claim the
// snapshot, the copy and the first disk stay; the first is left detached.
func (c cluster) claim(i int) error {
	name := func(what string) string { return fmt.Sprint(what, i) }
	v, err := c.CreateVolume(ctx, csikit.CreateVolumeRequest{Name: name("v"), Capacity: csikit.CapacityRange{RequiredBytes: 64 << 20}})
	if err != nil {
		return err
	}
	if _, err := c.AttachVolume(ctx, csikit.AttachRequest{VolumeID: v.ID, NodeID: "n"}); err != nil {
		return err
	}
	g, err := c.CreateGroupSnapshot(ctx, csikit.CreateGroupSnapshotRequest{Name: name("g"), SourceVolumeIDs: []string{v.ID}})
	if err != nil {
		return err
	}
	restore := csikit.CreateVolumeRequest{Name: name("r"), Source: &csikit.ContentSource{SnapshotID: g.Snapshots[0].ID}}
	if _, err := c.RestoreSnapshot(ctx, restore); err != nil {
		return err
	}
	if _, err := c.ExpandVolume(ctx, csikit.ExpandRequest{VolumeID: v.ID, Capacity: csikit.CapacityRange{RequiredBytes: 96 << 20}}); err != nil {
		return err
	}
	gone, err := c.CloneVolume(ctx, csikit.CreateVolumeRequest{Name: name("gone"), Source: &csikit.ContentSource{VolumeID: v.ID}})
	if err != nil {
		return err
	}
	return errors.Join(
		c.DetachVolume(ctx, csikit.DetachRequest{VolumeID: v.ID, NodeID: "n"}),
		c.DeleteVolume(ctx, csikit.VolumeRequest{VolumeID: gone.ID}),
	)
}

// killedChild makes one claim after the other and tells each that is done.
func killedChild(dir string) error {
	c, err := openCluster(dir)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := c.claim(i); err != nil {
			return err
		}
		fmt.Println("done", i)
	}
}

// runKilled lets a child work for a time, kills it, and tells how many claims it
// has answered for.
func runKilled(t *testing.T, dir string, after time.Duration) (done int) {
	t.Helper()
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	child := exec.CommandContext(limit, os.Args[0])
	child.Env = append(os.Environ(), killDirEnv+"="+dir)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var i int
		if _, err := fmt.Sscanf(lines.Text(), "done %d", &i); err != nil {
			t.Errorf("child says %q", lines.Text())
			break
		}
		if done = i + 1; done == 1 {
			time.AfterFunc(after, cancel) // SIGKILL
		}
	}
	_ = child.Wait() // it was killed
	return done
}

// The controller is killed at any moment and started again: what it has answered
// for is there, nothing is there twice, and the call that was cut short can be
// repeated.
func TestC068_KilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	total := 0
	for round := range 8 {
		dir := t.TempDir()
		done := runKilled(t, dir, time.Duration(round*37)*time.Millisecond)
		c, err := openCluster(dir)
		must(t, err)
		before := len(c.Cloud().Disks(ctx))
		if before < 2*done || before > 2*done+3 {
			t.Errorf("round %d: %d disks of %d claims", round, before, done)
		}
		for i := range done + 1 {
			must(t, c.claim(i))
		}
		names := map[string]int{}
		for _, d := range c.Cloud().Disks(ctx) {
			names[d.Name]++
			if d.AttachedTo != "" {
				t.Errorf("round %d: disk %s is attached", round, d.Name)
			}
		}
		for i := range done + 1 {
			for _, what := range []string{"v", "r"} {
				if names[fmt.Sprint(what, i)] != 1 {
					t.Errorf("round %d: claim %d has %d disks %s", round, i, names[fmt.Sprint(what, i)], what)
				}
			}
		}
		disks, err := c.node.Disks(ctx)
		if err != nil || len(disks) != 1 || len(names) != 2*(done+1) || len(c.Cloud().Snapshots(ctx)) != done+1 {
			t.Errorf("round %d: %d disks on the node, %v, %d names, %d snapshots of %d claims", round, len(disks), err,
				len(names), len(c.Cloud().Snapshots(ctx)), done+1)
		}
		must(t, c.stop())
		total += done
	}
	t.Logf("killed 8 times, within %d claims", total)
}
