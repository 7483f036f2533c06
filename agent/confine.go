package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// rootRef is a working folder as it is found on the node now: an object, and
// what of its path does not exist below that yet.
type rootRef struct {
	identity FileIdentity
	missing  []string
}

// rootRefs looks at every working folder, links on the way to it followed: they
// are the administrator's. A folder that cannot be reached confines nothing.
func (a *Agent) rootRefs(ctx context.Context) ([]rootRef, error) {
	refs := make([]rootRef, 0, len(a.roots))
	for _, root := range a.roots {
		ref, ok, err := a.rootRef(ctx, root)
		if err != nil {
			return nil, err
		}
		if ok {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

func (a *Agent) rootRef(ctx context.Context, root localPath) (rootRef, bool, error) {
	w, err := a.newWalk(ctx, root, walkMode{followLast: true, anyVolume: true})
	if isUnusable(err) {
		return rootRef{}, false, nil
	}
	if err != nil {
		return rootRef{}, false, err
	}
	defer w.Close()
	if w.node != nil && w.node.info.Kind == FileMountPoint {
		if err := w.enterVolume(ctx, w.node.info.Target); err != nil {
			return rootRef{}, false, err
		}
	}
	last := w.last()
	if last == nil || w.remote != "" || w.blocked || w.dangling {
		return rootRef{}, false, nil
	}
	return rootRef{identity: last.info.Identity, missing: slices.Clone(w.todo)}, true, nil
}

// isUnusable reports whether an error says that nothing can be done in a place
// as it is now: its drive has no file system or no medium, or a link on the way
// leads nowhere. The other working folders serve on.
func isUnusable(err error) bool {
	return host.IsKind(err, host.KindPrecondition) || host.IsKind(err, host.KindUnavailable) || host.IsKind(err, host.KindDenied)
}

// spot is a walk that has been found to end below a working folder.
type spot struct {
	*walk
	isRoot bool // it is a working folder itself
	// rootAt is the number of steps down to the working folder.
	rootAt int
}

// reach walks to p and checks that it is confined. The caller must Close the
// spot when there is no error.
func (a *Agent) reach(ctx context.Context, p localPath) (*spot, error) {
	var w *walk
	err := retryBusy(ctx, func() (err error) {
		w, err = a.newWalk(ctx, p, walkMode{})
		return err
	})
	if err != nil {
		return nil, err
	}
	s := &spot{walk: w}
	if err := s.confine(ctx); err != nil {
		w.Close()
		return nil, err
	}
	return s, nil
}

// confine checks where the walk has ended. Where it went before does not
// matter: it only opened what it passed.
func (s *spot) confine(ctx context.Context) error {
	text := s.text()
	s.rootAt = -1
	for _, root := range s.agent.roots {
		// The text of a working folder, resolved now, is that folder: no object
		// has to be compared. Of working folders in one another the deepest counts.
		if text.isUnder(root) && len(root.names) > s.rootAt {
			s.rootAt = len(root.names)
		}
		s.isRoot = s.isRoot || len(text.names) == len(root.names) && text.isUnder(root)
	}
	entersVolume := slices.ContainsFunc(s.steps, func(st step) bool { return st.volume != "" })
	if s.rootAt >= 0 && !entersVolume {
		return nil
	}
	refs, err := s.agent.rootRefs(ctx)
	if err != nil {
		return err
	}
	if s.rootAt < 0 {
		s.findRoot(refs)
	}
	if s.rootAt < 0 {
		return outside("")
	}
	return s.checkVolumes(ctx, refs)
}

// findRoot looks for the first object on the way that is a working folder under
// another name: a short name, other case, or the end of a link.
func (s *spot) findRoot(refs []rootRef) {
	for i, st := range s.steps {
		for _, ref := range refs {
			if st.info.Identity != ref.identity {
				continue
			}
			isLast := i == len(s.steps)-1
			if len(ref.missing) == 0 {
				s.rootAt, s.isRoot = i, isLast && !s.missing
				return
			}
			if isLast && s.missing && hasPrefix(s.todo, ref.missing) {
				s.rootAt = i + len(ref.missing)
				return
			}
		}
	}
}

// checkVolumes refuses a way through a mount point below the working folder
// into a volume that holds a working folder or the operating system: what lies
// there is reached by its own path or not at all.
func (s *spot) checkVolumes(ctx context.Context, refs []rootRef) error {
	var protected []uint64
	for i, st := range s.steps {
		if i <= s.rootAt || st.volume == "" {
			continue
		}
		if protected == nil {
			var err error
			if protected, err = s.agent.protectedVolumes(ctx, refs); err != nil {
				return err
			}
		}
		if slices.Contains(protected, st.info.Identity.VolumeSerial) {
			return outside("a mount point on the way leads to a volume of the node itself")
		}
	}
	return nil
}

// protectedVolumes are the serials of the volumes that hold a working folder
// or the operating system.
func (a *Agent) protectedVolumes(ctx context.Context, refs []rootRef) ([]uint64, error) {
	serials := make([]uint64, 0, len(refs)+1)
	for _, ref := range refs {
		serials = append(serials, ref.identity.VolumeSerial)
	}
	system, err := a.os.OpenDrive(ctx, a.systemDrive)
	if err != nil {
		return nil, err
	}
	defer closeFile(system)
	info, err := system.Info(ctx)
	if err != nil {
		return nil, err
	}
	return append(serials, info.Identity.VolumeSerial), nil
}

// refuseRemote refuses a change of what lies on a file server.
func (s *spot) refuseRemote() error {
	if s.remote != "" {
		return refuse(host.KindInvalid, "the path leads through a link to a file server: %s", host.PrintableText(s.remote))
	}
	return nil
}

// place is the path the operating system itself gives the spot, long names and
// links resolved, folded: one text for one place, whatever path led there.
func (s *spot) place(ctx context.Context) (string, error) {
	last := s.last()
	if last == nil {
		return s.text().key(), nil
	}
	path, err := last.file.Path(ctx)
	if err != nil {
		return "", err
	}
	return host.FoldName(strings.Join(append([]string{strings.TrimRight(path, `\`)}, s.todo...), `\`)), nil
}

// settlesMax bounds how often settle starts again because the place changed
// under it.
const settlesMax = 5

// settle walks to the paths of a change and locks the places they lead to, so
// that no other spelling of them is acted on meanwhile. The walks it returns
// were made under the locks.
func (c *call) settle(ctx context.Context, paths ...localPath) ([]*spot, error) {
	for range settlesMax {
		spots, places, err := c.reachAll(ctx, paths)
		if err != nil {
			return nil, err
		}
		wants := placeLocks(places)
		if c.places != nil && slices.Equal(wants, c.places) {
			return spots, nil
		}
		// A handle that is open while its call waits would stand in the way of
		// the call it waits for.
		closeAll(spots)
		c.unlock(c.places)
		c.places = nil
		if err := c.lock(ctx, wants...); err != nil {
			return nil, err
		}
		c.places = wants
	}
	return nil, refuse(host.KindBusy, "the path keeps changing")
}

func (c *call) reachAll(ctx context.Context, paths []localPath) (spots []*spot, places []string, err error) {
	for _, p := range paths {
		s, err := c.agent.reach(ctx, p)
		if err != nil {
			closeAll(spots)
			return nil, nil, err
		}
		spots = append(spots, s)
		if err = s.refuseRemote(); err != nil {
			closeAll(spots)
			return nil, nil, err
		}
		place, err := s.place(ctx)
		if err != nil {
			closeAll(spots)
			return nil, nil, err
		}
		places = append(places, place)
	}
	return spots, places, nil
}

func placeLocks(places []string) []want {
	wants := make([]want, 0, len(places))
	for _, place := range places {
		w := exclusive(lockPlace, 0, place)
		if !slices.Contains(wants, w) {
			wants = append(wants, w)
		}
	}
	slices.SortFunc(wants, func(a, b want) int { return compareKeys(a.key, b.key) })
	return wants
}

func closeAll(spots []*spot) {
	for _, s := range spots {
		s.Close()
	}
}
