package sim

import (
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
// is sparse like the original. Image to must not exist.
func CopyMedium(from, to string) error {
	if err := copyImage(from, to); err != nil {
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
			err := mirror(flushed, filepath.Join(to+contentSuffix, serial.Name(), part))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("copy volume files: %w", err)
			}
		}
	}
	return nil
}

// copyImage copies the parts of a file that hold data.
func copyImage(from, to string) error {
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
			_, err = io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start))
		}
		at = end
	}
	return errors.Join(err, out.Close())
}
