package sim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A volume's content folder holds "live", what programs see, and "flushed", a
// copy of it as it was when it was last written to the disk. A power cut puts
// the copy back.
const (
	liveFolder    = "live"
	flushedFolder = "flushed"
)

// racyTime is how coarse a host's file times may be: within it, two writes can
// carry the same time.
const racyTime = 2 * time.Second

// prepareContent makes a volume's content folder. What is found there when the
// volume arrives counts as flushed: the disk came with it.
func (n *Node) prepareContent(v *volume, folder string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if v.disk().System || n.restoring {
		return nil
	}
	return checkpoint(contentFolder(v))
}

// checkpoint makes "flushed" equal to "live". It costs a walk when nothing changed.
func checkpoint(content string) error {
	return mirror(context.Background(), filepath.Join(content, liveFolder), filepath.Join(content, flushedFolder))
}

// restore makes "live" what "flushed" is.
func restore(content string) error {
	live := filepath.Join(content, liveFolder)
	if err := emptyFolder(live); err != nil {
		return err
	}
	err := mirror(context.Background(), filepath.Join(content, flushedFolder), live)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // never flushed
	}
	return err
}

// emptyFolder removes what is in a folder and keeps the folder itself.
func emptyFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// mirror makes folder to equal to folder from, and copies only what differs in
// kind, size or time. Links are copied, never followed. The end of ctx ends it
// with part of the work done.
func mirror(ctx context.Context, from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	names := make(map[string]bool, len(entries))
	for _, e := range entries {
		names[e.Name()] = true
		if err := mirrorEntry(ctx, filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	old, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	for _, e := range old {
		if !names[e.Name()] {
			if err := os.RemoveAll(filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func mirrorEntry(ctx context.Context, from, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	source, err := os.Lstat(from)
	if err != nil {
		return err // removed meanwhile
	}
	copied, err := os.Lstat(to)
	if err == nil && copied.Mode().Type() != source.Mode().Type() {
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		copied = nil
	}
	switch source.Mode().Type() {
	case fs.ModeDir:
		return mirror(ctx, from, to)
	case fs.ModeSymlink:
		return mirrorLink(from, to)
	case 0:
		if err == nil && copied != nil && copied.Size() == source.Size() && copied.ModTime().Equal(source.ModTime()) {
			return nil
		}
		return copyFile(ctx, from, to, source)
	}
	return nil // devices and pipes have no content
}

func mirrorLink(from, to string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return err
	}
	if old, err := os.Readlink(to); err == nil {
		if old == target {
			return nil
		}
		if err := os.Remove(to); err != nil {
			return err
		}
	}
	return os.Symlink(target, to)
}

// copyFile copies a file with its time. A file so young that a further write
// could leave its time as it is gets an older time in the copy, so that the
// next mirror copies it again.
func copyFile(ctx context.Context, from, to string, source fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, source.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	err = copyData(ctx, out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	when := source.ModTime()
	if time.Since(when) < racyTime {
		when = when.Add(-racyTime)
	}
	return os.Chtimes(to, when, when)
}

// usedBytes is the room the files below a folder take in whole clusters.
func usedBytes(folder string, clusterBytes int64) int64 {
	if folder == "" || clusterBytes <= 0 {
		return 0
	}
	var used int64
	_ = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read takes no room
		}
		if info, err := e.Info(); err == nil && e.Type().IsRegular() {
			used += (info.Size() + clusterBytes - 1) / clusterBytes * clusterBytes
		}
		return nil
	})
	return used
}
