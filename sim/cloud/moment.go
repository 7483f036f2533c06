package cloud

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/csi-windows/csi-windows/sim"
)

// A disk that is copied may be in use by a node in another process, which writes
// to its medium whenever it flushes. The copies are of one moment when no medium
// changed from before the first copy to after the last; otherwise they are made
// again.
const (
	// momentTries is how often copies are made before ErrChanging.
	momentTries = 8
	// momentPause is how long a busy disk is left alone; it grows with the tries.
	momentPause = 20 * time.Millisecond
	// timeStep is how coarse a file's time of change may be. A state that is
	// younger could change without a trace.
	timeStep = 20 * time.Millisecond
)

// mediumCopy is a medium to copy.
type mediumCopy struct{ from, to string }

// copyMoment copies media as they are at one moment. On failure the copies are gone.
func (c *Cloud) copyMoment(ctx context.Context, copies []mediumCopy) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, removeCopies(copies))
		}
	}()
	for try := 1; ; try++ {
		before, err := stableState(ctx, copies)
		if err != nil {
			return err
		}
		for _, m := range copies {
			c.step("copy")
			if err := sim.CopyMedium(ctx, m.from, m.to); err != nil {
				return err
			}
		}
		after, _, err := mediaState(copies)
		if err != nil {
			return err
		}
		if after == before {
			return nil
		}
		if err := removeCopies(copies); err != nil {
			return err
		}
		if try == momentTries {
			return fmt.Errorf("copied %d times: %w", try, ErrChanging)
		}
		if err := pause(ctx, time.Duration(try)*momentPause); err != nil {
			return err
		}
	}
}

func removeCopies(copies []mediumCopy) (err error) {
	for _, m := range copies {
		err = errors.Join(err, sim.RemoveMedium(m.to))
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stableState is the state of the media, old enough for any further change to show.
func stableState(ctx context.Context, copies []mediumCopy) (state [sha256.Size]byte, err error) {
	state, changed, err := mediaState(copies)
	if age := time.Since(changed); err == nil && age < timeStep {
		if err := pause(ctx, min(timeStep-age, timeStep)); err != nil {
			return state, err
		}
		state, _, err = mediaState(copies)
	}
	return state, err
}

// mediaState sums up sizes and times of the files of the media, and tells the
// latest change.
func mediaState(copies []mediumCopy) (state [sha256.Size]byte, changed time.Time, err error) {
	sum := sha256.New()
	for _, m := range copies {
		roots, err := sim.MediumFiles(m.from)
		if err != nil {
			return state, changed, err
		}
		for _, root := range roots {
			last, err := addState(sum, root)
			if err != nil {
				return state, changed, err
			}
			if last.After(changed) {
				changed = last
			}
		}
	}
	copy(state[:], sum.Sum(nil))
	return state, changed, nil
}

// addState adds a file, or a folder with all in it. What vanishes meanwhile is a
// change of its folder.
func addState(sum hash.Hash, root string) (changed time.Time, err error) {
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = e.Info()
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(sum, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if info.ModTime().After(changed) {
			changed = info.ModTime()
		}
		return nil
	})
	return changed, err
}
