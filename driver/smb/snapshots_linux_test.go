package smb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/test/samba"
)

func (b *bed) snapshot(name, volumeID string) csikit.Snapshot {
	b.t.Helper()
	snapshot, err := b.CreateSnapshot(b.ctx, csikit.CreateSnapshotRequest{Name: name, SourceVolumeID: volumeID})
	if err != nil {
		b.t.Fatalf("snapshot %q: %v", name, err)
	}
	return snapshot
}

func (b *bed) restore(name, snapshotID string, parameters map[string]string) csikit.Volume {
	b.t.Helper()
	volume, err := b.RestoreSnapshot(b.ctx, csikit.CreateVolumeRequest{
		Name: name, Parameters: parameters, Source: &csikit.ContentSource{SnapshotID: snapshotID}})
	if err != nil {
		b.t.Fatalf("restore %q: %v", name, err)
	}
	return volume
}

// snapshotDisk is a path of the base of the snapshots.
func (b *bed) snapshotDisk(parts ...string) string {
	return b.disk(append([]string{privateFolder, folderSnapshots}, parts...)...)
}

func TestSnapshotOutlivesItsVolume(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	volume := b.create("v", nil)
	b.write(b.folder(volume.ID)+"/größe/f", "old")
	before := time.Now()
	snapshot := b.snapshot("s", volume.ID)
	if snapshot.ID != "smb-snapshot://files.example/data/bäse/s" || snapshot.SourceVolumeID != volume.ID || snapshot.SizeBytes != 5 || !snapshot.Ready ||
		snapshot.CreatedAt.Before(before) || snapshot.CreatedAt.After(time.Now()) {
		t.Errorf("%+v", snapshot)
	}
	b.write(b.folder(volume.ID)+"/größe/f", "new")
	if again := b.snapshot("s", volume.ID); !reflect.DeepEqual(again, snapshot) {
		t.Errorf("again: %+v; want %+v", again, snapshot)
	}
	b.delete(volume.ID)
	if again := b.snapshot("s", volume.ID); again.ID != snapshot.ID { // the call is repeated late
		t.Errorf("%+v", again)
	}
	for range 2 {
		restored := b.restore("r", snapshot.ID, nil)
		if restored.CapacityBytes != 5 || restored.Source == nil || restored.Source.SnapshotID != snapshot.ID {
			t.Errorf("%+v", restored)
		}
		b.wantFile(b.folder(restored.ID)+"/größe/f", "old")
	}
	if page, err := b.ListVolumes(b.ctx, csikit.Page{}); err != nil || len(page.Volumes) != 1 {
		t.Errorf("volumes: %+v, %v", page, err)
	}
	for range 2 {
		if err := b.DeleteSnapshot(b.ctx, csikit.SnapshotRequest{SnapshotID: snapshot.ID}); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(b.snapshotDisk())
	if err != nil || len(left) != 1 {
		t.Errorf("left of snapshots: %v, %v", left, err)
	}
	_, getErr := b.GetSnapshot(b.ctx, csikit.SnapshotRequest{SnapshotID: snapshot.ID})
	_, restoreErr := b.RestoreSnapshot(b.ctx, csikit.CreateVolumeRequest{Name: "late", Source: &csikit.ContentSource{SnapshotID: snapshot.ID}})
	_, createErr := b.CreateSnapshot(b.ctx, csikit.CreateSnapshotRequest{Name: "late", SourceVolumeID: volume.ID})
	for call, err := range map[string]error{"get": getErr, "restore": restoreErr, "create": createErr} {
		if !errors.Is(err, csikit.ErrNotFound) {
			t.Errorf("%s: %v", call, err)
		}
	}
	b.restore("r", snapshot.ID, nil) // which is there
}

func TestSnapshotOfAnotherVolumeKeepsItsSource(t *testing.T) {
	b := newBed(t, samba.Options{}, func(c *Config) {
		c.Sources = append(c.Sources, Source{Path: "//files.example/other", Credentials: c.Sources[0].Credentials})
	})
	inBase := map[string]string{paramSource: b.source}
	one, two := b.create("one", inBase), b.create("two", inBase)
	b.write(b.folder(one.ID)+"/f", "one")
	snapshot := b.snapshot("s", one.ID)
	if other := b.snapshot("s", two.ID); other.SourceVolumeID != one.ID { // the kit sees that and refuses
		t.Errorf("%+v", other)
	}
	_, err := b.CreateSnapshot(b.ctx, csikit.CreateSnapshotRequest{Name: "p", SourceVolumeID: one.ID, Parameters: map[string]string{"x": "y"}})
	b.wantError(err, csikit.ErrInvalid, `"x"`)
	restored := b.restore("r", snapshot.ID, map[string]string{paramSource: "//files.example/other"})
	if restored.ID != "smb://files.example/other/r" {
		t.Errorf("%+v", restored)
	}
	b.wantFile(b.server.Folder("other")+"/r/f", "one")
}

// A snapshot that was interrupted is none, and is finished by the next call.
func TestHalfASnapshotIsNone(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	volume := b.create("v", nil)
	const files = 300
	for i := range files {
		b.write(fmt.Sprintf("%s/%d/f", b.folder(volume.ID), i), fmt.Sprint(i))
	}
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := b.CreateSnapshot(ctx, csikit.CreateSnapshotRequest{Name: "s", SourceVolumeID: volume.ID})
		done <- err
	}()
	half := b.snapshotDisk(privateFolder, folderNew, "s")
	for copied := 0; copied < 20 && b.ctx.Err() == nil; time.Sleep(time.Millisecond) {
		entries, _ := os.ReadDir(half)
		copied = len(entries)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("the copy ended with: %v", err)
	}
	b.wantNoSnapshot("s")
	early := b.whole(half, b.folder(volume.ID))
	snapshot := b.snapshot("s", volume.ID)
	same := false
	for i := range files {
		path := b.snapshotDisk("s", fmt.Sprint(i), "f")
		b.wantFile(path, fmt.Sprint(i))
		info, err := os.Stat(path)
		same = same || err == nil && os.SameFile(early, info)
	}
	if !same {
		t.Error("what was whole was copied again")
	}

	// As a controller leaves it that ended before it wrote that the copy is complete.
	record := b.snapshotDisk(recordPath("s")...)
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	b.write(record, strings.Replace(string(data), `"complete":true`, `"complete":false`, 1))
	b.wantNoSnapshot("s")
	b.write(b.folder(volume.ID)+"/later", "not of that time")
	if again := b.snapshot("s", volume.ID); !reflect.DeepEqual(again, snapshot) {
		t.Errorf("%+v; want %+v", again, snapshot)
	}
	b.wantMissing(b.snapshotDisk("s", "later"))
}

