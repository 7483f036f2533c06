package winos_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// openPath opens a path of drive C, one name after the other, and closes the
// folders on the way: the object itself has to keep them.
func openPath(t *testing.T, os *winos.OS, names ...string) agent.File {
	t.Helper()
	file, err := os.OpenDrive(t.Context(), 'C')
	must(t, err)
	for _, name := range names {
		child, err := file.Open(t.Context(), name)
		must(t, err)
		must(t, file.Close())
		file = child
	}
	t.Cleanup(func() { _ = file.Close() }) // most are closed before
	return file
}

func info(t *testing.T, file agent.File) agent.FileInfo {
	t.Helper()
	i, err := file.Info(t.Context())
	must(t, err)
	return i
}

func TestFiles(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	must(t, node.WriteFile(t.Context(), `C:\base\file.txt`, []byte("x")))
	base := openPath(t, os, "base")
	isTrue(t, info(t, base).Kind == agent.FileFolder, "base is %+v", info(t, base))

	made, err := base.Mkdir(t.Context(), "New Folder")
	must(t, err)
	path, err := made.Path(t.Context())
	isTrue(t, err == nil && path == `C:\base\New Folder`, "path %q, %v", path, err)
	_, err = base.Mkdir(t.Context(), "new folder")
	wantKind(t, err, host.KindExists)
	_, err = base.Open(t.Context(), "missing")
	wantKind(t, err, host.KindNotFound)

	again, err := base.Open(t.Context(), "NEW FOLDER")
	must(t, err)
	isTrue(t, info(t, again).Identity == info(t, made).Identity, "one folder has two identities")
	isTrue(t, info(t, again).Identity != info(t, base).Identity, "two folders have one identity")
	file, err := base.Open(t.Context(), "file.txt")
	must(t, err)
	isTrue(t, info(t, file).Kind == agent.FileRegular, "file is %+v", info(t, file))
	names, err := base.Names(t.Context())
	isTrue(t, err == nil && sameSet(names, []string{"file.txt", "New Folder"}), "names %q, %v", names, err)
	for _, f := range []agent.File{made, again, file, file} {
		must(t, f.Close()) // the second time does nothing
	}
	_, err = os.OpenDrive(t.Context(), 'Q')
	wantKind(t, err, host.KindNotFound)
	isTrue(t, os.SystemDrive() == 'C', "system drive %c", os.SystemDrive())
}

