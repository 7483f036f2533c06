package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// twice makes a call two times: the second finds everything done.
func twice(s *stack.Stack, call func() error) {
	s.Helper()
	s.OK(call())
	s.OK(call())
}

// The whole life of a volume of each source over the pipe of the node tasks: every
// task does what it says, also when it is asked a second time, and in the end the node
// is as it was.
func TestNodeTasksOverThePipe(t *testing.T) {
	t.Parallel()
	for name, from := range nodeSources() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stack.New(t)
			source := from.arrange(s)
			c, ctx := s.Client(), s.Context()
			if has, err := c.HasNode(ctx); !has || err != nil {
				t.Fatalf("the stack has node tasks: %t, %v", has, err)
			}
			twice(s, func() error { return c.Stage(ctx, stageRequest(source)) })
			twice(s, func() error { return c.Publish(ctx, publishRequest()) })
			s.WriteFile(targetPath+`\written`, "by the pod")
			s.Holds(stagingPath+`\written`, "by the pod")
			useNodeVolume(s, c, from)
			s.Holds(targetPath+`\written`, "by the pod")
			twice(s, func() error { return c.Unpublish(ctx, unpublishRequest()) })
			twice(s, func() error { return c.Unstage(ctx, unstageRequest(source)) })
			mustBeLetGo(s)
			if source.ISCSI != nil {
				mustHaveSessions(s)
			}
		})
	}
}

// useNodeVolume asks for sizes and health of the published volume, and grows it.
func useNodeVolume(s *stack.Stack, c node.Node, from nodeSource) {
	s.Helper()
	ctx := s.Context()
	before, err := c.Stats(ctx, node.StatsRequest{VolumeID: nodeVolume, Path: targetPath})
	s.OK(err)
	if before.TotalBytes <= 0 || before.UsedBytes < 0 || before.AvailableBytes <= 0 || before.UsedBytes+before.AvailableBytes > before.TotalBytes {
		s.Errorf("sizes are %+v", before)
	}
	health, err := c.Health(ctx, node.HealthRequest{VolumeID: nodeVolume, StagingPath: stagingPath, TargetPath: targetPath})
	if err != nil || len(health.Conditions) > 0 {
		s.Errorf("health of a sound volume: %+v, %v", health, err)
	}
	from.grow(s)
	for range 2 {
		grown, err := c.Expand(ctx, node.ExpandRequest{VolumeID: nodeVolume, Path: targetPath, RequiredBytes: from.capacityBytes})
		if err != nil || grown.CapacityBytes != from.capacityBytes {
			s.Errorf("expanded to %+v, %v; want %d bytes", grown, err, from.capacityBytes)
		}
	}
	after, err := c.Stats(ctx, node.StatsRequest{VolumeID: nodeVolume, Path: stagingPath})
	s.OK(err)
	if grew := after.TotalBytes > before.TotalBytes+nodeDiskBytes/2; grew != (from.capacityBytes > 0) {
		s.Errorf("the file system had %d bytes and has %d", before.TotalBytes, after.TotalBytes)
	}
}

// mustBeLetGo fails the test unless nothing of a volume is left on the node.
func mustBeLetGo(s *stack.Stack) {
	s.Helper()
	if s.Has(stack.Root+`\pods\p\volumes\kubernetes.io~csi\pvc-1`, "mount") {
		s.Error("the target path is still there")
	}
	if names := s.Names(stagingPath); len(names) > 0 {
		s.Errorf("at the staging path there is %q", names)
	}
	if m := s.Mappings(); len(m) > 0 {
		s.Errorf("mappings are left: %q", m)
	}
	disks, err := s.Node.Disks(context.Background())
	s.OK(err)
	for _, d := range disks {
		for _, volume := range d.Volumes {
			for _, path := range s.MountPaths(volume) {
				if strings.HasPrefix(path, stack.Root) {
					s.Errorf("disk %q is still mounted at %s", d.Spec.Serial, path)
				}
			}
		}
		if d.Spec.Serial == " D-1 " && !d.Offline {
			s.Error("the disk is still online, so a detach cannot finish")
		}
	}
}

// The tasks say over the pipe what they say in process, failures included.
func TestNodeTasksAreThoseInProcess(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	c, ctx := s.Client(), s.Context()
	there, err := c.Info(ctx)
	s.OK(err)
	here, err := s.Tasks.Info(ctx)
	s.OK(err)
	if diff := cmp.Diff(here, there); diff != "" {
		t.Errorf("info (-in process +over the pipe):\n%s", diff)
	}
	if there.BIOSSerialNumber == "" || len(there.Lacks) > 0 {
		t.Errorf("our own agent says %+v", there)
	}
	s.Attach(sim.DiskSpec{Serial: "twin"})
	s.Attach(sim.DiskSpec{Serial: "twin"})
	for name, call := range map[string]func(node.Node) error{
		"two disks fit": func(n node.Node) error {
			return n.Stage(ctx, stageRequest(node.Source{Disk: &node.DiskSource{SerialNumber: "twin"}}))
		},
		"no disk fits": func(n node.Node) error {
			return n.Stage(ctx, stageRequest(node.Source{Disk: &node.DiskSource{SerialNumber: "none"}}))
		},
		"no source":      func(n node.Node) error { return n.Stage(ctx, stageRequest(node.Source{})) },
		"nothing staged": func(n node.Node) error { return n.Publish(ctx, publishRequest()) },
		"outside the root": func(n node.Node) error {
			_, err := n.Stats(ctx, node.StatsRequest{VolumeID: "v", Path: `C:\outside`})
			return err
		},
		"no path": func(n node.Node) error { _, err := n.Health(ctx, node.HealthRequest{VolumeID: "v"}); return err },
	} {
		inProcess, overPipe := call(s.Tasks), call(c)
		if inProcess == nil || overPipe == nil || inProcess.Error() != overPipe.Error() {
			t.Errorf("%s: in process %v, over the pipe %v", name, inProcess, overPipe)
		}
	}
}
