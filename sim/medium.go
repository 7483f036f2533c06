package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// contentSuffix names the folder beside an image that holds the volumes' files.
const contentSuffix = ".d"

// CopyMedium copies a disk's image and the files of its volumes, as they were
// when they were last flushed: what a snapshot of a disk in use holds. The copy
// is sparse like the original. Image to must not exist. What a copy that fails
// or is cut short by ctx leaves behind is the caller's to remove, see RemoveMedium.
func CopyMedium(ctx context.Context, from, to string) error {
	if err := copyImage(ctx, from, to); err != nil {
		return fmt.Errorf("copy disk image: %w", err)
	}
	serials, err := os.ReadDir(from + contentSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy volume files: %w", err)
	}
	for _, serial := range serials {
		flushed := filepath.Join(from+contentSuffix, serial.Name(), flushedFolder)
		for _, part := range []string{flushedFolder, liveFolder} {
			err := mirror(ctx, flushed, filepath.Join(to+contentSuffix, serial.Name(), part))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("copy volume files: %w", err)
			}
		}
	}
	return nil
}

// copyImage copies the parts of a file that hold data.
func copyImage(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = out.Truncate(info.Size())
	for at := int64(0); err == nil && at < info.Size(); {
		var start, end int64
		if start, end, err = nextData(in, at, info.Size()); err == nil && start < end {
			err = copyData(ctx, io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start))
		}
		at = end
	}
	return errors.Join(err, out.Close())
}

// copyStepBytes is how much is copied between two looks at the context.
const copyStepBytes = 4 << 20

// copyData copies until the end of in, or of ctx.
func copyData(ctx context.Context, out io.Writer, in io.Reader) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, copyStepBytes); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// RemoveMedium removes a disk's image and the files of its volumes.
func RemoveMedium(image string) error {
	err := os.Remove(image)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(image+contentSuffix))
}

// MediumFiles are the files and folders in which the flushed state of a medium
// is kept: the image, and one folder for each volume. A change of the medium
// is a change of one of them or of what is in it.
func MediumFiles(image string) ([]string, error) {
	files := []string{image}
	serials, err := os.ReadDir(image + contentSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, serial := range serials {
		files = append(files, filepath.Join(image+contentSuffix, serial.Name(), flushedFolder))
	}
	return files, nil
}