func TestC019_Links(t *testing.T) {
	t.Parallel()
	_, os := newNode(t, sim.Config{})
	root := openPath(t, os)
	for name, target := range map[string]string{
		"absolute": `C:\somewhere\else`, "share": `\\srv\share\x`, "relative": `..\up`, "volume": noVolume,
	} {
		must(t, root.Symlink(t.Context(), name, target, true))
		wantKind(t, root.Symlink(t.Context(), name, target, true), host.KindExists)
		link, err := root.Open(t.Context(), name)
		must(t, err)
		got := info(t, link)
		isTrue(t, got.Kind == agent.FileSymlink && got.Target == target && got.FolderLink, "link to %s is %+v", target, got)
		must(t, link.Remove(t.Context()))
		must(t, link.Close())
		_, err = root.Open(t.Context(), name)
		wantKind(t, err, host.KindNotFound)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	must(t, node.WriteFile(t.Context(), `C:\t\sub\file`, []byte("x")))
	sub := openPath(t, os, "t", "sub")
	wantKind(t, sub.Remove(t.Context()), host.KindPrecondition)
	names, err := sub.Names(t.Context()) // still usable
	isTrue(t, err == nil && len(names) == 1, "names %q, %v", names, err)
	file, err := sub.Open(t.Context(), "file")
	must(t, err)
	must(t, file.Remove(t.Context()))
	must(t, file.Close())
	must(t, sub.Remove(t.Context()))
	must(t, sub.Close())
	names, err = node.ListDir(t.Context(), `C:\t`)
	isTrue(t, err == nil && len(names) == 0, "left %q, %v", names, err)
	root := openPath(t, os)
	wantKind(t, root.Remove(t.Context()), host.KindPrecondition)
}

// While an object is open neither it nor the folders above it can be moved or
// deleted, although only the object itself is held.
func TestC096_OpenObjectsStayPut(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	must(t, node.MakeDir(t.Context(), `C:\a\b\c`))
	leaf := openPath(t, os, "a", "b", "c")
	for _, path := range []string{`C:\a\b\c`, `C:\a\b`, `C:\a`} {
		isTrue(t, node.RemoveFile(t.Context(), path) != nil, "%s was removed while held", path)
	}
	must(t, leaf.Close())
	must(t, node.RemoveFile(t.Context(), `C:\a\b\c`))
}

// A removal opens the object a second time; another object that has come in its
// place stays.
func TestC096_RemoveOfASwappedObject(t *testing.T) {
	t.Parallel()
	node, _ := newNode(t, sim.Config{})
	os := newOS(node, swappedAPI{node, "other"})
	must(t, node.WriteFile(t.Context(), `C:\d\victim`, []byte("old")))
	must(t, node.WriteFile(t.Context(), `C:\d\other`, []byte("new")))
	victim := openPath(t, os, "d", "victim")
	wantKind(t, victim.Remove(t.Context()), host.KindBusy)
	must(t, victim.Close())
	for path, want := range map[string]string{`C:\d\victim`: "old", `C:\d\other`: "new"} {
		data, err := node.ReadFile(t.Context(), path)
		isTrue(t, err == nil && string(data) == want, "%s holds %q, %v", path, data, err)
	}
}

func TestMount(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	_, id := newVolume(t, node, os)
	must(t, node.MakeDir(t.Context(), `C:\mnt\v`))
	folder := openPath(t, os, "mnt", "v")
	must(t, os.Mount(t.Context(), id, folder))
	must(t, folder.Close())

	point := openPath(t, os, "mnt", "v")
	got := info(t, point)
	isTrue(t, got.Kind == agent.FileMountPoint && got.Target == id, "mount point is %+v", got)
	paths, err := os.MountPaths(t.Context(), id)
	isTrue(t, err == nil && len(paths) == 1 && strings.EqualFold(paths[0], `C:\mnt\v\`), "paths %q, %v", paths, err)
	isTrue(t, os.Mount(t.Context(), id, point) != nil, "mounted on a mount point")

	must(t, node.WriteFile(t.Context(), `C:\mnt\v\data`, []byte("kept")))
	root, err := os.OpenVolume(t.Context(), id)
	must(t, err)
	names, err := root.Names(t.Context())
	isTrue(t, err == nil && len(names) > 0 && strings.Contains(strings.Join(names, " "), "data"), "volume holds %q, %v", names, err)
	must(t, root.Close())

	must(t, os.Unmount(t.Context(), point))
	wantKind(t, os.Unmount(t.Context(), point), host.KindPrecondition)
	isTrue(t, info(t, point).Kind == agent.FileFolder, "after unmount %+v", info(t, point))
	must(t, os.Mount(t.Context(), id, point))
	must(t, point.Close())

	data, err := node.ReadFile(t.Context(), `C:\mnt\v\data`)
	isTrue(t, err == nil && string(data) == "kept", "%q, %v", data, err)
}

// The mount manager may want the folder for itself.
func TestMountManagerAlone(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	_, id := newVolume(t, node, os)
	must(t, node.MakeDir(t.Context(), `C:\mnt`))
	folder := openPath(t, os, "mnt")
	addFault(t, node, sim.Fault{Call: "win32.SetVolumeMountPoint", Win32: 32})
	must(t, os.Mount(t.Context(), id, folder))
	addFault(t, node, sim.Fault{Call: "win32.DeleteVolumeMountPoint", Win32: 32})
	must(t, os.Unmount(t.Context(), folder))
	addFault(t, node, sim.Fault{Call: "win32.SetVolumeMountPoint", Count: 2, Win32: 32})
	wantKind(t, os.Mount(t.Context(), id, folder), host.KindBusy)
	isTrue(t, info(t, folder).Kind == agent.FileFolder, "folder became %+v", info(t, folder))
	isTrue(t, node.RemoveFile(t.Context(), `C:\mnt`) != nil, "the folder is no longer held")
	must(t, folder.Close())
}

func TestC027_RemoveOfAMountPoint(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	_, id := newVolume(t, node, os)
	must(t, node.MakeDir(t.Context(), `C:\mnt\v`))
	folder := openPath(t, os, "mnt", "v")
	must(t, os.Mount(t.Context(), id, folder))
	must(t, folder.Close())
	must(t, node.WriteFile(t.Context(), `C:\mnt\v\data`, []byte("kept")))

	point := openPath(t, os, "mnt", "v")
	must(t, point.Remove(t.Context()))
	must(t, point.Close())
	names, err := node.ListDir(t.Context(), `C:\mnt`)
	isTrue(t, err == nil && len(names) == 0, "left %q, %v", names, err)
	paths, err := os.MountPaths(t.Context(), id)
	isTrue(t, err == nil && len(paths) == 0, "still mounted at %q, %v", paths, err)

	must(t, node.MakeDir(t.Context(), `C:\mnt\again`))
	folder = openPath(t, os, "mnt", "again")
	must(t, os.Mount(t.Context(), id, folder))
	must(t, folder.Close())
	data, err := node.ReadFile(t.Context(), `C:\mnt\again\data`)
	isTrue(t, err == nil && string(data) == "kept", "%q, %v", data, err)
}

func TestMountRefusesAFullFolder(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	_, id := newVolume(t, node, os)
	must(t, node.WriteFile(t.Context(), `C:\full\file`, []byte("x")))
	folder := openPath(t, os, "full")
	wantKind(t, os.Mount(t.Context(), id, folder), host.KindPrecondition)
	isTrue(t, info(t, folder).Kind == agent.FileFolder, "folder became %+v", info(t, folder))
}

// The mount manager is given a path. When that leads elsewhere the mount is
// undone, and what was opened stays as it was.
func TestC096_MountIsProvenByHandle(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	_, id := newVolume(t, node, os)
	must(t, node.MakeDir(t.Context(), `C:\right`))
	must(t, node.MakeDir(t.Context(), `C:\wrong`))
	deceived := newOS(node, elsewhereAPI{node, `\\?\C:\wrong`})
	root, err := deceived.OpenDrive(t.Context(), 'C')
	must(t, err)
	folder, err := root.Open(t.Context(), "right")
	must(t, err)
	wantKind(t, deceived.Mount(t.Context(), id, folder), host.KindPrecondition)
	must(t, folder.Close())
	must(t, root.Close())
	paths, err := os.MountPaths(t.Context(), id)
	isTrue(t, err == nil && len(paths) == 0, "mounted at %q, %v", paths, err)
}

// A file that another process keeps for itself exists, and can be described.
func TestOpenOfAFileInUse(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	must(t, node.WriteFile(t.Context(), `C:\d\locked`, []byte("x")))
	folder := openPath(t, os, "d")
	const readData, nobodyElse = win32.FileListDir, 0
	h, err := node.CreateFile(t.Context(), `C:\d\locked`, win32.Open{Access: readData, Share: nobodyElse})
	must(t, err)
	locked, err := folder.Open(t.Context(), "locked")
	must(t, err)
	isTrue(t, info(t, locked).Kind == agent.FileRegular, "locked file is %+v", info(t, locked))
	wantKind(t, locked.Remove(t.Context()), host.KindBusy)
	must(t, locked.Close())
	must(t, node.CloseHandle(h))

	must(t, node.MakeDir(t.Context(), `C:\d\held`))
	h, err = node.CreateFile(t.Context(), `C:\d\held`, win32.Open{Access: readData, Share: nobodyElse})
	must(t, err)
	_, err = folder.Open(t.Context(), "held") // a folder has to be held by us too
	wantKind(t, err, host.KindBusy)
	must(t, node.CloseHandle(h))
}

func TestReparseKinds(t *testing.T) {
	t.Parallel()
	junction, err := win32.EncodeSymlink(`C:\target`)
	must(t, err)
	junction = slices.Delete(junction, 16, 20) // a junction is laid out as a link is, without the flags
	binary.LittleEndian.PutUint32(junction, win32.TagMountPoint)
	binary.LittleEndian.PutUint16(junction[4:], uint16(len(junction)-8))
	for _, tt := range []struct {
		name   string
		buffer []byte
		want   agent.FileInfo
	}{
		{"junction", junction, agent.FileInfo{Kind: agent.FileJunction, Target: `C:\target`}},
		{"foreign link", []byte{0x1D, 0, 0, 0xA0, 4, 0, 0, 0, 2, 0, 0, 0}, agent.FileInfo{Kind: agent.FileReparse}},
		{"deduplicated content", []byte{0x13, 0, 0, 0x80, 4, 0, 0, 0, 2, 0, 0, 0}, agent.FileInfo{Kind: agent.FileFolder}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node, os := newNode(t, sim.Config{})
			must(t, node.MakeDir(t.Context(), `C:\point`))
			open := win32.Open{Access: win32.FileWriteAttr, Share: win32.ShareRead | win32.ShareWrite}
			h, err := node.CreateFile(t.Context(), `C:\point`, open)
			must(t, err)
			_, err = node.DeviceIoControl(t.Context(), h, win32.FsctlSetReparsePoint, tt.buffer, nil)
			must(t, err)
			must(t, node.CloseHandle(h))
			point := openPath(t, os, "point")
			got := info(t, point)
			tt.want.Identity = got.Identity
			isTrue(t, got == tt.want, "info %+v, want %+v", got, tt.want)
			must(t, point.Close())
		})
	}
}

// The mount manager says success for a path at which nothing is mounted.
func TestUnmountIsProvenByHandle(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	_, id := newVolume(t, node, os)
	must(t, node.MakeDir(t.Context(), `C:\mnt`))
	folder := openPath(t, os, "mnt")
	must(t, os.Mount(t.Context(), id, folder))
	must(t, folder.Close())
	deceived := newOS(node, elsewhereAPI{node, `\\?\C:\Windows`})
	point := openPath(t, deceived, "mnt")
	wantKind(t, deceived.Unmount(t.Context(), point), host.KindBusy)
	wantKind(t, point.Remove(t.Context()), host.KindBusy)
	isTrue(t, info(t, point).Kind == agent.FileMountPoint, "mount point became %+v", info(t, point))
	must(t, point.Close())
}
