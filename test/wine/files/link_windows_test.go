package files

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// noVolume is the id of a volume that is nowhere.
const noVolume = `\\?\Volume{00000000-0000-0000-0000-00000000dead}\`

// reparseData reads the raw reparse buffer of an object, the same through Windows and
// past Wine.
func (l *lab) reparseData(path string) []byte {
	l.Helper()
	data, err := same(l, "reparse data of "+path, func(api win32.API) ([]byte, error) {
		return with(l, api, path, lookAccess, func(h win32.Handle) ([]byte, error) {
			out := make([]byte, win32.ReparseBufferMaxBytes)
			n, err := api.DeviceIoControl(l.Context(), h, win32.FsctlGetReparsePoint, nil, out)
			return out[:n], err
		})
	})
	l.OK(err)
	return data
}

// reparse is reparseData read by the product.
func (l *lab) reparse(path string) win32.Reparse {
	l.Helper()
	r, err := win32.DecodeReparse(l.reparseData(path))
	l.OK(err)
	return r
}

// info describes an object through Windows.
func (l *lab) info(path string) win32.FileInfo {
	l.Helper()
	info, err := with(l, l.api, path, lookAccess, func(h win32.Handle) (win32.FileInfo, error) { return l.api.Info(l.Context(), h) })
	l.OK(err)
	return info
}

// remove deletes an object through Windows.
func (l *lab) remove(path string) error {
	l.Helper()
	_, err := with(l, l.api, path, removeAccess, func(h win32.Handle) (any, error) { return nil, l.api.Delete(l.Context(), h) })
	return err
}

// symlink makes a link in the test's folder through Windows.
func (l *lab) symlink(name, target string, directory bool) error {
	l.Helper()
	_, err := with(l, l.api, l.path(), holdAccess, func(folder win32.Handle) (any, error) {
		return nil, l.api.CreateSymlink(l.Context(), folder, name, target, directory)
	})
	return err
}

// A symbolic link says where it leads; whoever opens it gets the link, whoever goes
// through it the target; whoever deletes it leaves the target alone.
func TestSymlinks(t *testing.T) {
	l := open(t)
	l.write(l.below("target", "file"), "at the target")
	for i, tt := range []struct {
		target    string
		directory bool
		relative  bool
		through   string // what leads from the link to the file
	}{
		{target: l.below("target"), directory: true, through: `\file`},
		{target: "target", directory: true, relative: true, through: `\file`},
		{target: l.below("target") + `\`, directory: true, through: `\.\file`},
		{target: l.below("gone"), directory: true},
		{target: `\\srv\share\x`, directory: true},
		{target: noVolume, directory: true},
		{target: `..\ünï 文 𝄞`, relative: true},
	} {
		name := fmt.Sprint("link", i)
		if err := l.symlink(name, tt.target, tt.directory); err != nil {
			t.Errorf("link to %s: %v", tt.target, err)
			continue
		}
		l.WantCode(l.symlink(name, tt.target, tt.directory), win32.ErrAlreadyExists)
		info, want := l.info(l.path(name)), uint32(win32.AttrReparse)
		if tt.directory {
			want |= win32.AttrDirectory
		}
		if info.Attributes&(win32.AttrReparse|win32.AttrDirectory) != want || info.ReparseTag != win32.TagSymlink {
			t.Errorf("link to %s is %+v", tt.target, info)
		}
		if r := l.reparse(l.path(name)); r.Target != tt.target || r.Relative != tt.relative {
			t.Errorf("link to %s reads %+v", tt.target, r)
		}
		if tt.through != "" {
			l.holds(l.below(name)+tt.through, "at the target")
			if l.info(l.path(name)+`\file`).FileID != l.info(l.path("target", "file")).FileID {
				t.Errorf("%s is not followed on the way", name)
			}
		}
		if list, err := l.list(l.path(name)); tt.directory && (err != nil || len(list) != 0) {
			t.Errorf("the link %s itself holds %q, %v", name, list, err)
		}
		l.OK(l.remove(l.path(name)))
	}
	l.holds(l.below("target", "file"), "at the target")
	if list, err := l.list(l.path()); err != nil || len(list) != 1 {
		t.Errorf("left: %q, %v", list, err)
	}
}

// What goes wrong on the way leaves nothing behind.
func TestSymlinkFailures(t *testing.T) {
	l := open(t)
	l.WantCode(l.symlink("long", `C:\`+strings.Repeat("x", 8200), true), win32.ErrInvalidParameter)
	l.WantCode(l.symlink(`a\b`, `C:\x`, true), win32.ErrInvalidName)
	for _, code := range []uint32{win32.ErrInvalidFunction, win32.ErrIODevice} {
		l.OK(l.Control.AddFault(t.Context(), sim.Fault{Call: "win32.DeviceIoControl 0x900A4", Win32: code}))
		l.WantCode(l.symlink("broken", `C:\x`, true), code)
	}
	if list, err := l.list(l.path()); err != nil || len(list) != 0 {
		t.Errorf("left: %q, %v", list, err)
	}
}

// mountPointData lays out the reparse buffer of a junction or mounted folder, from the
// header file and not by the product. Source: REPARSE_DATA_BUFFER, ntifs.h.
func mountPointData(substitute, shown string) []byte {
	names := [][]uint16{utf16.Encode([]rune(substitute)), utf16.Encode([]rune(shown))}
	lengths := []int{2 * len(names[0]), 2 * len(names[1])}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xA0000003)
	b = le.AppendUint16(b, uint16(8+lengths[0]+2+lengths[1]+2))
	b = le.AppendUint16(b, 0)
	for _, field := range []int{0, lengths[0], lengths[0] + 2, lengths[1]} {
		b = le.AppendUint16(b, uint16(field))
	}
	for _, name := range names {
		for _, unit := range append(name, 0) {
			b = le.AppendUint16(b, unit)
		}
	}
	return b
}

// setReparse sends a control that changes the reparse point of an object.
func (l *lab) setReparse(api win32.API, path string, code uint32, data []byte) error {
	l.Helper()
	_, err := with(l, api, path, win32.FileWriteAttr, func(h win32.Handle) (int, error) {
		return api.DeviceIoControl(l.Context(), h, code, data, nil)
	})
	return err
}

// A junction made by its control code is read, followed on the way, and made a plain
// folder again.
func TestJunctions(t *testing.T) {
	l := open(t)
	l.write(l.below("target", "file"), "at the target")
	l.OK(l.Control.MakeDir(t.Context(), l.below("junction")))
	data := mountPointData(`\??\`+l.below("target"), l.below("target"))
	l.OK(l.setReparse(l.api, l.path("junction"), win32.FsctlSetReparsePoint, data))
	if got := l.reparseData(l.path("junction")); string(got) != string(data) {
		t.Errorf("set % X\nread % X", data, got)
	}
	info, r := l.info(l.path("junction")), l.reparse(l.path("junction"))
	if info.ReparseTag != win32.TagMountPoint || r.Target != l.below("target") || r.Relative {
		t.Errorf("the junction is %+v, %+v", info, r)
	}
	if _, ok := r.VolumeID(); ok {
		t.Error("the junction counts as a mounted volume")
	}
	l.holds(l.below("junction", "file"), "at the target")
	if list, err := l.list(l.path("junction")); err != nil || len(list) != 0 {
		t.Errorf("the junction itself holds %q, %v", list, err)
	}
	header := []byte{0x03, 0, 0, 0xA0, 0, 0, 0, 0}
	l.OK(l.setReparse(l.api, l.path("junction"), win32.FsctlDeleteReparsePoint, header))
	if info := l.info(l.path("junction")); info.ReparseTag != 0 || info.Attributes&win32.AttrDirectory == 0 {
		t.Errorf("after the reparse point was deleted: %+v", info)
	}
	l.OK(l.setReparse(l.api, l.path("junction"), win32.FsctlSetReparsePoint, data))
	l.OK(l.remove(l.path("junction")))
	l.holds(l.below("target", "file"), "at the target")
}

// Short buffers, wrong objects and malformed data are answered as the node does.
func TestReparseErrors(t *testing.T) {
	l := open(t)
	l.write(l.below("file"), "x")
	l.write(l.below("full", "file"), "x")
	l.OK(l.Control.MakeDir(t.Context(), l.below("empty")))
	l.OK(l.Control.MakeLink(t.Context(), l.below("link"), `C:\`+strings.Repeat("long", 50)))
	for _, size := range []int{0, 4, 7, 8, 100, win32.ReparseBufferMaxBytes} {
		_, _ = same(l, fmt.Sprint("buffer of ", size), func(api win32.API) (string, error) {
			return with(l, api, l.path("link"), lookAccess, func(h win32.Handle) (string, error) {
				out := make([]byte, size)
				n, err := api.DeviceIoControl(t.Context(), h, win32.FsctlGetReparsePoint, nil, out)
				return fmt.Sprintf("%d % X", n, out[:n]), err
			})
		})
	}
	junction := mountPointData(`\??\C:\x`, `C:\x`)
	_, fat := l.volume("FAT32") // hosts no mount points
	l.OK(l.mkdir(fat + "folder"))
	for _, tt := range []struct {
		path string
		code uint32
		data []byte
		want uint32
	}{
		{l.path("file"), win32.FsctlGetReparsePoint, nil, win32.ErrNotAReparsePoint},
		{l.path("file"), win32.FsctlSetReparsePoint, junction, win32.ErrDirectory},
		{l.path("full"), win32.FsctlSetReparsePoint, junction, win32.ErrDirNotEmpty},
		{l.path("empty"), win32.FsctlSetReparsePoint, junction[:20], 4392},
		{l.path("empty"), win32.FsctlSetReparsePoint, nil, 4392},
		{l.path("empty"), win32.FsctlDeleteReparsePoint, junction[:8], 4392},
		{l.path("empty"), win32.FsctlDeleteReparsePoint, []byte{0x03, 0, 0, 0xA0, 0, 0, 0, 0}, win32.ErrNotAReparsePoint},
		{l.path("link"), win32.FsctlSetReparsePoint, junction, 4394},
		{l.path("file"), win32.IoctlDiskGetLengthInfo, nil, win32.ErrInvalidFunction},
		{fat + "folder", win32.FsctlSetReparsePoint, junction, win32.ErrInvalidFunction},
	} {
		what := fmt.Sprintf("%s %X % X", tt.path, tt.code, tt.data)
		_, err := same(l, what, func(api win32.API) (any, error) { return nil, l.setReparse(api, tt.path, tt.code, tt.data) })
		if got := l.CodeOf(err); got != tt.want {
			t.Errorf("%s: Windows error %d, want %d", what, got, tt.want)
		}
	}
}
