package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// Something that arrives by itself is looked for every pollInterval, for arrivalTime
// at most.
const (
	pollInterval = 50 * time.Millisecond
	arrivalTime  = time.Minute
)

// scene is what one case works with. It ends with the case: everything that was
// made through it is taken away again.
type scene struct {
	Reporter
	log *record
	env *Env
	// host is the host under test behind the guard.
	host *guard
	// run is the name that everything of this run has in it.
	run string
	// folder and outside are empty folders of the case, below a working folder and
	// outside all of them.
	folder  string
	outside string

	runner *runner
	mu     sync.Mutex
	disks  []*scratchDisk
	undo   []func(context.Context) error
}

func newScene(r *runner, index int) *scene {
	log := &record{}
	s := &scene{
		Reporter: log, log: log, env: r.env, run: r.name, runner: r,
		folder:  fmt.Sprintf(`%s\%s\%d`, r.env.WorkingDir, r.name, index),
		outside: fmt.Sprintf(`%s\%s\%d`, r.env.OutsideDir, r.name, index),
	}
	s.host = &guard{Host: r.env.Host, scene: s}
	return s
}

// open makes the folders of the case.
func (s *scene) open(ctx context.Context) {
	for _, folder := range []string{s.folder, s.outside} {
		s.must(s.env.Files.MakeDir(ctx, folder), "make folder "+folder)
	}
}

// path is a path below the case's folder.
func (s *scene) path(names ...string) string {
	return strings.Join(append([]string{s.folder}, names...), `\`)
}

// later makes the scene undo something at its end; the last comes first.
func (s *scene) later(undo func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undo = append(s.undo, undo)
}

// clean takes away what the case has made. Every step is tried.
func (s *scene) clean(ctx context.Context) []error {
	s.mu.Lock()
	undo, disks := slices.Clone(s.undo), slices.Clone(s.disks)
	s.mu.Unlock()
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, step := range slices.Backward(undo) {
		add(step(ctx))
	}
	// Links and mount points go before what they lead to.
	for _, parent := range []string{s.folder, s.outside} {
		at := strings.LastIndexByte(parent, '\\')
		add(s.runner.removeTree(ctx, parent[:at], parent[at+1:], 0))
	}
	for _, d := range slices.Backward(disks) {
		add(d.Remove(ctx))
	}
	return errs
}

// treeDepthMax bounds the removal of a tree: no case makes a deeper one, so a
// deeper one is none of ours.
const treeDepthMax = 12

// removeTree removes an object and what is below it, and follows no link: each
// object is removed first as what it is, which works unless it is a folder with
// something in it. A missing object is success.
func (r *runner) removeTree(ctx context.Context, folder, name string, depth int) error {
	path := folder + `\` + name
	there, err := r.has(ctx, folder, name)
	if err != nil || !there {
		return err
	}
	removeErr := r.env.Files.RemoveFile(ctx, path)
	if removeErr == nil {
		return nil
	}
	if depth > treeDepthMax || !r.isFolder(ctx, path) {
		return removeErr
	}
	names, err := r.env.Files.ListDir(ctx, path)
	if err != nil {
		return removeErr
	}
	for _, child := range names {
		if err := r.removeTree(ctx, path, child, depth+1); err != nil {
			return err
		}
	}
	return r.env.Files.RemoveFile(ctx, path)
}

// isFolder reports whether an object that resists its removal is certainly a folder
// and no link. Files may know that by themselves; else the host under test is asked,
// which finds everything outside its working folders invalid.
func (r *runner) isFolder(ctx context.Context, path string) bool {
	if files, ok := r.env.Files.(interface{ IsFolder(path string) bool }); ok {
		return files.IsFolder(path)
	}
	link, err := r.env.Host.IsSymlink(ctx, path)
	return err == nil && !link || host.IsKind(err, host.KindInvalid)
}

// has reports whether a folder holds a name. A folder that cannot be listed holds none.
func (r *runner) has(ctx context.Context, folder, name string) (bool, error) {
	there, err := r.holds(ctx, folder, name)
	if err != nil {
		return false, ctx.Err()
	}
	return there, nil
}

// holds is has that fails when the folder cannot be listed.
func (r *runner) holds(ctx context.Context, folder, name string) (bool, error) {
	if strings.HasSuffix(folder, ":") {
		folder += `\` // C: alone is the current folder of that drive
	}
	names, err := r.env.Files.ListDir(ctx, folder)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }), nil
}

// must ends the case when err is one.
func (s *scene) must(err error, what string) {
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// fails makes the case fail unless err is one of the kinds.
func (s *scene) fails(err error, what string, kinds ...host.Kind) {
	if err == nil {
		s.Errorf("%s: succeeded; want %v", what, kinds)
		return
	}
	if !slices.Contains(kinds, host.KindOf(err)) {
		s.Errorf("%s: %v, of kind %q; want %v", what, err, host.KindOf(err), kinds)
	}
}

// unsupported reports whether a host lacks an addition to the contract, which is no
// failure and is noted.
func (s *scene) unsupported(err error, addition string) bool {
	if !host.IsKind(err, host.KindUnsupported) {
		return false
	}
	s.Notef("the host has no %s", addition)
	return true
}

// eventually waits until done reports true, and ends the case when its time is up.
func (s *scene) eventually(ctx context.Context, what string, done func() (bool, error)) {
	ctx, cancel := context.WithTimeout(ctx, arrivalTime)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		ok, err := done()
		if ok && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("%s: not yet when the time was up: %v", what, err)
		case <-ticker.C:
		}
	}
}

// write writes a file of the node beside the host.
func (s *scene) write(ctx context.Context, path, content string) {
	s.must(s.env.Files.WriteFile(ctx, path, []byte(content)), "write "+path)
}

// holds makes the case fail unless a file of the node has the content.
func (s *scene) holds(ctx context.Context, path, content string) {
	got, err := s.env.Files.ReadFile(ctx, path)
	if err != nil || string(got) != content {
		s.Errorf("%s holds %.60q, %v; want %.60q", path, got, err, content)
	}
}

// has reports whether a folder of the node has a child of the name, whatever it is.
func (s *scene) has(ctx context.Context, folder, name string) bool {
	there, err := s.runner.has(ctx, folder, name)
	s.must(err, "look into "+folder)
	return there
}

// names are the sorted names in a folder of the node.
func (s *scene) names(ctx context.Context, folder string) []string {
	names, err := s.env.Files.ListDir(ctx, folder)
	s.must(err, "look into "+folder)
	slices.Sort(names)
	return names
}
