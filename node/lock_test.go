package node_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

// stalled is a host on which formatting waits for its context, as an operation of
// the operating system that hangs.
type stalled struct {
	host.Host
	waits chan struct{}
}

func (s stalled) FormatVolume(ctx context.Context, volumeID string) error {
	s.waits <- struct{}{}
	<-ctx.Done()
	return &host.Error{Op: "FormatVolume", Object: volumeID, Kind: host.KindTimeout, Cause: ctx.Err()}
}

func TestAHungTaskHoldsNoOther(t *testing.T) {
	waits := make(chan struct{}, 1)
	l := newLab(t, func(h host.Host) host.Host { return stalled{h, waits} })
	number, hanging := l.attach()
	ready, source := l.attach()
	l.ok(l.agent.PartitionDisk(l.ctx, ready))
	l.ok(l.agent.FormatVolume(l.ctx, l.disk(ready).Volumes[0]))

	ctx, cancel := context.WithCancel(l.ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.tasks.Stage(ctx, stageRequest(hanging)) }()
	<-waits
	// Another volume goes on.
	l.ok(l.tasks.Stage(l.ctx, node.StageRequest{VolumeID: "volume-2", StagingPath: root + `\plugins\two`, Source: source}))
	// The same volume, the same path and the same disk wait no longer than their callers.
	short, stop := context.WithTimeout(l.ctx, 20*time.Millisecond)
	defer stop()
	l.want(host.KindBusy, l.tasks.Unstage(short, unstageRequest(hanging)))
	l.want(host.KindBusy, l.tasks.Unstage(short, node.UnstageRequest{VolumeID: "other", StagingPath: stagingPath}))
	late, giveUp := context.WithCancel(l.ctx) // it comes to the lock of the disk late
	defer giveUp()
	turnedAway := make(chan error, 1)
	go func() {
		turnedAway <- l.tasks.Stage(late, node.StageRequest{VolumeID: "other", StagingPath: root + `\plugins\x`, Source: hanging})
	}()
	for len(turnedAway) == 0 && !l.tasks.DiskIsWanted(number) {
		time.Sleep(time.Millisecond)
	}
	giveUp()
	l.want(host.KindBusy, <-turnedAway)
	l.ok(second(l.tasks.Info(l.ctx)))
	cancel()
	l.want(host.KindTimeout, <-ended)
	l.ok(l.tasks.Unstage(l.ctx, unstageRequest(hanging)))
}

// watched is a host that fails when two changes meet on one volume.
type watched struct {
	host.Host
	meets  *atomic.Int64
	volume *sync.Map
}

func (w watched) alone(volumeID string, do func() error) error {
	if _, busy := w.volume.LoadOrStore(volumeID, true); busy {
		w.meets.Add(1)
	}
	defer w.volume.Delete(volumeID)
	return do()
}

func (w watched) MountVolume(ctx context.Context, volumeID, path string) error {
	return w.alone(volumeID, func() error { return w.Host.MountVolume(ctx, volumeID, path) })
}

func (w watched) UnmountVolume(ctx context.Context, volumeID, path string) error {
	return w.alone(volumeID, func() error { return w.Host.UnmountVolume(ctx, volumeID, path) })
}

func TestTasksOfOneVolumeNeverMeet(t *testing.T) {
	w := watched{meets: &atomic.Int64{}, volume: &sync.Map{}}
	l := newLab(t, func(h host.Host) host.Host { w.Host = h; return w })
	const volumes, workers = 4, 3
	var group sync.WaitGroup
	errs := make(chan error, volumes*workers)
	for v := range volumes {
		_, source := l.attach()
		stage := node.StageRequest{VolumeID: fmt.Sprint(v), StagingPath: fmt.Sprintf(`%s\plugins\%d`, root, v), Source: source}
		unstage := node.UnstageRequest{VolumeID: stage.VolumeID, StagingPath: stage.StagingPath, Source: source}
		for range workers {
			group.Go(func() {
				for range 3 {
					errs <- errors.Join(l.tasks.Stage(l.ctx, stage), l.tasks.Unstage(l.ctx, unstage))
				}
			})
		}
	}
	go func() { group.Wait(); close(errs) }()
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if n := w.meets.Load(); n > 0 {
		t.Errorf("%d times two tasks met on one volume", n)
	}
	disks, err := l.node.Disks(l.ctx)
	l.ok(err)
	for _, d := range disks {
		if !d.System && !d.Offline {
			t.Errorf("disk %d stays online", d.Number)
		}
	}
	l.clean()
}

// replaced is a csi-proxy that was an official one until it was replaced by ours.
type replaced struct {
	host.Host
	isOurs *atomic.Bool
	asked  *atomic.Int64
}

func (r replaced) ListDisks(ctx context.Context) ([]host.DiskInfo, error) {
	r.asked.Add(1)
	if !r.isOurs.Load() {
		return official(nil).ListDisks(ctx)
	}
	return r.Host.ListDisks(ctx)
}

func TestWhatALackingProxyCannotDoIsAskedOnce(t *testing.T) {
	r := replaced{isOurs: &atomic.Bool{}, asked: &atomic.Int64{}}
	l := newLab(t, func(h host.Host) host.Host { r.Host = h; return r })
	_, source := l.staged()
	l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
	if n := r.asked.Load(); n != 1 {
		t.Errorf("ListDisks was asked %d times", n)
	}
}

func TestAReplacedProxyIsNoticed(t *testing.T) {
	r := replaced{isOurs: &atomic.Bool{}, asked: &atomic.Int64{}}
	l := newLab(t, func(h host.Host) host.Host { r.Host = h; return r })
	tasks, err := node.New(l.host, node.Options{Folder: folder, ForgetAfter: time.Nanosecond})
	l.ok(err)
	_, source := l.protect()
	l.want(host.KindInvalid, tasks.Stage(l.ctx, node.StageRequest{VolumeID: volumeID, StagingPath: "relative", Source: source}))
	l.ok(tasks.Stage(l.ctx, stageRequest(source)))
	before := r.asked.Load()
	r.isOurs.Store(true)
	l.ok(tasks.Stage(l.ctx, stageRequest(source)))
	if n := r.asked.Load(); n != before+1 {
		t.Errorf("ListDisks was asked %d times, want %d", n, before+1)
	}
}

func TestErrorsNameTaskVolumeAndPath(t *testing.T) {
	l := newLab(t, nil)
	_, source := l.attach()
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "cim.Exec MSFT_Volume.Format", ReturnValue: 40001, Count: -1}))
	err := l.tasks.Stage(l.ctx, stageRequest(source))
	var failed *host.Error
	if !errors.As(err, &failed) || failed.Op != "Stage" || failed.Object != volumeID+" at "+stagingPath || failed.Kind != host.KindDenied {
		t.Fatalf("the error is %#v", err)
	}
	var cause *host.Error
	if !errors.As(failed.Cause, &cause) || cause.Op != "FormatVolume" || cause.Kind != failed.Kind {
		t.Errorf("the cause is %#v", failed.Cause)
	}
}

func TestNewChecksItsOptions(t *testing.T) {
	if _, err := node.New(nil, node.Options{}); err == nil {
		t.Error("no host is accepted")
	}
	l := newLab(t, nil)
	if _, err := node.New(l.host, node.Options{CallTimeout: -1}); err == nil {
		t.Error("a negative time is accepted")
	}
}
