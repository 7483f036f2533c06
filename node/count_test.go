package node_test

import "testing"

// cost counts the calls of the operating system of one stage and publish as the
// kubelet asks for it: the staging folder and the folder of the target are there,
// the disk has been formatted before.
func (l *lab) cost() (stage, publish, stageAgain, publishAgain int) {
	l.Helper()
	for range 3 { // a node has other disks too
		l.attach()
	}
	_, source := l.staged()
	l.ok(l.tasks.Unstage(l.ctx, unstageRequest(source)))
	l.ok(l.agent.Mkdir(l.ctx, targetPath[:len(targetPath)-len(`\mount`)]))
	count := func(do func() error) int { return len(l.calls(func() { l.ok(do()) })) }
	doStage := func() error { return l.tasks.Stage(l.ctx, stageRequest(source)) }
	doPublish := func() error { return l.tasks.Publish(l.ctx, publishRequest()) }
	return count(doStage), count(doPublish), count(doStage), count(doPublish)
}

func TestAdditionsHalveTheCallsOfTheOperatingSystem(t *testing.T) {
	stage, publish, stageAgain, publishAgain := newLab(t, nil).cost()
	oldStage, oldPublish, oldStageAgain, oldPublishAgain := newLab(t, official).cost()
	t.Logf("with additions: stage %d, publish %d, again %d and %d", stage, publish, stageAgain, publishAgain)
	t.Logf("official only:  stage %d, publish %d, again %d and %d", oldStage, oldPublish, oldStageAgain, oldPublishAgain)
	if 2*(stage+publish) > oldStage+oldPublish {
		t.Errorf("stage and publish make %d calls, more than half of %d", stage+publish, oldStage+oldPublish)
	}
	if 2*stageAgain > stage {
		t.Errorf("a repeated stage makes %d calls, more than half of %d", stageAgain, stage)
	}
}

func TestARepeatedStageChangesNothing(t *testing.T) {
	l := newLab(t, nil)
	_, source := l.staged()
	calls := l.calls(func() { l.ok(l.tasks.Stage(l.ctx, stageRequest(source))) })
	if changed := changes(calls); len(changed) > 0 {
		t.Errorf("a repeated stage made changes: %q", changed)
	}
}
