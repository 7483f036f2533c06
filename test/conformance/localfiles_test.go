package conformance_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/csi-windows/csi-windows/test/conformance"
)

// The files of this machine are written, read, listed and removed; a link is removed
// and not what it leads to.
func TestLocalFiles(t *testing.T) {
	t.Parallel()
	ctx, top := t.Context(), t.TempDir()
	files := conformance.LocalFiles{}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(top, "a", "b", "file")
	ok(files.WriteFile(ctx, file, []byte("content")))
	ok(files.MakeDir(ctx, filepath.Join(top, "c", "d")))
	ok(files.MakeLink(ctx, filepath.Join(top, "link"), filepath.Join(top, "a")))
	ok(files.MakeLink(ctx, filepath.Join(top, "dangling"), filepath.Join(top, "absent")))
	if data, err := files.ReadFile(ctx, filepath.Join(top, "link", "b", "file")); err != nil || string(data) != "content" {
		t.Errorf("read %q, %v", data, err)
	}
	names, err := files.ListDir(ctx, top)
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"a", "c", "dangling", "link"}) {
		t.Errorf("names are %q, %v", names, err)
	}
	if err := files.RemoveFile(ctx, filepath.Join(top, "a")); err == nil {
		t.Error("a folder with something in it was removed")
	}
	for _, name := range []string{"link", "dangling", "c/d", "c"} {
		ok(files.RemoveFile(ctx, filepath.Join(top, name)))
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "content" {
		t.Errorf("the file is %q, %v", data, err)
	}
	for _, fails := range []error{
		files.WriteFile(ctx, filepath.Join(file, "below"), nil), files.WriteFile(ctx, filepath.Join(top, "a"), nil),
		files.RemoveFile(ctx, filepath.Join(top, "absent")), files.MakeLink(ctx, filepath.Join(top, "no", "link"), top),
	} {
		if fails == nil {
			t.Error("what cannot be done succeeded")
		}
	}
	if _, err := files.ListDir(ctx, filepath.Join(top, "absent")); err == nil {
		t.Error("a missing folder was listed")
	}
}
