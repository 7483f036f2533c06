package smb

import (
	"errors"
	"fmt"
	"io"
	"os"

	smb2 "github.com/cloudsoda/go-smb2"

	"github.com/csi-windows/csi-windows/csikit"
)

const (
	copyBufferBytes = 1 << 20
	// serverCopyBytesMax is what the SMB client lets the server copy rightly: of
	// larger files it asks for the first part again and again.
	serverCopyBytesMax = 16 << 20
	copyDepthMax       = 256
)

// copier copies a folder, with bounded memory: one buffer, and a part of the list of
// each folder that is open. Times of files are kept, and their read-only flag. Other
// streams and access lists are not.
type copier struct {
	from, to *root
	discard  func(path string) error
	// resume keeps what a copy before this one had finished: the time of a file is
	// set last, so one that has time and size of its source is whole.
	resume bool
	above  map[uint64]bool // ids of the folders that are open
	buffer []byte
}

func (c *copier) folder(from, to string) error {
	id, err := c.enter(from)
	if err != nil {
		return err
	}
	defer delete(c.above, id)
	if err := c.prepare(from, to); err != nil {
		return err
	}
	return c.from.each(from, func(info os.FileInfo) error {
		source, target := from+`\`+info.Name(), to+`\`+info.Name()
		switch {
		case isLink(info):
			return fmt.Errorf("%s is a link, which cannot be copied: %w", source, csikit.ErrPrecondition)
		case info.IsDir():
			return c.folder(source, target)
		default:
			return c.file(source, target, info)
		}
	})
}

// prepare makes a folder. One that is there keeps only what the source still has.
func (c *copier) prepare(from, to string) error {
	if c.resume {
		done, err := c.to.share.Lstat(to)
		if err == nil && isFolder(done) {
			return c.to.each(to, func(info os.FileInfo) error {
				_, err := c.from.share.Lstat(from + `\` + info.Name())
				if errors.Is(err, os.ErrNotExist) {
					return c.discard(to + `\` + info.Name())
				}
				return kindOf(err)
			})
		}
		if err := c.discard(to); err != nil {
			return err
		}
	}
	return kindOf(c.to.share.Mkdir(to, 0o777))
}

// isWhole reports whether a file was copied before. What is left of it otherwise goes.
func (c *copier) isWhole(to string, source os.FileInfo) (bool, error) {
	if !c.resume {
		return false, nil
	}
	done, err := c.to.share.Lstat(to)
	if err != nil {
		return false, ignoreMissing(err)
	}
	if !done.IsDir() && done.Size() == source.Size() && done.ModTime().Equal(source.ModTime()) {
		return true, nil
	}
	return false, c.discard(to)
}

// enter refuses a folder in itself: a link that the server follows on its own.
func (c *copier) enter(path string) (uint64, error) {
	f, err := c.from.share.Open(path)
	if err != nil {
		return 0, kindOf(err)
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, kindOf(err)
	}
	stat, _ := info.Sys().(*smb2.FileStat)
	if c.above[stat.FileId] && stat.FileId != 0 || len(c.above) >= copyDepthMax {
		return 0, fmt.Errorf("%s is a link to a folder above it, or too deep: %w", path, csikit.ErrPrecondition)
	}
	c.above[stat.FileId] = true
	return stat.FileId, nil
}

func (c *copier) file(from, to string, info os.FileInfo) error {
	if whole, err := c.isWhole(to, info); whole || err != nil {
		return err
	}
	source, err := c.from.share.Open(from)
	if err != nil {
		return kindOf(err)
	}
	defer func() { _ = source.Close() }()
	target, err := c.to.share.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return kindOf(err)
	}
	err = c.content(source, target, info.Size())
	if err := errors.Join(err, target.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", from, kindOf(err))
	}
	if err := c.to.share.Chtimes(to, info.ModTime(), info.ModTime()); err != nil {
		return kindOf(err)
	}
	if info.Mode().Perm()&0o200 == 0 {
		return kindOf(c.to.share.Chmod(to, 0o444))
	}
	return nil
}

// content lets the server copy what is small enough and on one share, and else
// passes it through the buffer.
func (c *copier) content(source, target *smb2.File, sizeBytes int64) error {
	if c.from.share == c.to.share && sizeBytes > 0 && sizeBytes <= serverCopyBytesMax {
		copied, err := target.ReadFrom(source)
		if err == nil && copied == sizeBytes {
			return nil
		}
		if err != nil && errors.Is(kindOf(err), errLost) {
			return err
		}
		if _, err := source.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := target.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := target.Truncate(0); err != nil {
			return err
		}
	}
	// Without the methods that would let the server copy.
	_, err := io.CopyBuffer(struct{ io.Writer }{target}, struct{ io.Reader }{source}, c.buffer)
	return err
}