// whole is a file f that was copied from a folder of the source to its end: its time is
// set last. The one that was under way is not.
func (b *bed) whole(half, source string) os.FileInfo {
	b.t.Helper()
	folders, err := os.ReadDir(half)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, folder := range folders {
		name := folder.Name() + "/f"
		if info, err := os.Stat(half + "/" + name); err == nil && info.ModTime().Truncate(100*time.Nanosecond).Equal(modTime(b.t, source+"/"+name)) {
			return info
		}
	}
	b.t.Fatalf("of %d folders none is whole", len(folders))
	return nil
}

func (b *bed) wantNoSnapshot(name string) {
	b.t.Helper()
	_, err := b.GetSnapshot(b.ctx, csikit.SnapshotRequest{SnapshotID: "smb-snapshot:" + b.source + "/" + name})
	if !errors.Is(err, csikit.ErrNotFound) {
		b.t.Errorf("get: %v", err)
	}
	if page, err := b.ListSnapshots(b.ctx, csikit.ListSnapshotsRequest{}); err != nil || len(page.Snapshots) > 0 {
		b.t.Errorf("list: %+v, %v", page, err)
	}
}

// Pages go on when the last entry of the page before is deleted.
func TestListsGoOnAfterADelete(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	volumes, snapshots := map[string]bool{}, map[string]bool{}
	for i := range 5 {
		volume := b.create(fmt.Sprint("v", i), nil)
		volumes[volume.ID] = true
		snapshots[b.snapshot(fmt.Sprint("s", i), volume.ID).ID] = true
	}
	first, err := b.ListVolumes(b.ctx, csikit.Page{MaxEntries: 2})
	firstSnapshots, snapshotErr := b.ListSnapshots(b.ctx, csikit.ListSnapshotsRequest{Page: csikit.Page{MaxEntries: 2}})
	if err := errors.Join(err, snapshotErr); err != nil || len(first.Volumes) != 2 || len(firstSnapshots.Snapshots) != 2 {
		t.Fatalf("%+v, %+v, %v", first, firstSnapshots, err)
	}
	b.delete(first.Volumes[1].ID)
	if err := b.DeleteSnapshot(b.ctx, csikit.SnapshotRequest{SnapshotID: firstSnapshots.Snapshots[1].ID}); err != nil {
		t.Fatal(err)
	}
	rest, err := b.ListVolumes(b.ctx, csikit.Page{Token: first.NextToken})
	restSnapshots, snapshotErr := b.ListSnapshots(b.ctx, csikit.ListSnapshotsRequest{Page: csikit.Page{Token: firstSnapshots.NextToken, MaxEntries: 3}})
	if err := errors.Join(err, snapshotErr); err != nil || rest.NextToken != "" || restSnapshots.NextToken != "" {
		t.Fatalf("%+v, %+v, %v", rest, restSnapshots, err)
	}
	for _, volume := range append(first.Volumes, rest.Volumes...) {
		delete(volumes, volume.ID)
	}
	for _, snapshot := range append(firstSnapshots.Snapshots, restSnapshots.Snapshots...) {
		delete(snapshots, snapshot.ID)
	}
	if len(volumes)+len(snapshots) > 0 {
		t.Errorf("not listed: %v, %v", volumes, snapshots)
	}
}

func TestSnapshotsAreFiltered(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	one, two := b.create("one", nil), b.create("two", nil)
	first := b.snapshot("first", one.ID)
	b.snapshot("second", one.ID)
	b.snapshot("third", two.ID)
	for _, test := range []struct {
		volume, snapshot string
		want             int
	}{
		{"", "", 3}, {one.ID, "", 2}, {two.ID, "", 1}, {"", first.ID, 1}, {one.ID, first.ID, 1}, {two.ID, first.ID, 0},
		{"none", "", 0}, {"", "none", 0}, {"smb://elsewhere/data/v", "", 0}, {"", "smb-snapshot://elsewhere/data/s", 0},
		{one.ID + "x", "", 0}, {"", first.ID + "x", 0}, {"", one.ID, 0},
	} {
		page, err := b.ListSnapshots(b.ctx, csikit.ListSnapshotsRequest{SourceVolumeID: test.volume, SnapshotID: test.snapshot})
		if err != nil || len(page.Snapshots) != test.want {
			t.Errorf("%+v: %+v, %v", test, page, err)
		}
	}
	for _, token := range []string{"x", position{"//files.example/data", "v1"}.token()} {
		_, err := b.ListSnapshots(b.ctx, csikit.ListSnapshotsRequest{Page: csikit.Page{Token: token}})
		b.wantError(err, csikit.ErrBadToken)
	}
}
