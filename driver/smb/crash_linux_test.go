package smb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/test/samba"
)

// A controller that ends while it copies leaves nothing that is taken for a volume;
// the call that comes again makes all of it.
func TestHalfACloneIsNoVolume(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	source := b.create("source", nil)
	const files = 500
	for i := range files {
		b.write(fmt.Sprintf("%s/%d/f", b.folder(source.ID), i), fmt.Sprint(i))
	}
	command := exec.CommandContext(b.ctx, os.Args[0])
	command.Env = append(os.Environ(), envCloneAddress+"="+b.server.Address(), envCloneUser+"="+b.server.User,
		envClonePassword+"="+b.server.Password, envCloneSource+"="+b.source)
	var output bytes.Buffer
	command.Stderr = &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	half := b.disk(privateFolder, folderNew, "clone")
	for copied := 0; copied < 20; {
		entries, _ := os.ReadDir(half)
		copied = len(entries)
		select {
		case <-b.ctx.Done():
			t.Fatal("nothing is copied: ", output.String())
		case <-time.After(time.Millisecond):
		}
	}
	_ = command.Process.Kill()
	if err := command.Wait(); err == nil {
		t.Fatal("the copy was complete before its end")
	}
	b.wantMissing(b.disk("clone"))
	id := "smb:" + b.source + "/clone"
	if _, err := b.GetVolume(b.ctx, csikit.VolumeRequest{VolumeID: id}); !errors.Is(err, csikit.ErrNotFound) {
		t.Errorf("half a clone: %v", err)
	}
	if page, err := b.ListVolumes(b.ctx, csikit.Page{}); err != nil || len(page.Volumes) != 1 {
		t.Errorf("list: %+v, %v", page, err)
	}
	early := map[string]os.FileInfo{} // what is whole already
	for i := range files {
		name := fmt.Sprintf("%d/f", i)
		if info, err := os.Stat(half + "/" + name); err == nil && len(early) < 10 && info.ModTime().Truncate(100*time.Nanosecond).Equal(modTime(t, b.folder(source.ID)+"/"+name)) {
			early[name] = info
		}
	}
	// Meanwhile the source changes.
	b.write(b.folder(source.ID)+"/new/f", "new")
	b.write(half+"/gone/f", "not in the source any more")
	b.write(half+"/part", "a par")
	b.write(b.folder(source.ID)+"/part", "a part")
	b.write(half+"/kind/f", "a folder before")
	b.write(b.folder(source.ID)+"/kind", "a file now")
	clone := func() error {
		_, err := b.CloneVolume(b.ctx, csikit.CreateVolumeRequest{Name: "clone", Source: &csikit.ContentSource{VolumeID: source.ID}})
		return err
	}
	err := clone()
	for errors.Is(err, csikit.ErrInUse) && b.ctx.Err() == nil { // a busy server notices late that the first has gone
		err = clone()
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		b.wantFile(fmt.Sprintf("%s/%d/f", b.folder(id), i), fmt.Sprint(i))
	}
	for name, content := range map[string]string{"new/f": "new", "part": "a part", "kind": "a file now"} {
		b.wantFile(b.folder(id)+"/"+name, content)
	}
	b.wantMissing(b.folder(id) + "/gone")
	if len(early) == 0 {
		t.Error("nothing was whole before")
	}
	for name, before := range early {
		if after, err := os.Stat(b.folder(id) + "/" + name); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was copied twice: %v", name, err)
		}
	}
	b.delete(id)
	b.wantEmptyTrash()
}

// What a delete did not come to is done by the next.
func TestDeleteContinues(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	volume := b.create("v", nil)
	// As a delete leaves it that ended after the rename, and a clone before that.
	b.write(b.disk(privateFolder, folderTrash, "v", "0123/a/b"), "old")
	b.write(b.disk(privateFolder, folderNew, "v", "a"), "half")
	if err := os.Rename(b.folder(volume.ID), b.disk(privateFolder, folderTrash, "v", "4567")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.GetVolume(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID}); !errors.Is(err, csikit.ErrNotFound) {
		t.Errorf("half a volume: %v", err)
	}
	b.delete(volume.ID)
	b.wantEmptyTrash()
	b.wantMissing(b.disk(recordPath("v")...))
}

// A volume that is in use is not half removed.
func TestDeleteOfAVolumeInUse(t *testing.T) {
	b := newBed(t, samba.Options{}, func(c *Config) {})
	volume := b.create("v", nil)
	b.write(b.folder(volume.ID)+"/a/f", "data")
	key, err := parseVolumeID(volume.ID)
	if err != nil {
		t.Fatal(err)
	}
	err = b.in(b.ctx, key.at, nil, func(r *root) error {
		held, err := r.share.Open(r.path("v", "a", "f"))
		if err != nil {
			return err
		}
		err = b.DeleteVolume(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID})
		return errors.Join(err, held.Close())
	})
	if err != nil && !errors.Is(err, csikit.ErrInUse) {
		t.Errorf("delete: %v", err)
	}
	if err == nil {
		t.Log("this server lets a folder with open files be renamed")
	}
	b.delete(volume.ID)
	b.wantEmptyTrash()
}

// Folders that were not made here are left alone, by all calls.
func TestForeignFoldersAreLeftAlone(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	b.write(b.disk("mine", "f"), "precious")
	id := "smb:" + b.source + "/mine"
	if _, err := b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{Name: "mine"}); !errors.Is(err, csikit.ErrExists) {
		t.Errorf("create: %v", err)
	}
	if err := b.DeleteVolume(b.ctx, csikit.VolumeRequest{VolumeID: id}); !errors.Is(err, csikit.ErrPrecondition) {
		t.Errorf("delete: %v", err)
	}
	if _, err := b.GetVolume(b.ctx, csikit.VolumeRequest{VolumeID: id}); !errors.Is(err, csikit.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if _, err := b.CloneVolume(b.ctx, csikit.CreateVolumeRequest{Name: "c", Source: &csikit.ContentSource{VolumeID: id}}); !errors.Is(err, csikit.ErrNotFound) {
		t.Errorf("clone: %v", err)
	}
	b.wantFile(b.disk("mine", "f"), "precious")
}

func modTime(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime().Truncate(100 * time.Nanosecond) // as SMB has it
}
