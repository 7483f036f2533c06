package tree

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestSetVolumeMountPointCodes(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(os.Mkdir(b.host("e"), 0o755))
	b.must(b.AttachVolume(Volume{ID: volumeE, Folder: b.host("e")})) // ReFS
	b.must(b.WriteFile(ctx, `C:\full\f`, nil))
	for _, folder := range []string{`C:\empty`, `C:\used`, `C:\held`, volumeE + `x`} {
		b.must(b.MakeFolder(ctx, folder))
	}
	b.must(b.symlink(`C:\`, "link", `C:\empty`, true))
	b.must(b.SetVolumeMountPoint(ctx, `C:\used\`, volumeD))
	held, err := b.CreateFile(ctx, `C:\held`, win32.Open{Access: win32.FileListDir, Share: win32.ShareRead})
	b.must(err)
	defer func() { b.must(b.CloseHandle(held)) }()
	const unknown = `\\?\Volume{bbbbbbbb-0000-0000-0000-00000000000c}\`
	for _, test := range []struct {
		path, volume string
		code         uint32
	}{
		{`C:\empty`, volumeD, win32.ErrInvalidName},
		{`C:\empty\`, volumeD[:len(volumeD)-1], win32.ErrInvalidParameter},
		{`C:\empty\`, `D:\`, win32.ErrInvalidParameter},
		{volumeC, volumeD, win32.ErrInvalidParameter},
		{`C:\empty\`, unknown, win32.ErrFileNotFound},
		{`C:\none\`, volumeD, win32.ErrFileNotFound},
		{`C:\none\none\`, volumeD, win32.ErrPathNotFound},
		{`C:\full\`, volumeD, win32.ErrDirNotEmpty},
		{`C:\used\`, volumeD, win32.ErrDirNotEmpty},
		{`C:\link\`, volumeD, win32.ErrDirNotEmpty},
		{`C:\full\f\`, volumeD, win32.ErrDirectory},
		{`C:\held\`, volumeD, win32.ErrSharingViolation},
		{volumeE + `x\`, volumeD, win32.ErrInvalidFunction},
		{`C:\`, volumeD, win32.ErrDirNotEmpty},
		{`Q:\`, unknown, win32.ErrFileNotFound},
		{`Q:\`, volumeC, win32.ErrInvalidParameter},
		{`\\?\Q:\`, volumeE, 0},
		{`C:\empty\`, volumeD, 0},
	} {
		if got := code(t, b.SetVolumeMountPoint(ctx, test.path, test.volume)); got != test.code {
			t.Errorf("SetVolumeMountPoint(%s, %s): code %d, want %d", test.path, test.volume, got, test.code)
		}
	}
	if got, want := b.MountPaths(volumeD), []string{`C:\empty\`, `C:\used\`}; !slices.Equal(got, want) {
		t.Errorf("mount paths %q, want %q", got, want)
	}
	for _, test := range []struct {
		path string
		code uint32
	}{
		{`C:\used`, win32.ErrInvalidName}, {`C:\none\`, win32.ErrFileNotFound}, {`Y:\`, win32.ErrFileNotFound},
		{`C:\full\`, 0}, {`C:\link\`, 0}, {`C:\used\`, 0}, {`C:\used\`, 0}, {`Q:\`, 0},
	} {
		if got := code(t, b.DeleteVolumeMountPoint(ctx, test.path)); got != test.code {
			t.Errorf("DeleteVolumeMountPoint(%s): code %d, want %d", test.path, got, test.code)
		}
	}
	if info := b.info(`C:\link`); info.ReparseTag != win32.TagSymlink {
		t.Errorf("the link went with the mount points: %+v", info)
	}
	if _, held := b.Drives()['Q']; held {
		t.Error("the letter is still there")
	}
}

func TestVolumePathNames(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	_, err := b.VolumePathNames(ctx, `D:\`)
	b.wantCode(err, win32.ErrInvalidName)
	_, err = b.VolumePathNames(ctx, volumeE)
	b.wantCode(err, win32.ErrFileNotFound)
	b.must(os.Mkdir(b.host("e"), 0o755))
	b.must(b.AttachVolume(Volume{ID: volumeE, Folder: b.host("e"), HostsMountPoints: true}))
	b.must(b.MakeFolder(ctx, volumeE+`inner`))
	b.must(b.SetVolumeMountPoint(ctx, volumeE+`inner\`, volumeD))
	if got := b.MountPaths(volumeD); len(got) != 0 { // E has no DOS path
		t.Errorf("mount paths %q", got)
	}
	if path, err := b.FinalPath(ctx, b.open(volumeD)); path != volumeD || err != nil {
		t.Errorf("final path %q, %v", path, err)
	}
	b.must(b.MakeFolder(ctx, `C:\outer`))
	b.must(b.SetVolumeMountPoint(ctx, `C:\outer\`, volumeE))
	if got, want := b.MountPaths(volumeD), []string{`C:\outer\inner\`}; !slices.Equal(got, want) {
		t.Errorf("mount paths %q, want %q", got, want)
	}
	b.must(b.Rename(ctx, `C:\outer`, `C:\moved`))
	b.SetDrive('z', volumeD)
	b.SetDrive('x', volumeD)
	if got, want := b.MountPaths(volumeD), []string{`X:\`, `Z:\`, `C:\moved\inner\`}; !slices.Equal(got, want) {
		t.Errorf("mount paths %q, want %q", got, want)
	}
}

func TestC091_MountPointOfAMissingVolume(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\m`))
	b.must(b.SetVolumeMountPoint(ctx, `C:\m\`, volumeD))
	b.must(b.WriteFile(ctx, `C:\m\f`, []byte("kept")))
	h := b.open(`C:\m\f`)
	b.DetachVolume(volumeD)
	b.DetachVolume(volumeD) // nothing left to do
	for _, err := range []error{b.Delete(ctx, h), b.FlushFileBuffers(ctx, h)} {
		b.wantCode(err, win32.ErrDevNotConnected)
	}
	_, err := b.Info(ctx, h)
	b.wantCode(err, win32.ErrDevNotConnected)
	_, err = b.ReadFile(ctx, `C:\m\f`)
	b.wantCode(err, win32.ErrPathNotFound)
	if err := os.WriteFile(b.host("c", "m", "g"), nil, 0o644); hostLinks && err == nil {
		t.Error("a process of the host still writes into the volume")
	}
	if info := b.info(`C:\m`); info.ReparseTag != win32.TagMountPoint {
		t.Errorf("the mount point: %+v", info)
	}
	b.wantCode(b.SetVolumeMountPoint(ctx, `C:\m\`, volumeD), win32.ErrFileNotFound)

	b.must(b.AttachVolume(Volume{ID: volumeD})) // back, without a file system
	_, err = b.ReadFile(ctx, `C:\m\f`)
	b.wantCode(err, win32.ErrUnrecognizedVolume)
	if id, err := b.VolumeAt(ctx, volumeD); id != volumeD || err != nil {
		t.Errorf("volume %q, %v", id, err)
	}
	if got := b.MountPaths(volumeD); !slices.Equal(got, []string{`C:\m\`}) {
		t.Errorf("mount paths %q", got)
	}
	b.must(b.AttachVolume(Volume{ID: volumeD, Folder: b.d, HostsMountPoints: true}))
	if b.read(`C:\m\f`) != "kept" {
		t.Error("the file is not back")
	}
	b.hostLeads([]string{"c", "m"}, volumeD)
	_, err = b.Info(ctx, h)
	b.wantCode(err, win32.ErrDevNotConnected) // an old handle stays dead
}

func TestMountKeepsHandlesAndIdentity(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\m`))
	held, err := b.CreateFile(ctx, `C:\m`, win32.Open{Access: win32.FileListDir, Share: win32.ShareRead | win32.ShareWrite})
	b.must(err)
	before, err := b.Info(ctx, held)
	b.must(err)
	seen := map[[16]byte]bool{before.FileID: true}
	for range 3 {
		b.must(b.SetVolumeMountPoint(ctx, `C:\m\`, volumeD))
		mounted, err := b.Info(ctx, held)
		if err != nil || mounted.ReparseTag != win32.TagMountPoint || mounted.FileID != before.FileID {
			t.Fatalf("mounted: %+v, %v, before %+v", mounted, err, before)
		}
		b.must(b.DeleteVolumeMountPoint(ctx, `C:\m\`))
		if after, err := b.Info(ctx, held); err != nil || after != before {
			t.Fatalf("unmounted: %+v, %v, before %+v", after, err, before)
		}
	}
	b.must(b.CloseHandle(held))
	if after := b.info(`C:\m`); after != before {
		t.Fatalf("reopened: %+v, before %+v", after, before)
	}
	for _, name := range []string{"1", "2", "3", "4", "5", "6"} { // would get a number that is free again
		b.must(b.MakeFolder(ctx, `C:\`+name))
		id := b.info(`C:\` + name).FileID
		if seen[id] {
			t.Fatalf("folder %s has the id of another", name)
		}
		seen[id] = true
	}
	b.must(b.delete(`C:\m`))
	if len(b.worn) != 0 {
		t.Errorf("%d ids kept for nothing", len(b.worn))
	}
}

func TestBorrowedIdsOfRemovedFoldersAreDropped(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	for range wornLimit + 10 {
		b.must(b.MakeFolder(ctx, `C:\m`))
		b.must(b.SetVolumeMountPoint(ctx, `C:\m\`, volumeD))
		b.must(b.DeleteVolumeMountPoint(ctx, `C:\m\`))
		b.must(os.Remove(b.host("c", "m"))) // as a kubelet does
	}
	if len(b.worn) > wornLimit {
		t.Errorf("%d ids kept", len(b.worn))
	}
}

func TestRemoteFolders(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	for _, folder := range []string{"share", "other"} {
		b.must(os.Mkdir(b.host(folder), 0o755))
	}
	b.must(os.WriteFile(b.host("share", "f"), []byte("remote"), 0o644))
	b.must(os.Mkdir(b.host("share", "d"), 0o755))
	answer := struct {
		folder string
		code   uint32
	}{b.host("share"), 0}
	b.SetRemote(func(_ context.Context, server, share string) (string, uint32) {
		if server != "SRV" && server != "srv" || share != "sh" {
			return "", win32.ErrBadNetName
		}
		return answer.folder, answer.code
	})
	b.must(b.symlink(`C:\`, "pv", `\\srv\sh`, true))
	b.must(b.symlink(`C:\`, "chain", `C:\pv`, true))
	for _, path := range []string{`\\srv\sh\F`, `\\?\UNC\SRV\sh\f`, `C:\pv\f`, `C:\chain\f`} {
		if got := b.read(path); got != "remote" {
			t.Errorf("%s: read %q", path, got)
		}
	}
	if b.info(`\\srv\sh\f`) != b.info(`C:\chain\f`) {
		t.Error("two identities of one file")
	}
	if path, err := b.FinalPath(ctx, b.open(`C:\pv\f`)); path != `\\?\UNC\srv\sh\f` || err != nil {
		t.Errorf("final path %q, %v", path, err)
	}
	if id, err := b.VolumeAt(ctx, `C:\chain`); id != `\\srv\sh` || err != nil {
		t.Errorf("volume %q, %v", id, err)
	}
	if attributes, err := b.FileAttributes(ctx, `\\srv\sh`); attributes != win32.AttrDirectory || err != nil {
		t.Errorf("attributes %#x, %v", attributes, err)
	}
	b.must(b.symlink(`\\srv\sh\d`, "link", `..\f`, false))
	_, err := b.ReadFile(ctx, `\\srv\sh\d\link`)
	b.wantCode(err, errSymlinkClassDisabled)
	_, err = b.FileAttributes(ctx, `\\srv\none\x`)
	b.wantCode(err, win32.ErrBadNetName)
	b.hostLeads([]string{"c", "pv"}, `\\srv\sh\`)

	answer.code = win32.ErrLogonFailure
	b.Refresh(ctx)
	_, err = b.FileAttributes(ctx, `C:\pv\f`)
	b.wantCode(err, win32.ErrLogonFailure)
	if _, err := os.Stat(b.host("c", "pv", "f")); hostLinks && err == nil {
		t.Error("the host still reaches the share")
	}
	answer.folder, answer.code = b.host("other"), 0
	b.Refresh(ctx)
	b.hostLeads([]string{"c", "pv"}, `\\srv\sh\`)
	b.must(os.WriteFile(b.host("other", "h"), []byte("moved"), 0o644))
	if b.read(`C:\pv\h`) != "moved" {
		t.Error("the share is still in its old folder")
	}
}
