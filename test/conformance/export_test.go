package conformance

import "context"

// RunCases is Run over cases of a test's own.
func RunCases(ctx context.Context, env Env, options Options, cases ...Case) ([]Result, error) {
	return runCases(ctx, env, options, cases)
}

// CaseOf makes a case that gets what the cases of the table get: the guarded host,
// its folders, and scratch disks.
func CaseOf(name string, needs []Need, run func(ctx context.Context, s Scene)) Case {
	return Case{Name: name, Group: GroupSystem, Needs: needs, run: func(ctx context.Context, s *scene) { run(ctx, Scene{s}) }}
}

// Scene is what a case of a test works with.
type Scene struct{ *scene }

// Host is the guarded host.
func (s Scene) Host() *guard { return s.host }

// Folder is the case's own folder.
func (s Scene) Folder() string { return s.folder }

// Outside is the case's own folder outside the working folders.
func (s Scene) Outside() string { return s.outside }

// Disk makes a scratch disk.
func (s Scene) Disk(ctx context.Context) Disk { return s.disk(ctx) }

// Mounted makes a scratch disk with a volume that is mounted at a path.
func (s Scene) Mounted(ctx context.Context, path string) (Disk, string) { return s.mounted(ctx, path) }

// Later makes the scene undo something at its end.
func (s Scene) Later(undo func(context.Context) error) { s.later(undo) }
