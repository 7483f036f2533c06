package cloud

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/sim/internal/folder"
)

// A folder that is no cloud's, or no longer quite, is refused by the name of what is
// wrong in it, and everything in it stays.
func TestDamageIsNamedAndNothingIsRemoved(t *testing.T) {
	t.Parallel()
	const otherID = "0f8fad5b-d9cb-469f-a165-70867728950e"
	for name, put := range map[string]struct{ path, content string }{
		"empty record":              {"disks/ID/disk.json", ""},
		"half a record":             {"disks/ID/disk.json", `{"id": "ID", "name": "a", "siz`},
		"record of nothing":         {"disks/ID/disk.json", "null"},
		"record of another disk":    {"disks/ID/disk.json", `{"id": "` + otherID + `"}`},
		"record that climbs out":    {"disks/ID/disk.json", `{"id": "../../precious"}`},
		"snapshot that climbs out":  {"snapshots/" + otherID + "/disk.json", `{"id": "../../precious"}`},
		"group that climbs out":     {"groups/" + otherID + ".json", `{"id": "../../precious"}`},
		"half a group":              {"groups/" + otherID + ".json", `{`},
		"somebody's folder":         {"disks/photos/1.jpg", "precious"},
		"somebody's snapshots":      {"snapshots/2026/1.jpg", "precious"},
		"somebody's file":           {"disks/" + otherID, "precious"},
		"somebody's notes":          {"groups/notes.txt", "precious"},
		"somebody's spelling of it": {"disks/" + strings.ToUpper(otherID) + "/x", "precious"},
		"half the zones":            {"zones.json", `{"zone-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := openCloud(t, dir)
			d := create(t, c, CreateRequest{Name: "a"})
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, filepath.FromSlash(strings.ReplaceAll(put.path, "ID", d.ID)))
			content := []byte(strings.ReplaceAll(put.content, "ID", d.ID))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
				t.Fatal(err)
			}
			_, err := Open(dir)
			named := path
			if strings.HasPrefix(name, "somebody's") {
				named = filepath.Join(dir, filepath.FromSlash(strings.Join(strings.SplitN(put.path, "/", 3)[:2], "/")))
			}
			if err == nil || !strings.Contains(err.Error(), named) {
				t.Errorf("error %v, want one that names %s", err, named)
			}
			if left, err := os.ReadFile(path); err != nil || string(left) != string(content) {
				t.Errorf("%s is %q now, %v", path, left, err)
			}
			if _, err := os.Stat(filepath.Join(dir, disksFolder, d.ID, imageFile)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A node whose record is damaged can be neither used nor taken for one that is gone.
func TestDamagedNodeIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCloud(t, dir)
	d := create(t, c, CreateRequest{Name: "a"})
	path := nodeRecord(dir, "n")
	for _, content := range []string{"", "{", `{"maxDisks": "many"}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Node(ctx, "n"); err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", content, err)
		}
		if _, err := c.AttachDisk(ctx, d.ID, "n", openNode(t)); err == nil {
			t.Errorf("%q: attached", content)
		}
	}
	if err := AddNode(dir, Node{Name: "n"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AttachDisk(ctx, d.ID, "n", openNode(t)); err != nil {
		t.Error(err)
	}
	for _, n := range []Node{{Name: "m", Zone: "a/b"}, {Name: "m", MaxDisks: -1}, {Name: "a\x00b"}} {
		if err := AddNode(dir, n); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", n, err)
		}
	}
}

// A clock that was set back does not disturb the order of the lists.
func TestTimeGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := openCloud(t, dir)
	d := create(t, c, CreateRequest{Name: "old"})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	d.Created = d.Created.Add(24 * time.Hour)
	if err := folder.WriteJSON(filepath.Join(dir, disksFolder, d.ID, recordFile), d); err != nil {
		t.Fatal(err)
	}
	c = openCloud(t, dir)
	if young := create(t, c, CreateRequest{Name: "young"}); !young.Created.After(d.Created) {
		t.Errorf("made at %v, after one of %v", young.Created, d.Created)
	}
}

// A medium that has grown and whose record has not, as after a disk that was full.
func TestGrownButNotRecorded(t *testing.T) {
	t.Parallel()
	c := openCloud(t, t.TempDir())
	d := create(t, c, CreateRequest{Name: "a"})
	if err := os.Truncate(c.Image(d.ID), 2<<30); err != nil {
		t.Fatal(err)
	}
	if clone := create(t, c, CreateRequest{Name: "b", Source: d.ID}); clone.SizeBytes != 2<<30 {
		t.Errorf("a clone of %d bytes", clone.SizeBytes)
	}
	if s, err := c.SnapshotDisk(ctx, d.ID, "s"); err != nil || s.SizeBytes != 2<<30 {
		t.Errorf("a snapshot of %d bytes, %v", s.SizeBytes, err)
	}
	if grown, err := c.GrowDisk(ctx, d.ID, 3<<29); err != nil || grown.SizeBytes != 2<<30 {
		t.Errorf("grown to %d, %v", grown.SizeBytes, err)
	}
}

// A folder that was named by mistake keeps what it has and gets nothing more.
func TestOpenLeavesFoldersOfOthersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hosts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Open(dir); err == nil {
		_ = c.Close()
		t.Error("the folder was taken")
	} else if !strings.Contains(err.Error(), dir) {
		t.Errorf("%v; want one that names the folder", err)
	}
	if err := AddNode(dir, Node{Name: "n", Control: "127.0.0.1:1"}); err == nil {
		t.Error("a node was added to it")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("then there were %v, %v", entries, err)
	}
}

// What a user adds to the folder of a cloud does not shut it.
func TestOpenTakesACloudWithOtherFilesBesideIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		if err := openCloud(t, dir).Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := AddNode(dir, Node{Name: "n", Control: "127.0.0.1:1"}); err != nil {
		t.Error(err)
	}
}
