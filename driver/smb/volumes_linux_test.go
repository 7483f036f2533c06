package smb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/test/samba"
)

// Every call may be repeated, and says the same again.
func TestC068_CreateGetDelete(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	volume := b.create("pvc-1", nil)
	if volume.CapacityBytes != 5 || volume.ID != "smb://files.example/data/bäse/pvc-1" {
		t.Errorf("volume: %+v", volume)
	}
	b.write(b.folder(volume.ID)+"/a/b/c.txt", "data")
	again, err := b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{Name: "pvc-1", Capacity: csikit.CapacityRange{RequiredBytes: 7}})
	if err != nil || again.ID != volume.ID || again.CapacityBytes != 5 {
		t.Errorf("created again: %+v, %v", again, err)
	}
	b.wantFile(b.folder(volume.ID)+"/a/b/c.txt", "data")
	got, err := b.GetVolume(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID})
	if err != nil || got.ID != volume.ID || got.CapacityBytes != 5 {
		t.Errorf("got: %+v, %v", got, err)
	}
	for range 2 {
		b.delete(volume.ID)
	}
	b.wantMissing(b.folder(volume.ID))
	b.wantMissing(b.disk(recordPath("pvc-1")...))
	b.wantEmptyTrash()
	if _, err := b.GetVolume(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID}); !errors.Is(err, csikit.ErrNotFound) {
		t.Errorf("get of a deleted volume: %v", err)
	}
	b.delete("of-somebody-else")
}

// Servers do not tell upper from lower case, nor all spellings of a letter.
func TestNamesThatServersConfuseAreDifferentVolumes(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	names := []string{"vol", "Vol", "VOL", "größe", "gro\u0308ße", "a/b", "a\\b", "..", "con", "vol.", "vol ", strings.Repeat("x", 128), strings.Repeat("x", 127), "~1", ".csi-windows"}
	seen := map[string]string{}
	for _, name := range names {
		volume := b.create(name, nil)
		if other, found := seen[strings.ToLower(volume.ID)]; found {
			t.Errorf("%q and %q are both %s", name, other, volume.ID)
		}
		seen[strings.ToLower(volume.ID)] = name
		if len(volume.ID) > volumeIDMax {
			t.Errorf("id of %q has %d bytes", name, len(volume.ID))
		}
		if b.create(name, nil).ID != volume.ID {
			t.Errorf("id of %q changes", name)
		}
	}
	entries, err := os.ReadDir(b.disk())
	if err != nil || len(entries) != len(names)+1 {
		t.Errorf("the base holds %v, %v", entries, err)
	}
}

