package e2e_test

import (
	"context"
	"testing"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/wire"
)

// onlyNodePipe is a stack that serves the node tasks and nothing else, and a client
// of it: what a pod has that was given that pipe alone.
func onlyNodePipe(t *testing.T) (*stack.Stack, *client.Client) {
	t.Helper()
	s := stack.New(t, func(cfg *stack.Config) { cfg.APIs = []wire.API{{Group: wire.GroupNode, Version: "v1alpha1"}} })
	return s, s.Client()
}

// refusedAs fails the test unless the error is of the kind.
func refusedAs(s *stack.Stack, what string, err error, kind host.Kind) {
	s.Helper()
	if !host.IsKind(err, kind) {
		s.Errorf("%s: %v, want it refused as %q", what, err, kind)
	}
}

// Invariant 1, from the pipe of the node tasks: no disk with anything on it, and not
// the system disk, is changed by a stage, whatever is asked.
func TestInvariant1_NodeTasksKeepDisksThatHoldData(t *testing.T) {
	t.Parallel()
	s, c := onlyNodePipe(t)
	sums := map[uint32]string{}
	for _, mark := range signatures() {
		sums[foreignDisk(s, mark)] = ""
	}
	for number := range sums {
		sums[number] = s.ImageSum(number)
	}
	system := s.Disk(0)
	for _, fileSystem := range []string{"", "NTFS", "ReFS"} {
		for _, serial := range append([]string{system.Spec.Serial}, serials(signatures())...) {
			request := stageRequest(node.Source{Disk: &node.DiskSource{SerialNumber: serial}})
			request.Grow, request.Format.FileSystem = true, fileSystem
			refusedAs(s, "stage disk "+serial, c.Stage(s.Context(), request), host.KindPrecondition)
		}
	}
	for number, sum := range sums {
		if s.ImageSum(number) != sum {
			t.Errorf("disk %d has been written to", number)
		}
	}
	if now := s.Disk(0); now.Offline || now.ReadOnly {
		t.Errorf("the system disk is %+v", now)
	}
}

func serials(marks []signature) (all []string) {
	for _, mark := range marks {
		all = append(all, mark.name)
	}
	return all
}

// Invariant 2, from the pipe of the node tasks: neither unpublish nor unstage removes
// a file or a folder that holds one, in the working folder or outside it, and what
// another volume's pods use stays in use.
func TestInvariant2_NodeTasksRemoveLinksAndEmptyFoldersOnly(t *testing.T) {
	t.Parallel()
	s, c := onlyNodePipe(t)
	s.Canaries()
	outside := s.Outside()
	_, id := s.Mounted(mountPath)
	s.WriteFile(mountPath+`\file`, "in the volume")
	s.WriteFile(stack.Root+`\folder\file`, "in a folder")
	s.OK(s.Node.MakeLink(context.Background(), stack.Root+`\link`, stack.Root+`\folder`))
	for _, path := range []string{stack.Root + `\folder`, stack.Root + `\folder\file`, `C:\outside`, `C:\canary.txt`, stack.Root} {
		if err := c.Unpublish(s.Context(), node.UnpublishRequest{VolumeID: "v", TargetPath: path}); err == nil {
			t.Errorf("unpublish %s has succeeded", path)
		}
		_ = c.Unstage(s.Context(), node.UnstageRequest{VolumeID: "v", StagingPath: path}) // may find nothing staged
		_, err := c.Stats(s.Context(), node.StatsRequest{VolumeID: "v", Path: path})
		if err == nil {
			t.Errorf("a folder %s has the sizes of a volume", path)
		}
	}
	for _, path := range []string{mountPath, stack.Root + `\folder`} {
		err := c.Publish(s.Context(), node.PublishRequest{VolumeID: "v", StagingPath: mountPath, TargetPath: path})
		if err == nil {
			t.Errorf("published over %s", path)
		}
	}
	s.OK(c.Unpublish(s.Context(), node.UnpublishRequest{VolumeID: "v", TargetPath: stack.Root + `\link`}))
	s.Holds(stack.Root+`\folder\file`, "in a folder")
	s.Holds(mountPath+`\file`, "in the volume")
	if paths := s.MountPaths(id); len(paths) != 1 {
		t.Errorf("the volume is mounted at %q", paths)
	}
	harmless(t, s, outside, "unpublish and unstage")
}

// A disk that is mounted elsewhere stays online when one of its stages ends.
func TestInvariant2_UnstageLeavesADiskThatIsInUse(t *testing.T) {
	t.Parallel()
	s, c := onlyNodePipe(t)
	s.Attach(sim.DiskSpec{Bus: "NVMe", Serial: "D-1"})
	source := node.Source{Disk: &node.DiskSource{SerialNumber: "D-1"}}
	second := node.StageRequest{VolumeID: nodeVolume, StagingPath: stack.Root + `\second`, Source: source}
	s.OK(c.Stage(s.Context(), stageRequest(source)))
	s.OK(c.Stage(s.Context(), second))
	s.WriteFile(second.StagingPath+`\file`, "kept")
	twice(s, func() error { return c.Unstage(s.Context(), unstageRequest(source)) })
	s.Holds(second.StagingPath+`\file`, "kept")
	s.OK(c.Unstage(s.Context(), node.UnstageRequest{VolumeID: nodeVolume, StagingPath: second.StagingPath}))
	mustBeLetGo(s)
}
