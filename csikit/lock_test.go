package csikit

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

func cloneOf(name, volume string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{Name: name, VolumeContentSource: &csi.VolumeContentSource{
		Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: volume}},
	}}
}

func restoreOf(name, snapshot string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{Name: name, VolumeContentSource: &csi.VolumeContentSource{
		Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: snapshot}},
	}}
}

// What runs, and what may not begin meanwhile.
func TestCallsThatMeet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		running, second any
		refused         bool
	}{
		{&csi.CreateVolumeRequest{Name: "a"}, &csi.CreateVolumeRequest{Name: "a"}, true},
		{&csi.CreateVolumeRequest{Name: "a"}, &csi.CreateVolumeRequest{Name: "b"}, false},
		{&csi.CreateVolumeRequest{Name: "a"}, &csi.DeleteVolumeRequest{VolumeId: "a"}, false},
		{&csi.CreateVolumeRequest{Name: "a"}, &csi.CreateSnapshotRequest{Name: "a", SourceVolumeId: "v"}, false},
		{&csi.DeleteVolumeRequest{VolumeId: "a"}, &csi.ControllerPublishVolumeRequest{VolumeId: "a"}, true},
		{&csi.ControllerPublishVolumeRequest{VolumeId: "a"}, &csi.ControllerUnpublishVolumeRequest{VolumeId: "a"}, true},
		{&csi.ControllerExpandVolumeRequest{VolumeId: "a"}, &csi.ControllerModifyVolumeRequest{VolumeId: "a"}, true},
		{&csi.ControllerPublishVolumeRequest{VolumeId: "a"}, &csi.NodeStageVolumeRequest{VolumeId: "a"}, false},
		{&csi.NodeStageVolumeRequest{VolumeId: "a"}, &csi.NodeStageVolumeRequest{VolumeId: "a"}, true},
		{&csi.NodeStageVolumeRequest{VolumeId: "a"}, &csi.NodeStageVolumeRequest{VolumeId: "b"}, false},
		{&csi.NodeStageVolumeRequest{VolumeId: "a"}, &csi.NodeUnstageVolumeRequest{VolumeId: "a"}, true},
		{&csi.NodePublishVolumeRequest{VolumeId: "a"}, &csi.NodeUnpublishVolumeRequest{VolumeId: "a"}, true},
		{&csi.NodeExpandVolumeRequest{VolumeId: "a"}, &csi.NodePublishVolumeRequest{VolumeId: "a"}, true},
		{cloneOf("a", "v"), cloneOf("b", "v"), false},
		{cloneOf("a", "v"), &csi.DeleteVolumeRequest{VolumeId: "v"}, true},
		{&csi.DeleteVolumeRequest{VolumeId: "v"}, cloneOf("a", "v"), true},
		{restoreOf("a", "s"), &csi.DeleteSnapshotRequest{SnapshotId: "s"}, true},
		{restoreOf("a", "s"), restoreOf("b", "s"), false},
		{&csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"}, &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "w"}, true},
		{&csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"}, &csi.CreateSnapshotRequest{Name: "t", SourceVolumeId: "v"}, false},
		{&csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"}, &csi.DeleteVolumeRequest{VolumeId: "v"}, true},
		{&csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: []string{"v", "v", "w"}}, &csi.DeleteVolumeRequest{VolumeId: "w"}, true},
		{&csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: []string{"v"}}, &csi.CreateVolumeGroupSnapshotRequest{Name: "g"}, true},
		{&csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: "g", SnapshotIds: []string{"s", "s"}}, &csi.DeleteSnapshotRequest{SnapshotId: "s"}, true},
		{&csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: "g"}, &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: "g"}, true},
		{&csi.DeleteVolumeRequest{VolumeId: "a"}, &csi.ControllerGetVolumeRequest{VolumeId: "a"}, false},
		{&csi.NodeStageVolumeRequest{VolumeId: "a"}, &csi.NodeGetVolumeStatsRequest{VolumeId: "a"}, false},
		{&csi.DeleteSnapshotRequest{SnapshotId: "a"}, &csi.GetSnapshotRequest{SnapshotId: "a"}, false},
		{&csi.DeleteVolumeRequest{VolumeId: "a"}, &csi.ValidateVolumeCapabilitiesRequest{VolumeId: "a"}, false},
	} {
		l := newLocks()
		running, second := holdsOf(c.running), holdsOf(c.second)
		if err := l.acquire(running); err != nil {
			t.Errorf("%T %v: %v", c.running, c.running, err)
			continue
		}
		before := fmt.Sprint(l.held)
		err := l.acquire(second)
		switch {
		case c.refused != errors.Is(err, ErrBusy) || !c.refused && err != nil:
			t.Errorf("%T %v during %T %v: %v", c.second, c.second, c.running, c.running, err)
		case err != nil && fmt.Sprint(l.held) != before:
			t.Errorf("a refused call keeps %v", l.held)
		case err != nil && !strings.Contains(err.Error(), "is not finished"):
			t.Errorf("no sentence: %v", err)
		case err == nil:
			l.release(second)
		}
		l.release(running)
		if len(l.held) != 0 {
			t.Errorf("%T and %T leave %v", c.running, c.second, l.held)
		}
	}
}

func TestLocksKeepCallsApart(t *testing.T) {
	t.Parallel()
	l := newLocks()
	var inside [4]int // written without a lock of its own: the race detector looks too
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range 1000 {
				holds := one(volumeObject, fmt.Sprint(i%4))
				if l.acquire(holds) != nil {
					continue
				}
				inside[i%4]++
				if inside[i%4] != 1 {
					t.Error("two calls on one volume")
				}
				inside[i%4]--
				l.release(holds)
			}
		})
	}
	all.Wait()
	if len(l.held) != 0 {
		t.Errorf("left: %v", l.held)
	}
}