func TestCloneCopiesEverything(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	source := b.create("source", nil)
	files := map[string]string{
		"small": "x", "empty": "", "größe/日本/файл": "unicode", "deep/" + strings.Repeat("d/", 40) + "file": "deep",
		// More than a server copies rightly for the client.
		"large": strings.Repeat("0123456789abcde\n", 40<<20/16) + "end",
		"exact": strings.Repeat("fedcba9876543210", 16<<20/16),
	}
	for name, content := range files {
		b.write(filepath.Join(b.folder(source.ID), name), content)
	}
	for i := range 600 { // more than one part of a list
		b.write(filepath.Join(b.folder(source.ID), "many", fmt.Sprint(i)), fmt.Sprint(i))
	}
	request := csikit.CreateVolumeRequest{Name: "clone", Source: &csikit.ContentSource{VolumeID: source.ID}}
	for range 2 {
		clone, err := b.CloneVolume(b.ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		if clone.Source == nil || clone.Source.VolumeID != source.ID || clone.CapacityBytes != 5 {
			t.Errorf("clone: %+v", clone)
		}
		for name, content := range files {
			data, err := os.ReadFile(filepath.Join(b.folder(clone.ID), name))
			if err != nil || !bytes.Equal(data, []byte(content)) {
				t.Errorf("%.20q: %d bytes, %v; want %d", name, len(data), err, len(content))
			}
		}
		for i := range 600 {
			b.wantFile(filepath.Join(b.folder(clone.ID), "many", fmt.Sprint(i)), fmt.Sprint(i))
		}
	}
	b.wantEmptyTrash()
	b.delete(source.ID)
	b.wantMissing(b.folder(source.ID))
	b.wantFile(b.folder("smb://files.example/data/bäse/clone")+"/small", "x")
	b.wantEmptyTrash()
	request.Name = "late"
	if _, err := b.CloneVolume(b.ctx, request); !errors.Is(err, csikit.ErrNotFound) {
		t.Errorf("clone of a deleted volume: %v", err)
	}
}

func TestCloneToAnotherShare(t *testing.T) {
	b := newBed(t, samba.Options{}, func(c *Config) {
		c.Sources = append(c.Sources, Source{Path: "//files.example/other", Credentials: c.Sources[0].Credentials})
	})
	inBase := map[string]string{paramSource: b.source}
	source := b.create("source", inBase)
	b.write(b.folder(source.ID)+"/f/g", "data")
	clone, err := b.CloneVolume(b.ctx, csikit.CreateVolumeRequest{
		Name: "source", Parameters: map[string]string{paramSource: `\\FILES.example\other`}, Source: &csikit.ContentSource{VolumeID: source.ID}})
	if err != nil || clone.ID != "smb://files.example/other/source" {
		t.Fatalf("clone: %+v, %v", clone, err)
	}
	b.wantFile(b.server.Folder("other")+"/source/f/g", "data")
	page, err := b.ListVolumes(b.ctx, csikit.Page{})
	if err != nil || len(page.Volumes) != 2 {
		t.Errorf("list: %+v, %v", page, err)
	}
}

func TestListHasPages(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	if page, err := b.ListVolumes(b.ctx, csikit.Page{}); err != nil || len(page.Volumes) != 0 {
		t.Fatalf("list of nothing: %+v, %v", page, err)
	}
	ids := map[string]bool{}
	for i := range 5 {
		ids[b.create(fmt.Sprint("v", i), nil).ID] = true
	}
	b.delete(b.create("gone", nil).ID)
	if err := os.Mkdir(b.disk("not-ours"), 0o700); err != nil {
		t.Fatal(err)
	}
	token, pages := "", 0
	for {
		page, err := b.ListVolumes(b.ctx, csikit.Page{Token: token, MaxEntries: 2})
		if err != nil || len(page.Volumes) > 2 {
			t.Fatalf("page: %+v, %v", page, err)
		}
		pages++
		for _, volume := range page.Volumes {
			if !ids[volume.ID] || volume.CapacityBytes != 5 {
				t.Errorf("volume %+v, listed twice or unknown", volume)
			}
			delete(ids, volume.ID)
		}
		if token = page.NextToken; token == "" {
			break
		}
	}
	if len(ids) > 0 || pages != 3 {
		t.Errorf("%d pages, and not listed: %v", pages, ids)
	}
	for _, token := range []string{"x", "!", position{"//files.example/data", "v1"}.token(), position{b.source, "../v1"}.token()} {
		if _, err := b.ListVolumes(b.ctx, csikit.Page{Token: token}); !errors.Is(err, csikit.ErrBadToken) {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

func TestExpandIsRemembered(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	volume := b.create("v", nil)
	for _, step := range []struct{ required, limit, want int64 }{{50, 0, 50}, {20, 0, 50}, {60, 70, 60}} {
		got, err := b.ExpandVolume(b.ctx, csikit.ExpandRequest{VolumeID: volume.ID, Capacity: csikit.CapacityRange{RequiredBytes: step.required, LimitBytes: step.limit}})
		if err != nil || got.CapacityBytes != step.want || got.NodeExpansionNeeded {
			t.Errorf("%+v: %+v, %v", step, got, err)
		}
	}
	if got, err := b.GetVolume(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID}); err != nil || got.CapacityBytes != 60 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := b.ExpandVolume(b.ctx, csikit.ExpandRequest{VolumeID: volume.ID, Capacity: csikit.CapacityRange{LimitBytes: 10}}); !errors.Is(err, csikit.ErrOutOfRange) {
		t.Errorf("limit below the size: %v", err)
	}
}

func TestCapacityIsThatOfTheShare(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	capacity, err := b.GetCapacity(b.ctx, csikit.CapacityRequest{})
	want := freeBytes(t, b.disk())
	if err != nil || capacity.AvailableBytes < want/2 || capacity.AvailableBytes > want*2 {
		t.Errorf("capacity %+v, %v; the disk has %d", capacity, err, want)
	}
}

func TestArchiveAndRetainKeepTheData(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	archived := b.create("archived", map[string]string{paramOnDelete: "archive"})
	retained := b.create("retained", map[string]string{paramOnDelete: "retain"})
	for _, volume := range []csikit.Volume{archived, retained} {
		b.write(b.folder(volume.ID)+"/f", "data")
		for range 2 {
			b.delete(volume.ID)
		}
		if _, err := b.GetVolume(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID}); !errors.Is(err, csikit.ErrNotFound) {
			t.Errorf("get of %s: %v", volume.ID, err)
		}
	}
	b.wantMissing(b.folder(archived.ID))
	kept, err := filepath.Glob(b.disk(privateFolder, folderArchive, "archived-*", "f"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("archive: %v, %v", kept, err)
	}
	b.wantFile(kept[0], "data")
	b.wantFile(b.folder(retained.ID)+"/f", "data")
	_, err = b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{Name: "retained", Parameters: map[string]string{paramOnDelete: "retain"}})
	if !errors.Is(err, csikit.ErrExists) {
		t.Errorf("a retained folder is taken for a new volume: %v", err)
	}
	b.create("archived", nil)
	if page, err := b.ListVolumes(b.ctx, csikit.Page{}); err != nil || len(page.Volumes) != 1 {
		t.Errorf("list: %+v, %v", page, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			name := fmt.Sprint("v", i)
			volume, err := b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{Name: name})
			if err != nil {
				t.Errorf("create: %v", err)
				return
			}
			b.write(b.folder(volume.ID)+"/a/b", "data")
			if _, err := b.CloneVolume(b.ctx, csikit.CreateVolumeRequest{Name: name + "c", Source: &csikit.ContentSource{VolumeID: volume.ID}}); err != nil {
				t.Errorf("clone: %v", err)
			}
			if err := b.DeleteVolume(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID}); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
	}
	group.Wait()
	page, err := b.ListVolumes(b.ctx, csikit.Page{})
	if err != nil || len(page.Volumes) != 64 {
		t.Errorf("%d volumes, %v", len(page.Volumes), err)
	}
	b.wantEmptyTrash()
}
