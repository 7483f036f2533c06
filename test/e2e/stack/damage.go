package stack

import (
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Outside describes everything on the node's drive C that is outside the working
// folder: names, kinds and contents. Two descriptions are equal when nothing there
// has changed.
func (s *Stack) Outside() string {
	s.Helper()
	root := strings.TrimPrefix(Root, `C:\`)
	var b strings.Builder
	err := filepath.WalkDir(s.Drive, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.Drive, path)
		if err != nil {
			return err
		}
		if name == root {
			return fs.SkipDir
		}
		fmt.Fprintf(&b, "%s %v", name, entry.Type())
		switch {
		case entry.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(data))
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %s", target)
		}
		b.WriteByte('\n')
		return nil
	})
	s.OK(err)
	return b.String()
}

// Canaries puts files outside the working folder that nobody may touch: next to
// it, under names that begin like it, and deeper.
func (s *Stack) Canaries() {
	s.Helper()
	for _, path := range []string{
		`C:\canary.txt`, `C:\k-x\canary.txt`, `C:\k2\k\canary.txt`, `C:\x\canary.txt`, `C:\a\canary.txt`,
		`C:\Windows\System32\canary.dll`, `C:\Users\admin\secret.txt`, `C:\outside\deep\er\canary.txt`,
	} {
		s.WriteFile(path, "canary at "+path)
	}
}

// ImageSum is a hash of a disk's whole image, good for comparing within one stack.
func (s *Stack) ImageSum(number uint32) string {
	s.Helper()
	file, err := os.Open(s.Disk(number).Spec.Image)
	s.OK(err)
	defer func() { _ = file.Close() }()
	var sum maphash.Hash
	sum.SetSeed(s.seed)
	_, err = io.CopyBuffer(struct{ io.Writer }{&sum}, struct{ io.Reader }{file}, make([]byte, MiB))
	s.OK(err)
	return strconv.FormatUint(sum.Sum64(), 16)
}
