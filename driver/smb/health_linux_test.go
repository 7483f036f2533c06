package smb

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/test/samba"
)

// wantHealth wants one condition, or none when reason is empty.
func (b *bed) wantHealth(id string, status node.HealthStatus, reason string) {
	b.t.Helper()
	health, err := b.VolumeHealth(b.ctx, csikit.VolumeRequest{VolumeID: id})
	if err != nil || health.VolumeID != id || len(health.Conditions) != min(len(reason), 1) {
		b.t.Errorf("%+v, %v; want %s", health, err, reason)
		return
	}
	for _, c := range health.Conditions {
		if c.Status != status || c.Reason != reason || c.Message == "" || strings.Contains(c.Message, b.server.Password) {
			b.t.Errorf("%+v; want %s %s", c, status, reason)
		}
	}
}

func (b *bed) wantIll(page csikit.Page, wanted ...string) (next string) {
	b.t.Helper()
	found, err := b.ListVolumeHealth(b.ctx, page)
	var ids []string
	for _, volume := range found.Volumes {
		ids = append(ids, volume.VolumeID)
		if len(volume.Conditions) != 1 {
			b.t.Errorf("%+v", volume)
		}
	}
	if err != nil || strings.Join(ids, " ") != strings.Join(wanted, " ") {
		b.t.Errorf("%v, %v; want %v", ids, err, wanted)
	}
	return found.NextToken
}

func TestHealthTellsWhatIsLost(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	well, lost, gone, foreign := b.create("well", nil), b.create("lost", nil), b.create("gone", nil), b.create("foreign", nil)
	b.wantHealth(well.ID, "", "")
	b.wantIll(csikit.Page{})
	for _, err := range []error{os.Remove(b.folder(lost.ID)), os.Remove(b.folder(gone.ID)), os.Remove(b.disk(recordPath("foreign")...))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.wantHealth(lost.ID, node.HealthDataLoss, "FolderMissing")
	b.wantHealth(foreign.ID, node.HealthDegraded, "RecordMissing")
	b.wantHealth(well.ID, "", "")
	b.wantIll(csikit.Page{Token: b.wantIll(csikit.Page{MaxEntries: 1}, gone.ID), MaxEntries: 1}, lost.ID)
	b.delete(lost.ID)
	b.wantIll(csikit.Page{}, gone.ID)
	// Neither is one whose delete or create was interrupted.
	b.write(b.disk(privateFolder, folderTrash, "gone", "0123", "f"), "rest")
	b.write(b.disk(recordPath("half")...), `{"name":"half","onDelete":"delete"}`)
	b.wantIll(csikit.Page{})
	for _, id := range []string{lost.ID, gone.ID, "smb:" + b.source + "/half", "smb:" + b.source + "/none", "other"} {
		_, err := b.VolumeHealth(b.ctx, csikit.VolumeRequest{VolumeID: id})
		b.wantError(err, csikit.ErrNotFound)
	}
	retained := b.create("retained", map[string]string{paramOnDelete: string(onDeleteRetain)})
	b.delete(retained.ID)
	_, err := b.VolumeHealth(b.ctx, csikit.VolumeRequest{VolumeID: retained.ID})
	b.wantError(err, csikit.ErrNotFound)
}

func TestHealthWithoutAServer(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	volume := b.create("v", nil)
	if err := os.Rename(b.disk(), b.disk()+"-away"); err != nil {
		t.Fatal(err)
	}
	b.wantHealth(volume.ID, node.HealthInaccessible, "ShareUnreachable")
	if err := os.Rename(b.disk()+"-away", b.disk()); err != nil {
		t.Fatal(err)
	}
	b.wantHealth(volume.ID, "", "")
	wrong := "wrong-password"
	b.password.Store(&wrong)
	_, err := b.VolumeHealth(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID})
	b.wantError(err, csikit.ErrUnauthenticated)
	b.password.Store(&b.server.Password)
	if conditions, err := b.StorageHealth(b.ctx, nil); err != nil || len(conditions) > 0 {
		t.Errorf("%+v, %v", conditions, err)
	}
	b.server.Stop()
	b.wantHealth(volume.ID, node.HealthInaccessible, "ShareUnreachable")
	_, err = b.ListVolumeHealth(b.ctx, csikit.Page{})
	b.wantError(err, csikit.ErrUnavailable)
	conditions, err := b.StorageHealth(b.ctx, nil)
	if err != nil || len(conditions) != 1 || !conditions[0].Unreachable || !strings.Contains(conditions[0].Message, "files.example") {
		t.Errorf("%+v, %v", conditions, err)
	}
}

