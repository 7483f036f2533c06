package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// twins runs a change through Windows and at the node, each in a folder of its own
// with the same content, and compares what came of it.
func twins[T any](l *lab, what string, change func(api win32.API, folder string) (T, error)) {
	l.Helper()
	folders := map[win32.API]string{l.api: l.path("windows"), l.node: l.path("node")}
	_, _ = same(l, what, func(api win32.API) (T, error) { return change(api, folders[api]) })
}

// twinFolders makes the folders of twins.
func (l *lab) twinFolders() {
	l.Helper()
	for _, name := range []string{"windows", "node"} {
		l.write(l.below(name, "File.txt"), "0123456789")
		l.write(l.below(name, "sub", "inner"), "x")
	}
}

// Opening and making by path fails and succeeds as at the node.
func TestOpenByPath(t *testing.T) {
	l := open(t)
	l.twinFolders()
	look := win32.Open{Access: lookAccess, Share: anyShare}
	file := win32.Open{Access: holdAccess, Share: holdShare, Create: true}
	folder := win32.Open{Access: holdAccess, Share: holdShare, Create: true, Directory: true}
	demand := win32.Open{Access: holdAccess, Share: holdShare, Directory: true}
	for _, tt := range []struct {
		name string
		open win32.Open
		want uint32
	}{
		{`\File.txt`, look, 0},
		{`\file.TXT`, look, 0},
		{`\missing`, look, win32.ErrFileNotFound},
		{`\missing\x`, look, win32.ErrPathNotFound},
		{`\File.txt\x`, look, win32.ErrPathNotFound},
		{`\File.txt`, file, win32.ErrFileExists},
		{`\made`, file, 0},
		{`\made`, file, win32.ErrFileExists},
		{`\ünï 文 𝄞`, file, 0},
		{`\new`, folder, 0},
		{`\NEW`, folder, win32.ErrAlreadyExists},
		{`\File.txt`, folder, win32.ErrAlreadyExists},
		{`\missing\new`, folder, win32.ErrPathNotFound},
		{`\sub`, demand, 0},
		{`\File.txt`, demand, win32.ErrDirectory},
		{`\a<b`, look, win32.ErrInvalidName},
		{`\` + strings.Repeat("n", 300), file, win32.ErrInvalidName},
	} {
		twins(l, fmt.Sprintf("%.40s %+v", tt.name, tt.open), func(api win32.API, folder string) (any, error) {
			h, err := api.CreateFile(t.Context(), folder+tt.name, tt.open)
			if err == nil {
				l.OK(api.CloseHandle(h))
			}
			l.WantCode(err, tt.want)
			return nil, err
		})
	}
	twins(l, "names", func(api win32.API, folder string) ([]string, error) { return names(l, api, folder) })
	for _, path := range []string{`\\?\Q:\x`, `\\?\Q:\`, `\\?\Volume{00000000-0000-0000-0000-00000000dead}\`} {
		_, err := same(l, path, func(api win32.API) (win32.Handle, error) { return api.CreateFile(t.Context(), path, look) })
		l.WantCode(err, win32.ErrPathNotFound)
	}
}

// names lists a folder, sorted.
func names(l *lab, api win32.API, path string) ([]string, error) {
	l.Helper()
	list, err := with(l, api, path, holdAccess, func(h win32.Handle) ([]string, error) { return api.ReadDir(l.Context(), h) })
	slices.Sort(list)
	return list, err
}

// Every single name in a folder: made, opened, listed, deleted.
func TestOpenInFolder(t *testing.T) {
	l := open(t)
	l.twinFolders()
	look := win32.Open{Access: lookAccess, Share: anyShare}
	for _, tt := range []struct {
		name string
		open win32.Open
		want uint32
	}{
		{"File.txt", look, 0},
		{"FILE.txt", look, 0},
		{"missing", look, win32.ErrFileNotFound},
		{"File.txt", win32.Open{Access: lookAccess, Share: anyShare, Directory: true}, win32.ErrDirectory},
		{"sub", win32.Open{Access: lookAccess, Share: anyShare, Directory: true}, 0},
		{"new", win32.Open{Access: holdAccess, Share: anyShare, Create: true, Directory: true}, 0},
		{"NEW", win32.Open{Access: holdAccess, Share: anyShare, Create: true, Directory: true}, win32.ErrAlreadyExists},
		{"made", win32.Open{Access: holdAccess, Share: anyShare, Create: true}, 0},
		{"made", win32.Open{Access: holdAccess, Share: anyShare, Create: true}, win32.ErrAlreadyExists},
		{"a*b", look, win32.ErrInvalidName},
		{"con", look, win32.ErrFileNotFound}, // the native call knows no DOS devices
		{" blanks ", win32.Open{Access: holdAccess, Share: anyShare, Create: true}, 0},
		{strings.Repeat("n", 255), win32.Open{Access: holdAccess, Share: anyShare, Create: true}, 0},
		{strings.Repeat("n", 256), win32.Open{Access: holdAccess, Share: anyShare, Create: true}, win32.ErrInvalidName},
	} {
		twins(l, fmt.Sprintf("%.20s %+v", tt.name, tt.open), func(api win32.API, folder string) (any, error) {
			_, err := with(l, api, folder, holdAccess, func(parent win32.Handle) (any, error) {
				h, err := api.OpenAt(t.Context(), parent, tt.name, tt.open)
				if err == nil {
					l.OK(api.CloseHandle(h))
				}
				return nil, err
			})
			l.WantCode(err, tt.want)
			return nil, err
		})
	}
	twins(l, "names", func(api win32.API, folder string) ([]string, error) { return names(l, api, folder) })
	_, err := same(l, "a name in a file", func(api win32.API) (win32.Handle, error) {
		return with(l, api, l.path("windows", "File.txt"), holdAccess, func(file win32.Handle) (win32.Handle, error) {
			return api.OpenAt(t.Context(), file, "x", look)
		})
	})
	l.WantCode(err, win32.ErrPathNotFound)
}

func TestInfo(t *testing.T) {
	l := open(t)
	l.write(l.below("file"), "0123456789")
	l.OK(l.Control.MakeDir(t.Context(), l.below("folder")))
	l.OK(l.Control.MakeLink(t.Context(), l.below("link"), l.below("folder")))
	seen := map[[16]byte]bool{}
	for _, path := range []string{l.path("file"), l.path("folder"), l.path("link"), `\\?\C:\`} {
		info, err := same(l, path, func(api win32.API) (win32.FileInfo, error) {
			return with(l, api, path, lookAccess, func(h win32.Handle) (win32.FileInfo, error) { return api.Info(t.Context(), h) })
		})
		if err != nil || info.FileID == [16]byte{} || info.VolumeSerial == 0 || seen[info.FileID] {
			t.Errorf("%s: %+v, %v", path, info, err)
		}
		seen[info.FileID] = true
	}
}

func TestRead(t *testing.T) {
	l := open(t)
	content := strings.Repeat("0123456789abcdef", 3<<16) // 3 MiB: more than one request of the link
	l.write(l.below("large"), content)
	for _, tt := range []struct {
		offset int64
		length int
	}{{0, 10}, {5, 3}, {int64(len(content)) - 4, 10}, {int64(len(content)), 1}, {1 << 40, 1}, {-1, 1}, {3, len(content)}, {0, 0}} {
		_, _ = same(l, fmt.Sprint(tt), func(api win32.API) (string, error) {
			return with(l, api, l.path("large"), holdAccess, func(h win32.Handle) (string, error) {
				buffer := make([]byte, tt.length)
				n, err := api.ReadAt(t.Context(), h, buffer, tt.offset)
				return string(buffer[:n]), err
			})
		})
	}
	for _, path := range []string{l.path(), l.path("large")} { // a folder, and a handle that may not read
		_, _ = same(l, path, func(api win32.API) (int, error) {
			return with(l, api, path, lookAccess, func(h win32.Handle) (int, error) {
				return api.ReadAt(t.Context(), h, make([]byte, 1), 0)
			})
		})
	}
}

func TestFlush(t *testing.T) {
	l := open(t)
	l.write(l.below("file"), "x")
	for _, access := range []uint32{win32.GenericWrite, win32.GenericRead} {
		_, err := same(l, fmt.Sprintf("access %X", access), func(api win32.API) (any, error) {
			return with(l, api, l.path("file"), access, func(h win32.Handle) (any, error) { return nil, api.FlushFileBuffers(t.Context(), h) })
		})
		if (err == nil) != (access == win32.GenericWrite) {
			t.Errorf("access %X: %v", access, err)
		}
	}
}

func TestDelete(t *testing.T) {
	l := open(t)
	l.twinFolders()
	remove := func(name string, access uint32) func(win32.API, string) (any, error) {
		return func(api win32.API, folder string) (any, error) {
			return with(l, api, folder+`\`+name, access, func(h win32.Handle) (any, error) { return nil, api.Delete(t.Context(), h) })
		}
	}
	twins(l, "without the right", remove("File.txt", holdAccess))
	twins(l, "a folder with content", remove("sub", removeAccess))
	twins(l, "a file", remove("File.txt", removeAccess))
	twins(l, "a file that is gone", remove("File.txt", removeAccess))
	twins(l, "the last of a folder", remove(`sub\inner`, removeAccess))
	twins(l, "an empty folder", remove("sub", removeAccess))
	twins(l, "names", func(api win32.API, folder string) ([]string, error) { return names(l, api, folder) })
	if left, err := l.Control.ListDir(t.Context(), l.below("windows")); err != nil || len(left) != 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	// While it is held without the share mode nobody can open it to delete it.
	l.write(l.below("held"), "x")
	h, err := l.api.CreateFile(t.Context(), l.path("held"), win32.Open{Access: holdAccess, Share: holdShare})
	l.OK(err)
	_, err = l.api.CreateFile(t.Context(), l.path("held"), win32.Open{Access: removeAccess, Share: anyShare})
	l.WantCode(err, win32.ErrSharingViolation)
	_, err = with(l, l.api, l.path(), holdAccess, func(parent win32.Handle) (win32.Handle, error) {
		return l.api.OpenAt(t.Context(), parent, "held", win32.Open{Access: removeAccess, Share: anyShare})
	})
	l.WantCode(err, win32.ErrSharingViolation)
	l.OK(l.api.CloseHandle(h))
}

// A handle that is nobody's.
func TestInvalidHandles(t *testing.T) {
	l := open(t)
	const h = win32.Handle(0x3FFF0) // beyond the handles of any program here
	ctx := t.Context()
	calls := map[string]func() error{
		"OpenAt": func() error {
			_, err := l.api.OpenAt(ctx, h, "x", win32.Open{Access: lookAccess, Share: anyShare})
			return err
		},
		"Info":          func() error { _, err := l.api.Info(ctx, h); return err },
		"ReadDir":       func() error { _, err := l.api.ReadDir(ctx, h); return err },
		"ReadAt":        func() error { _, err := l.api.ReadAt(ctx, h, make([]byte, 1), 0); return err },
		"FinalPath":     func() error { _, err := l.api.FinalPath(ctx, h); return err },
		"Flush":         func() error { return l.api.FlushFileBuffers(ctx, h) },
		"Delete":        func() error { return l.api.Delete(ctx, h) },
		"Close":         func() error { return l.api.CloseHandle(h) },
		"CreateSymlink": func() error { return l.api.CreateSymlink(ctx, h, "x", `C:\`, true) },
	}
	for name, call := range calls {
		if code := l.CodeOf(call()); code != win32.ErrInvalidHandle {
			t.Errorf("%s: Windows error %d, want %d", name, code, win32.ErrInvalidHandle)
		}
	}
}
