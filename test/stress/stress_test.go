package stress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

const (
	volumeCount = 64
	// lifeTime bounds the life of one volume, with all its repeats.
	lifeTime = 3 * time.Minute
	// longestPatience is the longest time after which a call is cancelled at random.
	longestPatience = 400 * time.Millisecond
)

// call makes one CSI call with a context.
type call func(ctx context.Context) error

// volume is one volume as a kubelet sees it.
type volume struct {
	*stack
	id     string
	random *rand.Rand
	// cancelled counts calls that were given up.
	cancelled int
}

func (v *volume) staging() string {
	return root + `\plugins\kubernetes.io\csi\stress.example.org\` + v.id + `\globalmount`
}

func (v *volume) target() string {
	return root + `\pods\` + v.id + `\volumes\kubernetes.io~csi\pv\mount`
}

func capability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

func (v *volume) stage(ctx context.Context) error {
	_, err := v.calls.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging(), VolumeCapability: capability()})
	return err
}

func (v *volume) publish(ctx context.Context) error {
	_, err := v.calls.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: v.id, StagingTargetPath: v.staging(), TargetPath: v.target(), VolumeCapability: capability(),
	})
	return err
}

func (v *volume) unpublish(ctx context.Context) error {
	_, err := v.calls.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target()})
	return err
}

func (v *volume) unstage(ctx context.Context) error {
	_, err := v.calls.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging()})
	return err
}

// untilDone repeats a call as a kubelet does; every other try is cancelled after a
// random time.
func (v *volume) untilDone(ctx context.Context, what string, do call) error {
	for {
		patience := lifeTime
		if v.random.IntN(2) == 0 {
			patience = time.Duration(v.random.Int64N(int64(longestPatience)))
		}
		try, cancel := context.WithTimeout(ctx, patience)
		err := do(try)
		cancel()
		switch status.Code(err) {
		case codes.OK:
			return nil
		case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable:
			v.cancelled++
		default:
			return fmt.Errorf("%s %s: %w", what, v.id, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s %s: not done in time: %w", what, v.id, err)
		}
		time.Sleep(time.Duration(v.random.Int64N(int64(20 * time.Millisecond))))
	}
}

// up stages and publishes a volume and writes to it.
func (v *volume) up(ctx context.Context) error {
	if err := v.untilDone(ctx, "stage", v.stage); err != nil {
		return err
	}
	if err := v.untilDone(ctx, "publish", v.publish); err != nil {
		return err
	}
	return v.node.WriteFile(ctx, v.target()+`\file`, []byte(v.id))
}

// down checks what was written and takes the volume away.
func (v *volume) down(ctx context.Context) error {
	data, err := v.node.ReadFile(ctx, v.target()+`\file`)
	if err != nil || string(data) != v.id {
		return fmt.Errorf("%s holds %q (%v)", v.id, data, err)
	}
	if err := v.untilDone(ctx, "unpublish", v.unpublish); err != nil {
		return err
	}
	return v.untilDone(ctx, "unstage", v.unstage)
}

// volumes are all volumes of a stack.
func (s *stack) volumes(seed uint64) []*volume {
	all := []*volume{}
	for i := range len(s.sources) {
		all = append(all, &volume{stack: s, id: fmt.Sprintf("volume-%d", i), random: rand.New(rand.NewPCG(seed, uint64(i)))})
	}
	return all
}

// together does something for many volumes at once.
func together(t *testing.T, volumes []*volume, do func(*volume, context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lifeTime)
	defer cancel()
	var wait sync.WaitGroup
	for _, v := range volumes {
		wait.Go(func() {
			if err := do(v, ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

// 64 volumes of every kind come and go at once, while calls are cancelled at
// random. No two tasks of one volume interleave, and in the end nothing is left.
func TestManyVolumesAtOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	s := newStack(t, volumeCount)
	volumes := s.volumes(seed)
	together(t, volumes, (*volume).up)
	together(t, volumes, (*volume).down)
	cancelled := 0
	for _, v := range volumes {
		cancelled += v.cancelled
	}
	if cancelled == 0 {
		t.Error("no call was cancelled: the test shows nothing")
	}
	t.Log("calls given up:", cancelled)
	if wrong := s.order.faults(); len(wrong) > 0 {
		t.Errorf("tasks of one volume interleave: %d times, at first %s", len(wrong), wrong[0])
	}
	s.mustBeEmpty()
}

// mustBeEmpty checks that nothing of any volume is left on the node.
func (s *stack) mustBeEmpty() {
	s.Helper()
	ctx := s.Context()
	open := func() int {
		n, err := s.node.HandleCount(ctx)
		s.ok(err)
		return n
	}
	// The agent of a call that was cancelled may still be at work, and have something open.
	for end := time.Now().Add(30 * time.Second); (s.agent.HungCalls() > 0 || open() > 0) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	disks, err := s.node.Disks(ctx)
	s.ok(err)
	for _, d := range disks {
		if !d.System && !d.Offline {
			s.Errorf("disk %d is online", d.Number)
		}
	}
	mappings, err := s.os.SMBMappings(ctx)
	s.ok(err)
	sessions, err := s.os.Sessions(ctx)
	s.ok(err)
	handles := open()
	if len(mappings) > 0 || len(sessions) > 0 || handles > 0 || s.agent.HungCalls() > 0 {
		s.Errorf("%d mappings, %d sessions, %d handles, %d hung calls are left", len(mappings), len(sessions), handles, s.agent.HungCalls())
	}
	if left := s.links(root); len(left) > 0 {
		s.Errorf("left below %s: %q", root, left)
	}
}

// links are the files of the volumes, and the holds, that can still be seen.
func (s *stack) links(path string) []string {
	s.Helper()
	names, err := s.node.ListDir(s.Context(), path)
	if err != nil {
		return []string{path}
	}
	var found []string
	for _, name := range names {
		found = append(found, s.links(path+`\`+name)...)
	}
	if strings.Contains(path, `\users\`) || strings.HasSuffix(path, `\pv\mount`) {
		found = append(found, path)
	}
	return found
}

// A volume whose disk does not answer holds up no other one.
func TestNoVolumeWaitsForAnother(t *testing.T) {
	s := newStack(t, volumeCount/2)
	volumes := s.volumes(1)
	stuck, others := volumes[0], volumes[1:]
	entered := make(chan struct{})
	s.ok(s.node.AddFault(t.Context(), sim.Fault{Call: "cim.Exec*Format*", Count: 1, Hang: true, Hook: func() { close(entered) }}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- stuck.stage(ctx) }()
	select {
	case <-entered:
	case err := <-ended:
		t.Fatalf("the stuck volume: %v", err)
	}
	cancel() // its caller gives up while it hangs, and not before
	if code := status.Code(<-ended); code != codes.Canceled {
		t.Fatalf("the stuck volume: %v", code)
	}
	together(t, others, (*volume).up)
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	err := stuck.stage(ctx)
	cancel()
	if code := status.Code(err); code != codes.Aborted && code != codes.DeadlineExceeded {
		t.Errorf("the stuck volume, again: %v", err)
	}
	s.ok(s.node.ClearFaults(t.Context()))
	together(t, volumes[:1], (*volume).up)
	together(t, volumes, (*volume).down)
	s.mustBeEmpty()
}

var _ host.Host = watchedHost{}
