package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// mounts compares where a volume is mounted, and wants just these paths.
func (l *lab) mounts(volume string, want ...string) {
	l.Helper()
	got, err := same(l, "mounts of "+volume, func(api win32.API) ([]string, error) { return api.VolumePathNames(l.Context(), volume) })
	if err != nil || !slices.Equal(got, want) {
		l.Errorf("%s is mounted at %q, %v; want %q", volume, got, err, want)
	}
}

// mount makes an empty folder and mounts a volume there through Windows.
func (l *lab) mount(name, volume string) {
	l.Helper()
	l.OK(l.mkdir(l.path(name)))
	l.OK(l.api.SetVolumeMountPoint(l.Context(), l.path(name)+`\`, volume))
}

// A volume is mounted at a folder, shows there, and is unmounted; its files and the
// folder stay.
func TestMountPoints(t *testing.T) {
	l := open(t)
	_, id := l.volume("")
	l.mounts(id)
	l.mount("m", id)
	l.mounts(id, l.below("m")+`\`)
	info, r := l.info(l.path("m")), l.reparse(l.path("m"))
	volume, ok := r.VolumeID()
	if info.Attributes&win32.AttrReparse == 0 || info.ReparseTag != win32.TagMountPoint || !ok || volume != id {
		t.Errorf("the mount point is %+v, %+v", info, r)
	}
	l.write(l.below("m", "file"), "on the volume")
	if list, err := l.list(id); err != nil || !slices.Contains(list, "file") {
		t.Errorf("the volume holds %q, %v", list, err)
	}
	if list, err := l.list(l.path("m")); err != nil || len(list) != 0 {
		t.Errorf("the mount point itself holds %q, %v", list, err)
	}
	if l.info(l.path("m", "file")).FileID != l.info(id+"file").FileID {
		t.Error("the mount point does not lead to the volume")
	}
	l.OK(l.api.DeleteVolumeMountPoint(t.Context(), l.path("m")+`\`))
	l.mounts(id)
	if info := l.info(l.path("m")); info.ReparseTag != 0 || info.Attributes&win32.AttrDirectory == 0 {
		t.Errorf("after the unmount the folder is %+v", info)
	}
	// A mount point that is deleted as a file is takes nothing of the volume with it.
	l.OK(l.api.SetVolumeMountPoint(t.Context(), l.path("m")+`\`, id))
	l.OK(l.remove(l.path("m")))
	l.mounts(id)
	if list, err := l.list(l.path()); err != nil || len(list) != 0 {
		t.Errorf("left: %q, %v", list, err)
	}
	l.holds(id+"file", "on the volume")
}

// What the mount manager refuses it refuses through Windows with the same numbers.
func TestMountPointErrors(t *testing.T) {
	l := open(t)
	_, id := l.volume("")
	_, fat := l.volume("FAT32")
	l.mount("taken", id)
	l.write(l.below("full", "file"), "x")
	l.write(l.below("file"), "x")
	l.OK(l.mkdir(l.path("empty")))
	l.OK(l.mkdir(fat + "folder"))
	for _, tt := range []struct {
		path, volume string
		want         uint32
	}{
		{l.path("empty"), id, win32.ErrInvalidName}, // no final backslash
		{l.path("empty") + `\`, strings.TrimSuffix(id, `\`), win32.ErrInvalidParameter},
		{l.path("empty") + `\`, noVolume, win32.ErrFileNotFound},
		{l.path("missing") + `\`, id, win32.ErrFileNotFound},
		{l.path("full") + `\`, id, win32.ErrDirNotEmpty},
		{l.path("taken") + `\`, id, win32.ErrDirNotEmpty},
		{l.path("file") + `\`, id, win32.ErrDirectory},
		{fat + `folder\`, id, win32.ErrInvalidFunction},
		{`\\?\C:\`, id, win32.ErrDirNotEmpty}, // the letter is in use
	} {
		what := "mount at " + tt.path
		_, err := same(l, what, func(api win32.API) (any, error) {
			return nil, api.SetVolumeMountPoint(t.Context(), tt.path, tt.volume)
		})
		if got := l.CodeOf(err); got != tt.want {
			t.Errorf("%s: Windows error %d, want %d", what, got, tt.want)
		}
	}
	for path, want := range map[string]uint32{
		l.path("empty"): win32.ErrInvalidName, l.path("empty") + `\`: 0, // nothing is mounted there
		l.path("missing") + `\`: win32.ErrFileNotFound, `\\?\Q:\`: win32.ErrFileNotFound,
	} {
		_, err := same(l, "unmount "+path, func(api win32.API) (any, error) {
			return nil, api.DeleteVolumeMountPoint(t.Context(), path)
		})
		if got := l.CodeOf(err); got != want {
			t.Errorf("unmount %s: Windows error %d, want %d", path, got, want)
		}
	}
	for name, want := range map[string]uint32{noVolume: win32.ErrFileNotFound, `C:\`: win32.ErrInvalidName, "": win32.ErrInvalidName} {
		_, err := same(l, "names of "+name, func(api win32.API) ([]string, error) { return api.VolumePathNames(t.Context(), name) })
		if got := l.CodeOf(err); got != want {
			t.Errorf("names of %q: Windows error %d, want %d", name, got, want)
		}
	}
	l.mounts(id, l.below("taken")+`\`)
}

// More names than fit into the first buffer.
func TestManyMountPoints(t *testing.T) {
	l := open(t)
	_, id := l.volume("")
	var want []string
	for i := range 12 {
		name := fmt.Sprintf("%02d%s", i, strings.Repeat("m", 20*i))
		l.mount(name, id)
		want = append(want, l.below(name)+`\`)
	}
	l.mounts(id, want...)
}

// A letter is a mount point too.
func TestDriveLetters(t *testing.T) {
	l := open(t)
	_, id := l.volume("")
	l.OK(l.api.SetVolumeMountPoint(t.Context(), `\\?\Y:\`, id))
	l.mounts(id, `Y:\`)
	l.OK(l.mkdir(`\\?\Y:\folder`))
	if final := l.finalPath(id + "folder"); final != `\\?\Y:\folder` {
		t.Errorf("final path %s", final)
	}
	l.OK(l.api.DeleteVolumeMountPoint(t.Context(), `\\?\Y:\`))
	l.mounts(id)
	if final := l.finalPath(id + "folder"); final != id+"folder" {
		t.Errorf("final path %s", final)
	}
}

// finalPath compares the path that a handle tells, and returns it.
func (l *lab) finalPath(path string) string {
	l.Helper()
	final, err := same(l, "final path of "+path, func(api win32.API) (string, error) {
		return with(l, api, path, lookAccess, func(h win32.Handle) (string, error) { return api.FinalPath(l.Context(), h) })
	})
	l.OK(err)
	return final
}

// The final path is a DOS path where there is one, through a mounted folder too, and
// the volume's own name where there is none.
func TestFinalPaths(t *testing.T) {
	l := open(t)
	_, id := l.volume("")
	l.write(id+`a\File`, "x")
	if final := l.finalPath(id + `A\FILE`); final != id+`a\File` {
		t.Errorf("on a volume without a name: %s", final)
	}
	if final := l.finalPath(id); final != id {
		t.Errorf("its root: %s", final)
	}
	l.mount("m", id)
	for path, want := range map[string]string{
		id:                          l.path("m") + `\`,
		id + `a\file`:               l.path("m", "a", "File"),
		l.path("M") + `\A\FILE`:     l.path("m", "a", "File"),
		l.path("m"):                 l.path("m"), // the mount point, not the volume
		`\\?\c:\`:                   `\\?\C:\`,
		strings.ToUpper(l.path("")): l.path(),
	} {
		if final := l.finalPath(path); final != want {
			t.Errorf("final path of %s is %s, want %s", path, final, want)
		}
	}
}

// The kinds of things that a mount detector meets, C091's five: each is told apart by
// its handle, and the volume's list of names has the mount points and nothing else.
func TestC091_Kinds(t *testing.T) {
	l := open(t)
	_, id := l.volume("")
	gone, missing := l.volume("")
	l.OK(l.mkdir(l.path("dir")))
	l.write(l.below("file"), "x")
	l.OK(l.symlink("symlink", l.below("dir"), true))
	l.mount("mount", id)
	l.mount("dangling", missing)
	l.OK(l.Control.DetachDisk(t.Context(), gone))
	for name, want := range map[string]struct {
		attributes, tag uint32
		target          string
		volume          bool
	}{
		"dir":      {win32.AttrDirectory, 0, "", false},
		"file":     {0, 0, "", false},
		"symlink":  {win32.AttrDirectory | win32.AttrReparse, win32.TagSymlink, l.below("dir"), false},
		"mount":    {win32.AttrDirectory | win32.AttrReparse, win32.TagMountPoint, id, true},
		"dangling": {win32.AttrDirectory | win32.AttrReparse, win32.TagMountPoint, missing, true},
	} {
		info := l.info(l.path(name))
		if info.Attributes&(win32.AttrDirectory|win32.AttrReparse) != want.attributes || info.ReparseTag != want.tag {
			t.Errorf("%s is %+v", name, info)
		}
		if want.tag == 0 {
			continue
		}
		r := l.reparse(l.path(name))
		if _, isVolume := r.VolumeID(); r.Target != want.target || isVolume != want.volume {
			t.Errorf("%s leads to %+v", name, r)
		}
	}
	// A handle with Directory demands a folder; a link to one is none of its own, and is.
	for name, want := range map[string]uint32{"dir": 0, "file": win32.ErrDirectory, "symlink": 0, "mount": 0, "dangling": 0} {
		_, err := same(l, name+" as a folder", func(api win32.API) (any, error) {
			h, err := api.CreateFile(t.Context(), l.path(name), win32.Open{Access: lookAccess, Share: anyShare, Directory: true})
			if err == nil {
				l.OK(api.CloseHandle(h))
			}
			return nil, err
		})
		if got := l.CodeOf(err); got != want {
			t.Errorf("%s as a folder: Windows error %d, want %d", name, got, want)
		}
	}
	l.mounts(id, l.below("mount")+`\`)
	volumes, err := same(l, "volumes", func(api win32.API) ([]string, error) { return api.FindVolumes(t.Context()) })
	if err != nil || !slices.Contains(volumes, id) || slices.Contains(volumes, missing) {
		t.Errorf("volumes %q, %v", volumes, err)
	}
	_, err = same(l, "through the dangling one", func(api win32.API) (win32.Handle, error) {
		return api.CreateFile(t.Context(), l.path("dangling", "x"), win32.Open{Access: lookAccess, Share: anyShare})
	})
	if err == nil {
		t.Error("something was found on a volume that is gone")
	}
	l.OK(l.remove(l.path("dangling")))
	l.OK(l.remove(l.path("mount")))
	l.OK(l.remove(l.path("symlink")))
	l.OK(l.Control.AddFault(t.Context(), sim.Fault{Call: "win32.FindVolumes", Win32: win32.ErrNotEnoughMemory}))
	_, err = l.api.FindVolumes(t.Context())
	l.WantCode(err, win32.ErrNotEnoughMemory)
}
