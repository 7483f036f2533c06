package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// nodeSteps are the tasks that change what is at a path, in the order of a volume's
// life, and the folder above that path which is swapped meanwhile.
func nodeSteps(s *stack.Stack, c *client.Client, from string) []struct {
	name, swapped string
	do            func() error
} {
	source := nodeSources()[from].arrange(s)
	plugins, pods := stack.Root+`\plugins`, stack.Root+`\pods`
	return []struct {
		name, swapped string
		do            func() error
	}{
		{"stage", plugins, func() error { return c.Stage(s.Context(), stageRequest(source)) }},
		{"publish", pods, func() error { return c.Publish(s.Context(), publishRequest()) }},
		{"unpublish", pods, func() error { return c.Unpublish(s.Context(), unpublishRequest()) }},
		{"unstage", plugins, func() error { return c.Unstage(s.Context(), unstageRequest(source)) }},
	}
}

// C096: at every single call a node task makes, a folder on its path is swapped for a
// link to a tree of the same form outside. Nothing there changes.
func TestC096_NodeTasksWithASwapAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"disk", "smb"} {
		for i := range 4 {
			t.Run(from+[]string{" stage", " publish", " unpublish", " unstage"}[i], func(t *testing.T) {
				t.Parallel()
				swapAtEveryCallOfATask(t, from, i)
			})
		}
	}
}

func swapAtEveryCallOfATask(t *testing.T, from string, nth int) {
	s := stack.New(t, func(cfg *stack.Config) { cfg.Tasks.Folder = stack.Root + `\own` })
	c := s.Client()
	s.Canaries()
	steps := nodeSteps(s, c, from)
	for _, folder := range []string{stagingPath, targetPath} { // what a task that is led astray would find
		s.WriteFile(strings.Replace(folder, stack.Root, `C:\outside`, 1)+`\file`, "outside")
	}
	s.MakeDir(stack.Root + `\plugins`)
	s.MakeDir(stack.Root + `\pods`)
	before := func() {
		for _, step := range steps[:nth] {
			s.OK(step.do())
		}
	}
	undo := func() { // Unpublish and Unstage are success when nothing is there
		s.OK(steps[2].do())
		s.OK(steps[3].do())
	}
	before()
	step := steps[nth]
	calls := s.Calls(func() { s.OK(step.do()) })
	undo()
	outside, swapped := s.Outside(), 0
	for i := range calls {
		before()
		moved := ""
		s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "*", Nth: i + 1, Hook: func() {
			var err error
			target := strings.Replace(step.swapped, stack.Root, `C:\outside`, 1)
			if moved, err = s.Node.SwapForLink(context.Background(), step.swapped, target); err != nil {
				t.Error(err)
			}
		}}))
		err := step.do()
		s.OK(s.Node.ClearFaults(context.Background()))
		if now := s.Outside(); now != outside {
			t.Fatalf("%s, swapped before call %d of %d (%s), answered %v; outside there was\n%s\nand is\n%s", step.name, i+1, len(calls), calls[i], err, outside, now)
		}
		if moved == "" {
			undo()
			continue
		}
		swapped++
		// What was swapped away goes on under another name, and so does what is in it.
		s.OK(s.Agent.Rmdir(context.Background(), step.swapped, false))
		away := strings.NewReplacer(step.swapped, parentOf(step.swapped)+`\`+moved)
		s.OK(c.Unpublish(s.Context(), node.UnpublishRequest{VolumeID: nodeVolume, TargetPath: away.Replace(targetPath)}))
		s.OK(c.Unstage(s.Context(), node.UnstageRequest{VolumeID: nodeVolume, StagingPath: away.Replace(stagingPath)}))
		undo()
		s.OK(s.Agent.Rmdir(context.Background(), away.Replace(step.swapped), true))
		s.MakeDir(step.swapped)
	}
	if swapped < len(calls)/2 {
		t.Errorf("swapped at %d of %d calls", swapped, len(calls))
	}
	mustBeLetGo(s)
}