// One server that is away is a part of the storage.
func TestStorageHealthOfSeveralServers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	b, err := New(Config{
		Sources: []Source{{Path: "//here/a"}, {Path: "//here/b"}, {Path: "//away/a"}},
		Dial:    map[string]string{"here": listener.Addr().String(), "away": "127.0.0.1:1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	conditions, err := b.StorageHealth(t.Context(), nil)
	if err != nil || len(conditions) != 1 || conditions[0].Unreachable || !strings.Contains(conditions[0].Message, "server away") {
		t.Errorf("%+v, %v", conditions, err)
	}
	if !b.CanStat(node.Info{Lacks: []string{"ListDisks"}}) || b.CanStat(node.Info{Lacks: []string{"ListDisks", "GetPathStats"}}) {
		t.Error("sizes are told over a csi-proxy that cannot, or not over one that can")
	}
}

// What becomes of the data at the end is decided anew until then.
func TestReleasePolicyCanBeChanged(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	modify := func(id string, parameters map[string]string) error {
		return b.ModifyVolume(b.ctx, csikit.ModifyRequest{VolumeID: id, MutableParameters: parameters})
	}
	archived := b.create("archived", nil)
	removed, err := b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{
		Name: "removed", Parameters: map[string]string{paramOnDelete: "delete"}, MutableParameters: map[string]string{paramOnDelete: "retain"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, volume := range []csikit.Volume{archived, removed} {
		b.write(b.folder(volume.ID)+"/f", "data")
	}
	for range 2 {
		err := modify(archived.ID, map[string]string{paramOnDelete: "archive", "csi.storage.k8s.io/pvc/name": "x"})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.delete(archived.ID)
	if kept, err := filepath.Glob(b.disk(privateFolder, folderArchive, "archived-*", "f")); err != nil || len(kept) != 1 {
		t.Errorf("archive: %v, %v", kept, err)
	}
	if err := modify(removed.ID, nil); err != nil { // which changes nothing
		t.Fatal(err)
	}
	for _, parameters := range []map[string]string{
		{paramOnDelete: "erase"}, {paramSource: "//x/y"},
	} {
		b.wantError(modify(removed.ID, parameters), csikit.ErrInvalid)
		b.wantError(b.CheckMutableParameters(parameters), csikit.ErrInvalid)
	}
	if err := modify(removed.ID, map[string]string{paramOnDelete: "delete"}); err != nil {
		t.Fatal(err)
	}
	b.delete(removed.ID)
	b.wantMissing(b.folder(removed.ID))
	b.wantError(modify(removed.ID, map[string]string{paramOnDelete: "delete"}), csikit.ErrNotFound)
	b.wantEmptyTrash()
}

// A record of which not all is understood decides nothing.
func TestRecordsThatSaySomethingElse(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	volume := b.create("v", nil)
	b.write(b.folder(volume.ID)+"/f", "data")
	for _, text := range []string{"", "{", `{"name":"v","complete":true}`, `{"name":"v","onDelete":"shred","complete":true}`} {
		b.write(b.disk(recordPath("v")...), text)
		b.wantError(b.DeleteVolume(b.ctx, csikit.VolumeRequest{VolumeID: volume.ID}), csikit.ErrPrecondition, "v.json")
		b.wantFile(b.folder(volume.ID)+"/f", "data")
	}
}
