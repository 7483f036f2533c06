package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// linkHopsMax bounds the links one path may lead through.
const linkHopsMax = 40

// walkMode says what a walk does with links. Intermediate links are resolved
// in every mode; what the walk ends at decides whether it was allowed.
type walkMode struct {
	// followLast resolves a link at the end of the path too; a mount point there
	// is where the walk ends.
	followLast bool
	// anyVolume lets links lead to volumes by id, mounted inside a working
	// folder or not. For questions only.
	anyVolume bool
}

// step is one object on the way of a walk.
type step struct {
	name   string // as it was written; empty for the root of a drive or volume
	file   File
	info   FileInfo
	volume string // the volume entered here, "" when none was
}

// walk goes from a drive down to an object, one component at a time, and keeps
// every object it passes open: none of them can be renamed or replaced until
// Close, so what was found stays true while the operation acts on it.
type walk struct {
	agent  *Agent
	mode   walkMode
	opened []File
	hops   int

	start localPath // only its drive is used: where the present text starts
	steps []step    // from the root of the drive to the last folder entered
	todo  []string  // components still to go
	// fromLink counts the components of todo that come from a link's target. One
	// that is missing makes the link a dangling one.
	fromLink int

	// How the walk ended; exactly one of the three.
	node    *step  // an object is there
	missing bool   // it is not there; todo is what is missing below the last step
	remote  string // an SMB link on the way: where the path leads

	dangling bool // missing, because a link on the way leads nowhere
	blocked  bool // missing, because a file stands where a folder would have to be
}

