package smb

import (
	"errors"
	"os"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/test/samba"
)

// Links that somebody made on the server's disk do not lead a delete to what is not
// of the volume, whether Samba shows them or not.
func TestDeleteFollowsNoLink(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	outside := t.TempDir()
	other := b.create("other", nil)
	kept := []string{b.folder(other.ID) + "/keep", b.folder(other.ID) + "/deep/keep", outside + "/keep"}
	for _, path := range kept {
		b.write(path, "kept")
	}
	empty := b.folder(other.ID) + "/empty"
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]struct {
		target  string
		removed bool // the server lets the link be removed
	}{
		"relative":      {"../other", false},
		"absolute":      {b.folder(other.ID), false},
		"absolute-deep": {b.folder(other.ID) + "/deep", false},
		"empty":         {empty, true},
		"file":          {b.folder(other.ID) + "/keep", true},
		"out":           {outside, false},
		"out-file":      {outside + "/keep", false},
		"nowhere":       {"nowhere", false},
		"loop":          {".", false},
		"records":       {b.disk(privateFolder), false},
	} {
		volume := b.create(name, nil)
		b.write(b.folder(volume.ID)+"/sub/f", "of the volume")
		b.link(link.target, b.folder(volume.ID)+"/sub/link")
		folder := b.folder(volume.ID)
		err := b.DeleteVolume(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID})
		b.wantMissing(folder)
		if link.removed && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, statErr := os.Lstat(b.disk(privateFolder, folderTrash, name)); err == nil && !os.IsNotExist(statErr) {
			t.Errorf("%s: no error, and the trash is still there: %v", name, statErr)
		}
		if err != nil && !errors.Is(err, csikit.ErrPrecondition) && !errors.Is(err, csikit.ErrInUse) {
			t.Errorf("%s: %v; want a refusal", name, err)
		}
		for _, path := range kept {
			b.wantFile(path, "kept")
		}
		if _, err := os.Stat(empty); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := b.GetVolume(b.ctx, csikit.VolumeRequest{VolumeID: other.ID}); err != nil {
			t.Errorf("%s: the other volume: %v", name, err)
		}
	}
}

// A source or a volume that somebody replaced by a link leads nowhere else.
func TestLinksInPlaceOfFolders(t *testing.T) {
	b := newBed(t, samba.Options{}, func(c *Config) { c.AnySource = true })
	outside := t.TempDir()
	b.write(outside+"/v/keep", "kept")
	b.write(b.disk("inside", "keep"), "kept")
	secrets := map[string]string{secretUsername: b.server.User, secretPassword: b.server.Password}
	b.link(outside, b.server.Folder("data")+"/out")
	_, err := b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{Name: "v", Parameters: map[string]string{paramSource: "//files.example/data/out"}, Secrets: secrets})
	b.wantError(err, csikit.ErrNotFound)

	for name, target := range map[string]string{"in": b.disk("inside"), "away": outside} {
		volume := b.create(name, nil)
		if err := os.Remove(b.folder(volume.ID)); err != nil {
			t.Fatal(err)
		}
		b.link(target, b.folder(volume.ID))
		err := b.DeleteVolume(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID})
		t.Logf("%s: %v", name, err)
		b.wantFile(outside+"/v/keep", "kept")
		b.wantFile(b.disk("inside", "keep"), "kept")
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

// A copy ends, and takes nothing from outside the share.
func TestCloneOfLinks(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	outside := t.TempDir()
	b.write(outside+"/secret", "secret")
	source := b.create("source", nil)
	b.write(b.folder(source.ID)+"/sub/f", "data")
	b.link(outside, b.folder(source.ID)+"/out")
	b.link(outside+"/secret", b.folder(source.ID)+"/out-file")
	b.link("nowhere", b.folder(source.ID)+"/nowhere")
	request := csikit.CreateVolumeRequest{Name: "clone", Source: &csikit.ContentSource{VolumeID: source.ID}}
	clone, err := b.CloneVolume(b.ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(b.folder(clone.ID))
	if err != nil || len(entries) != 1 || entries[0].Name() != "sub" {
		t.Errorf("the copy holds %v, %v", entries, err)
	}
	b.link("..", b.folder(source.ID)+"/sub/loop")
	request.Name = "endless"
	_, err = b.CloneVolume(b.ctx, request)
	b.wantError(err, csikit.ErrPrecondition)
	b.wantMissing(b.disk("endless"))
}
