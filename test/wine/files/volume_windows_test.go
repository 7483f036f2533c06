package files

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// The list of volumes is the node's, and every one tells the same of itself through
// Windows as at the node.
func TestVolumes(t *testing.T) {
	l := open(t)
	_, raw := l.raw()
	created := map[string]string{"": raw}
	for _, fileSystem := range []string{"NTFS", "ReFS", "FAT32", "exFAT"} {
		_, created[fileSystem] = l.volume(fileSystem)
	}
	all, err := same(l, "volumes", func(api win32.API) ([]string, error) { return api.FindVolumes(t.Context()) })
	l.OK(err)
	for fileSystem, id := range created {
		if !slices.Contains(all, id) {
			t.Errorf("%s is not among %q", id, all)
		}
		info, err := l.volumeInfo(id)
		_, spaceErr := l.space(id)
		if fileSystem == "" {
			l.WantCode(err, win32.ErrUnrecognizedVolume)
			l.WantCode(spaceErr, win32.ErrUnrecognizedVolume)
		} else if err != nil || spaceErr != nil || !strings.EqualFold(info.FileSystem, fileSystem) || !strings.EqualFold(info.Label, "data") || info.Serial == 0 {
			t.Errorf("%s is %+v, %v, %v", fileSystem, info, err, spaceErr)
		}
	}
	for _, path := range []string{`\\?\C:\`, noVolume, `\\?\Q:\`, l.path("missing") + `\`} {
		_, _ = l.volumeInfo(path)
		_, _ = l.space(path)
	}
}

func (l *lab) volumeInfo(root string) (win32.VolumeInfo, error) {
	l.Helper()
	return same(l, "information of "+root, func(api win32.API) (win32.VolumeInfo, error) {
		return api.VolumeInformation(l.Context(), root)
	})
}

// space compares the space of a volume: total and free bytes.
func (l *lab) space(path string) ([2]uint64, error) {
	l.Helper()
	return same(l, "space of "+path, func(api win32.API) ([2]uint64, error) {
		total, free, err := api.DiskFreeSpace(l.Context(), path)
		return [2]uint64{total, free}, err
	})
}

// The space is that of the volume behind the path, and files take theirs of it.
func TestDiskFreeSpace(t *testing.T) {
	l := open(t)
	_, id := l.volume("")
	before, err := l.space(id)
	if err != nil || before[0] < uint64(64*mib) || before[1] > before[0] {
		t.Fatalf("space %d, %v", before, err)
	}
	l.write(id+"file", strings.Repeat("x", int(4*mib)))
	after, err := l.space(id)
	if err != nil || after[0] != before[0] || after[1] > before[1]-uint64(4*mib) {
		t.Errorf("space %d after 4 MiB were written, before %d, %v", after, before, err)
	}
	l.mount("m", id)
	if behind, err := l.space(l.path("m") + `\`); err != nil || behind != after {
		t.Errorf("space behind the mount point %d, want %d, %v", behind, after, err)
	}
}

// A read-only disk makes a read-only volume.
func TestReadOnlyVolume(t *testing.T) {
	l := open(t)
	disk, id := l.volume("")
	l.write(id+"file", "x")
	l.OK(l.past.SetDiskReadOnly(t.Context(), disk, true))
	if info, err := l.volumeInfo(id); err != nil || info.Flags&win32.ReadOnlyVolumeFlag == 0 {
		t.Errorf("information %+v, %v", info, err)
	}
	l.WantCode(l.mkdir(id+"folder"), win32.ErrWriteProtect)
	_, err := with(l, l.api, id, holdAccess, func(h win32.Handle) (win32.Handle, error) {
		return l.api.OpenAt(t.Context(), h, "folder", win32.Open{Access: holdAccess, Share: anyShare, Create: true, Directory: true})
	})
	l.WantCode(err, win32.ErrWriteProtect)
	l.WantCode(l.remove(id+"file"), win32.ErrWriteProtect)
}

// A volume that is pulled while things on it are open.
func TestVolumeGone(t *testing.T) {
	l := open(t)
	disk, id := l.volume("")
	l.write(id+"file", "x")
	root, file := l.on(id, holdAccess), l.on(id+"file", holdAccess)
	l.OK(l.Control.DetachDisk(t.Context(), disk))
	_, err := l.api.ReadDir(t.Context(), root)
	l.WantCode(err, win32.ErrDevNotConnected)
	_, err = l.api.OpenAt(t.Context(), root, "file", win32.Open{Access: lookAccess, Share: anyShare})
	l.WantCode(err, win32.ErrDevNotConnected)
	_, err = l.api.Info(t.Context(), file)
	l.WantCode(err, win32.ErrDevNotConnected)
	_, err = l.api.ReadAt(t.Context(), file, make([]byte, 1), 0)
	l.WantCode(err, win32.ErrDevNotConnected)
	_, err = l.volumeInfo(id)
	l.WantCode(err, win32.ErrPathNotFound)
}

// The attributes of remote paths, and the numbers of what is wrong with a server.
func TestRemoteAttributes(t *testing.T) {
	l := open(t)
	server := sim.SMBServer{
		Name: "filesrv", Users: map[string]string{"u": "p"}, Shares: []sim.SMBShare{{Name: "share", Folder: "files-share"}},
	}
	l.OK(l.Control.SetSMBServer(t.Context(), server))
	t.Cleanup(func() { l.OK(l.Control.RemoveSMBServer(context.Background(), "filesrv")) })
	l.OK(l.past.CreateSMBMapping(t.Context(), agent.SMBRequest{Share: `\\filesrv\share`, Username: "u", Password: "p"}))
	if attributes, err := l.attributes(`\\?\UNC\filesrv\share`); err != nil || attributes&win32.AttrDirectory == 0 {
		t.Errorf("the share has attributes %X, %v", attributes, err)
	}
	for _, path := range []string{
		`\\filesrv\share`, `\\?\UNC\filesrv\share`, `\\?\unc\FILESRV\SHARE\`, `\\filesrv\share\missing`, `\\filesrv\missing`,
		`\\nobody\share`, `\\?\UNC\nobody\share\x`, `\\filesrv`, `\\?\UNC\`, l.path(), l.path("missing"), noVolume,
	} {
		_, _ = l.attributes(path)
	}
	l.OK(l.past.RemoveSMBMapping(t.Context(), `\\filesrv\share`))
	for _, code := range []uint32{
		win32.ErrBadNetPath, win32.ErrUnexpNetErr, win32.ErrNetnameDeleted, win32.ErrSemTimeout,
		win32.ErrNoNetOrBadPath, win32.ErrHostUnreachable, win32.ErrLogonFailure,
	} {
		server.Failure = code
		l.OK(l.Control.SetSMBServer(t.Context(), server))
		_, err := l.attributes(`\\?\UNC\filesrv\share`)
		l.WantCode(err, code)
	}
}

func (l *lab) attributes(path string) (uint32, error) {
	l.Helper()
	got, err := same(l, "attributes of "+path, func(api win32.API) (string, error) {
		attributes, err := api.FileAttributes(l.Context(), path)
		if err != nil {
			attributes = 0 // Windows fills it all the same
		}
		return fmt.Sprint(attributes), err
	})
	var attributes uint32
	_, scanErr := fmt.Sscan(got, &attributes)
	l.OK(scanErr)
	return attributes, err
}