// newWalk walks to p. The caller must Close the walk.
func (a *Agent) newWalk(ctx context.Context, p localPath, mode walkMode) (*walk, error) {
	w := &walk{agent: a, mode: mode}
	err := w.restart(ctx, p)
	if err == nil {
		err = w.advance(ctx)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Close lets go of everything the walk holds.
func (w *walk) Close() {
	for _, f := range slices.Backward(w.opened) {
		closeFile(f)
	}
	w.opened = nil
}

// closeFile closes a handle, which has no failure that anybody could act on.
func closeFile(f File) { _ = f.Close() }

func (w *walk) restart(ctx context.Context, p localPath) error {
	w.start, w.steps, w.todo = p, w.steps[:0], p.names
	root, err := w.agent.os.OpenDrive(ctx, p.drive)
	if host.IsKind(err, host.KindNotFound) {
		w.missing = true
		return nil
	}
	if err != nil {
		return err
	}
	return w.enter(ctx, step{file: root})
}

// enter makes an opened object the last step.
func (w *walk) enter(ctx context.Context, s step) error {
	w.opened = append(w.opened, s.file)
	info, err := s.file.Info(ctx)
	if err != nil {
		return err
	}
	s.info = info
	w.steps = append(w.steps, s)
	return nil
}

func (w *walk) last() *step {
	if len(w.steps) == 0 {
		return nil
	}
	return &w.steps[len(w.steps)-1]
}

// advance goes on until the walk has ended.
func (w *walk) advance(ctx context.Context) error {
	for !w.missing && w.remote == "" {
		last := w.last()
		if last.info.Kind != FileFolder {
			if len(w.todo) == 0 && !w.follows(last) {
				break
			}
			if err := w.pass(ctx); err != nil {
				return err
			}
			continue
		}
		if len(w.todo) == 0 {
			break
		}
		if err := w.descend(ctx, last.file); err != nil {
			return err
		}
	}
	if !w.missing && w.remote == "" {
		w.node = w.last()
	}
	return nil
}

// follows reports whether the walk goes through the object at its end.
func (w *walk) follows(s *step) bool {
	return w.mode.followLast && (s.info.Kind == FileSymlink || s.info.Kind == FileJunction)
}

func (w *walk) descend(ctx context.Context, folder File) error {
	name := w.todo[0]
	child, err := folder.Open(ctx, name)
	if host.IsKind(err, host.KindNotFound) {
		w.missing, w.dangling = true, w.fromLink > 0
		return nil
	}
	if err != nil {
		return err
	}
	w.todo = w.todo[1:]
	w.fromLink = max(0, w.fromLink-1)
	return w.enter(ctx, step{name: name, file: child})
}

// pass goes through the last step, which is no plain folder.
func (w *walk) pass(ctx context.Context) error {
	last := w.last()
	switch last.info.Kind {
	case FileMountPoint:
		return w.enterVolume(ctx, last.info.Target)
	case FileSymlink, FileJunction:
		return w.followLink(ctx, last)
	case FileReparse:
		return refuse(host.KindPrecondition, "a reparse point of a foreign kind is on the way: %s", host.PrintableText(last.name))
	default:
		w.missing, w.blocked = true, true
		return nil
	}
}

// enterVolume goes on from the mount point that is the last step to the root
// of its volume. The step keeps its name; the handle of the mount point stays open.
func (w *walk) enterVolume(ctx context.Context, id string) error {
	root, err := w.agent.os.OpenVolume(ctx, id)
	if host.IsKind(err, host.KindNotFound) {
		w.missing, w.dangling = true, true
		return nil
	}
	if err != nil {
		return err
	}
	name := w.last().name
	w.steps = w.steps[:len(w.steps)-1]
	return w.enter(ctx, step{name: name, file: root, volume: canonicalVolumeID(id)})
}

// followLink puts the target of the last step, a link, before what is left of the path.
func (w *walk) followLink(ctx context.Context, link *step) error {
	if w.hops++; w.hops > linkHopsMax {
		return refuse(host.KindPrecondition, "the path leads through more than %d links", linkHopsMax)
	}
	target := parseTarget(link.info.Target, w.start.drive)
	switch target.kind {
	case targetRelative:
		w.steps = w.steps[:len(w.steps)-1]
		return w.goRelative(target.names)
	case targetDrive:
		w.queue(target.names)
		return w.restart(ctx, localPath{drive: target.drive, names: w.todo})
	case targetVolume:
		w.queue(target.names)
		return w.goVolume(ctx, target.volume)
	case targetRemote:
		w.remote = strings.Join(append([]string{target.remote}, w.todo...), `\`)
		return nil
	default:
		return refuse(host.KindPrecondition, "the link %s has a target nobody can follow: %s",
			host.PrintableText(link.name), host.PrintableText(link.info.Target))
	}
}

// queue puts the components of a link's target before those still to go.
func (w *walk) queue(names []string) {
	w.fromLink = len(names)
	w.todo = slices.Concat(names, w.todo)
}

// goRelative goes on from the last step, the link's own folder. Leading ".."
// take steps back; parseTarget has left none elsewhere.
func (w *walk) goRelative(names []string) error {
	for len(names) > 0 && names[0] == ".." {
		// Above a root is the root itself, as for Windows.
		if len(w.steps) > 1 {
			w.steps = w.steps[:len(w.steps)-1]
		}
		names = names[1:]
	}
	w.queue(names)
	return nil
}

// goVolume goes on at a volume a link names by id. Unless any volume will do,
// the path is rewritten to a place below a working folder where the volume is
// mounted, so that it is confined like every other.
func (w *walk) goVolume(ctx context.Context, id string) error {
	if w.mode.anyVolume {
		w.steps = append(w.steps[:0], step{})
		return w.enterVolume(ctx, id)
	}
	paths, err := w.agent.os.MountPaths(ctx, id)
	if err != nil && !host.IsKind(err, host.KindNotFound) {
		return err
	}
	for _, text := range paths {
		p, err := parsePath("mount path", text, w.start.drive)
		if err == nil && len(p.names) > 0 && slices.ContainsFunc(w.agent.roots, p.isUnder) {
			w.fromLink += len(p.names)
			return w.restart(ctx, localPath{drive: p.drive, names: slices.Concat(p.names, w.todo)})
		}
	}
	return outside("a link on the way leads to a volume that is not mounted in a working folder")
}

// text is the path of the walk as it stands: the components gone and those to go.
func (w *walk) text() localPath {
	names := make([]string, 0, len(w.steps)+len(w.todo))
	for _, s := range w.steps[min(1, len(w.steps)):] {
		names = append(names, s.name)
	}
	return localPath{drive: w.start.drive, names: append(names, w.todo...)}
}

// outside is the refusal of a path that does not end below a working folder.
func outside(why string) error {
	if why != "" {
		why = ": " + why
	}
	return refuse(host.KindInvalid, "the path is outside the working folders%s", why)
}
