package smb

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/test/samba"
)

// testTimeout bounds a test with its server. A busy machine takes long for many files.
const testTimeout = 4 * time.Minute

// bed is a Backend and its server.
type bed struct {
	*Backend
	t      *testing.T
	ctx    context.Context
	server *samba.Server
	source string
	// password is the one that is configured.
	password atomic.Pointer[string]
}

// newBed has one source, the folder base of the share data, with credentials.
func newBed(t *testing.T, options samba.Options, change func(*Config)) *bed {
	t.Helper()
	t.Parallel()
	if options.Shares == nil {
		options.Shares = []samba.Share{{Name: "data"}, {Name: "other"}}
	}
	server := samba.Start(t, options)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	b := &bed{t: t, ctx: ctx, server: server, source: "//files.example/data/bäse"}
	b.password.Store(&server.Password)
	config := Config{
		Sources: []Source{{Path: b.source, Credentials: func(context.Context) (Credentials, error) {
			return Credentials{Username: server.User, Password: *b.password.Load()}, nil
		}}},
		Dial: map[string]string{"files.example": server.Address()},
	}
	if change != nil {
		change(&config)
	}
	if err := os.MkdirAll(b.disk(""), 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.Backend, err = New(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// disk is a path of the base on the server's disk.
func (b *bed) disk(parts ...string) string {
	return filepath.Join(append([]string{b.server.Folder("data"), "bäse"}, parts...)...)
}

func (b *bed) create(name string, parameters map[string]string) csikit.Volume {
	b.t.Helper()
	volume, err := b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{Name: name, Capacity: csikit.CapacityRange{RequiredBytes: 5}, Parameters: parameters})
	if err != nil {
		b.t.Fatalf("create %q: %v", name, err)
	}
	return volume
}

func (b *bed) delete(id string) {
	b.t.Helper()
	if err := b.DeleteVolume(b.ctx, csikit.VolumeRequest{VolumeID: id}); err != nil {
		b.t.Fatalf("delete %q: %v", id, err)
	}
}

// folder is the folder of a volume on the disk.
func (b *bed) folder(id string) string {
	b.t.Helper()
	key, err := parseVolumeID(id)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.disk(key.folder)
}

func (b *bed) write(path, content string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) link(target, path string) {
	b.t.Helper()
	if err := os.Symlink(target, path); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) wantFile(path, content string) {
	b.t.Helper()
	if data, err := os.ReadFile(path); err != nil || string(data) != content {
		b.t.Errorf("%s holds %.40q, %v; want %.40q", path, data, err, content)
	}
}

func (b *bed) wantMissing(path string) {
	b.t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		b.t.Errorf("%s: %v; want it to be gone", path, err)
	}
}

// wantEmptyTrash sees that nothing is left of what was removed or copied.
func (b *bed) wantEmptyTrash() {
	b.t.Helper()
	for _, name := range []string{folderTrash, folderNew} {
		left, err := os.ReadDir(b.disk(privateFolder, name))
		if err != nil && !os.IsNotExist(err) || len(left) > 0 {
			b.t.Errorf("left in %s: %v, %v", name, left, err)
		}
	}
}

func freeBytes(t *testing.T, path string) int64 {
	t.Helper()
	var sizes unix.Statfs_t
	if err := unix.Statfs(path, &sizes); err != nil {
		t.Fatal(err)
	}
	return int64(sizes.Bavail) * sizes.Bsize
}
