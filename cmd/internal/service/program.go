package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/private"
)

// What stands beside the place of a program while it is replaced.
const (
	newSuffix = ".new" // the new one, until it is complete
	oldSuffix = ".old" // the old one, until the new one runs
)

// program is the file of a service, on its way to a newer one.
type program struct {
	path    string // its place
	differs bool   // the new one is not the one that is there
	existed bool   // there is one at its place
	placed  bool   // the new one is at its place
}

// stage copies the source beside the place, unless the same bytes are there
// already. Nothing that runs is touched yet: a full disk is noticed here.
func stage(source, path string) (*program, error) {
	p := &program{path: path}
	present, err := sum(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.differs = true
	case err != nil:
		return nil, err
	default:
		p.existed = true
		wanted, err := sum(source)
		if err != nil {
			return nil, err
		}
		p.differs = !bytes.Equal(wanted, present)
	}
	if !p.differs { // it may have been put there by hand, for everybody
		return p, private.Restrict(path)
	}
	if err := private.Mkdir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return p, copyFile(source, path+newSuffix)
}

// sum is a digest of a file's bytes.
func sum(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return nil, err
	}
	return digest.Sum(nil), nil
}

// copyFile makes a file of its own for the bytes of another one, for
// administrators only: whoever could change it could act as SYSTEM.
func copyFile(source, path string) error {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := private.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Sync(), to.Close())
}

// put brings the new program to its place. The old one keeps a second name, and
// the place is never empty: a power cut leaves either the old one or the new one.
func (p *program) put(ctx context.Context, interval time.Duration) error {
	if !p.differs {
		return nil
	}
	if p.existed {
		if err := keep(ctx, p.path, interval); err != nil {
			return fmt.Errorf("keep the old program: %w", err)
		}
	}
	if err := p.rename(ctx, newSuffix, interval); err != nil {
		return err
	}
	p.placed = true
	return nil
}

// keep gives the program its second name, or copies it where files have only one.
func keep(ctx context.Context, path string, interval time.Duration) error {
	old := path + oldSuffix
	if err := retry(ctx, interval, func() error { return os.Remove(old) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(path, old); err != nil {
		return copyFile(path, old)
	}
	return nil
}

// restore brings the old program back to its place.
func (p *program) restore(ctx context.Context, interval time.Duration) error {
	if !p.placed || !p.existed {
		return nil
	}
	return p.rename(ctx, oldSuffix, interval)
}

// rename puts a file beside the place in its stead. The program that was there may
// take a moment to end after its service has stopped, and cannot be replaced before.
func (p *program) rename(ctx context.Context, suffix string, interval time.Duration) error {
	return retry(ctx, interval, func() error { return os.Rename(p.path+suffix, p.path) })
}

// discard removes a new program that did not get to its place.
func (p *program) discard() {
	if p.differs && !p.placed {
		_ = os.Remove(p.path + newSuffix)
	}
}

// mention says where the old program is when an installer that was cut off has left it,
// for the case that the one at its place is no good.
func (p *program) mention(err error) error {
	old := p.path + oldSuffix
	if _, statErr := os.Stat(old); statErr != nil {
		return err
	}
	return fmt.Errorf("%w; the program that was there before is %s", err, old)
}

// forget removes the old program once the new one runs.
func (p *program) forget(ctx context.Context, interval time.Duration, notice func(string, ...any)) {
	remove(ctx, p.path+oldSuffix, interval, notice)
}

// removeProgram removes a program and what stands beside it, then its folder if
// nothing else is there.
func removeProgram(ctx context.Context, running, path string, interval time.Duration, notice func(string, ...any)) {
	remove(ctx, path+newSuffix, interval, notice)
	remove(ctx, path+oldSuffix, interval, notice)
	if isSameFile(running, path) {
		notice("%s runs at the moment; delete it afterwards", path)
		return
	}
	remove(ctx, path, interval, notice)
	_ = os.Remove(filepath.Dir(path)) // fails when it is not empty
}

// isSameFile reports whether two paths lead to one file.
func isSameFile(a, b string) bool {
	first, firstErr := os.Stat(a)
	second, secondErr := os.Stat(b)
	return firstErr == nil && secondErr == nil && os.SameFile(first, second)
}

// remove removes a file that may be missing; when it cannot, it says so.
func remove(ctx context.Context, path string, interval time.Duration, notice func(string, ...any)) {
	err := retry(ctx, interval, func() error { return os.Remove(path) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		notice("%v; delete it by hand", err)
	}
}

// retry repeats what fails while a process comes to its end. A missing file does
// not come by waiting.
func retry(ctx context.Context, interval time.Duration, do func() error) error {
	for deadline := time.Now().Add(removalTime); ; {
		err := do()
		if err == nil || errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) {
			return err
		}
		if waitErr := pause(ctx, interval); waitErr != nil {
			return err
		}
	}
}
