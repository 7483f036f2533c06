package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// list compares a folder's names with the node's and returns them.
func (l *lab) list(path string) ([]string, error) {
	l.Helper()
	return same(l, "names in "+path, func(api win32.API) ([]string, error) { return names(l, api, path) })
}

func TestReadDir(t *testing.T) {
	l := open(t)
	l.OK(l.Control.MakeDir(t.Context(), l.below("empty")))
	if list, err := l.list(l.path("empty")); err != nil || len(list) != 0 {
		t.Errorf("an empty folder holds %q, %v", list, err)
	}
	// More names than fit into one answer of Windows, of every length.
	want := []string{"ünï 文 𝄞"}
	for i := range 400 {
		want = append(want, fmt.Sprintf("%03d%s", i, strings.Repeat("n", i*252/399)))
	}
	folder := l.on(l.path(), holdAccess)
	for _, name := range want {
		h, err := l.api.OpenAt(t.Context(), folder, name, win32.Open{Access: holdAccess, Share: anyShare, Create: true})
		l.OK(err)
		l.OK(l.api.CloseHandle(h))
	}
	want = append(want, "empty")
	slices.Sort(want)
	for range 2 { // a handle starts anew each time
		got, err := l.api.ReadDir(t.Context(), folder)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d names, %v; want %d", len(got), err, len(want))
		}
	}
	_, err := l.list(l.path("000"))
	l.WantCode(err, win32.ErrInvalidParameter)
	_, err = same(l, "without the right", func(api win32.API) ([]string, error) {
		return with(l, api, l.path(), lookAccess, func(h win32.Handle) ([]string, error) { return api.ReadDir(t.Context(), h) })
	})
	l.WantCode(err, win32.ErrAccessDenied)
}

// The root of a volume has no "." and ".."; of an empty one Windows says that
// there is no such file.
func TestReadDirOfARoot(t *testing.T) {
	l := open(t)
	_, id := l.volume("FAT32")
	if list, err := l.list(id); err != nil || len(list) != 0 {
		t.Errorf("an empty volume holds %q, %v", list, err)
	}
	h := l.on(id, holdAccess)
	for _, name := range []string{"a", "b"} {
		file, err := l.api.OpenAt(t.Context(), h, name, win32.Open{Access: holdAccess, Share: anyShare, Create: true})
		l.OK(err)
		l.OK(l.api.CloseHandle(file))
	}
	if list, err := l.list(id); err != nil || !slices.Equal(list, []string{"a", "b"}) {
		t.Errorf("the volume holds %q, %v", list, err)
	}
}

// deep makes nested folders through Windows and returns the path of the last; it is
// length units long, without the prefix `\\?\`.
func (l *lab) deep(length int) string {
	l.Helper()
	path := l.folder
	h := l.on(`\\?\`+path, holdAccess)
	for len(path) < length {
		name := strings.Repeat("d", min(200, length-len(path)-1))
		if rest := length - len(path) - 1 - len(name); rest == 1 {
			name = name[1:] // a name and its separator need two
		}
		child, err := l.api.OpenAt(l.Context(), h, name, win32.Open{Access: holdAccess, Share: holdShare, Create: true, Directory: true})
		l.OK(err)
		path += `\` + name
		h = child
		l.Cleanup(func() {
			if err := l.api.CloseHandle(child); err != nil {
				l.Error(err)
			}
		})
	}
	return path
}

func TestC023_PathsOfEveryLength(t *testing.T) {
	for _, length := range []int{131, 259, 260, 261, 300, 1024, 32000} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			l := open(t)
			path := l.deep(length)
			if len(path) != length {
				t.Fatalf("the path has %d characters", len(path))
			}
			final, err := same(l, "final path", func(api win32.API) (string, error) {
				return with(l, api, `\\?\`+path, lookAccess, func(h win32.Handle) (string, error) { return api.FinalPath(t.Context(), h) })
			})
			if err != nil || final != `\\?\`+path {
				t.Errorf("final path of %d characters, %v", len(final), err)
			}
			made := win32.Open{Access: holdAccess, Share: anyShare, Create: true, Directory: true}
			h, err := l.api.CreateFile(t.Context(), `\\?\`+path+`\made`, made)
			l.OK(err)
			l.OK(l.api.CloseHandle(h))
			if list, err := l.list(`\\?\` + path); err != nil || !slices.Equal(list, []string{"made"}) {
				t.Errorf("names %q, %v", list, err)
			}
		})
	}
	l := open(t)
	_, err := same(l, "beyond", func(api win32.API) (win32.Handle, error) {
		return api.CreateFile(t.Context(), l.path()+strings.Repeat(`\dddddddd`, 4000), win32.Open{Access: lookAccess, Share: anyShare})
	})
	if err == nil {
		t.Error("a path beyond the limit of Windows was opened")
	}
}

// C029: a short name is another spelling of one folder, and the handle tells the long one.
func TestC029_ShortNames(t *testing.T) {
	l := open(t)
	l.write(l.below("variable folder", "file"), "x")
	l.write(l.below("real~1", "file"), "x")
	for _, tt := range []struct{ spelling, long string }{
		{"VARIAB~1", "variable folder"}, {"variab~1", "variable folder"}, {"real~1", "real~1"},
	} {
		final, err := same(l, tt.spelling, func(api win32.API) (string, error) {
			return with(l, api, l.path(tt.spelling, "file"), lookAccess, func(h win32.Handle) (string, error) { return api.FinalPath(t.Context(), h) })
		})
		if err != nil || final != l.path(tt.long, "file") {
			t.Errorf("%s leads to %q, %v", tt.spelling, final, err)
		}
		folder := l.on(l.path(), holdAccess)
		short, err := l.api.OpenAt(t.Context(), folder, tt.spelling, win32.Open{Access: lookAccess, Share: anyShare})
		l.OK(err)
		info, err := l.api.Info(t.Context(), short)
		l.OK(err)
		want, err := l.api.Info(t.Context(), l.on(l.path(tt.long), lookAccess))
		if err != nil || info != want {
			t.Errorf("%s is %+v, want %+v, %v", tt.spelling, info, want, err)
		}
		l.OK(l.api.CloseHandle(short))
	}
	_, err := l.api.CreateFile(t.Context(), l.path("VARIAB~2"), win32.Open{Access: lookAccess, Share: anyShare})
	l.WantCode(err, win32.ErrFileNotFound)
}
