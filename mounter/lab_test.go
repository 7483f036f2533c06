package mounter_test

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/mounter"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const (
	mib  = 1 << 20
	root = `C:\var\lib\kubelet`
)

// lab is a mounter over an agent over a simulated node.
type lab struct {
	*testing.T
	node    *sim.Node
	host    host.Host
	mounter *mounter.Mounter
}

// newLab opens a new node. With official set, the mounter has nothing but what every
// csi-proxy has.
func newLab(t *testing.T, official bool) *lab {
	t.Helper()
	l := &lab{T: t}
	node, err := sim.Open(t.Context(), sim.Config{Dir: t.TempDir(), ArrivalPolls: -1, ServicePolls: -1})
	l.ok(err)
	t.Cleanup(func() { l.ok(node.Close()) })
	l.node = node
	os := winos.New(node, node, winos.Options{
		PollInterval: time.Millisecond,
		Retry:        cim.RetryPolicy{FirstDelay: time.Microsecond, LongestDelay: time.Microsecond},
	})
	l.host, err = agent.New(os, agent.Policy{Roots: []string{root}, RequirePrivacy: true, PollInterval: time.Millisecond})
	l.ok(err)
	if official {
		l.host = officialHost{l.host}
	}
	l.mounter, err = mounter.New(l.host, mounter.Options{CallTimeout: time.Minute})
	l.ok(err)
	l.ok(node.MakeDir(t.Context(), root))
	return l
}

func (l *lab) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) want(kind host.Kind, err error) {
	l.Helper()
	if !host.IsKind(err, kind) {
		l.Errorf("got %v, want kind %q", err, kind)
	}
}

// disk attaches an empty disk and returns its number as the mounter takes it.
func (l *lab) disk() string {
	l.Helper()
	number, err := l.node.AttachDisk(l.Context(), sim.DiskSpec{Image: filepath.Join(l.TempDir(), "disk"), SizeBytes: 256 * mib})
	l.ok(err)
	return strconv.FormatUint(uint64(number), 10)
}

// mounted mounts a new disk.
func (l *lab) mounted(path string) (disk string) {
	l.Helper()
	disk = l.disk()
	l.ok(l.mounter.FormatAndMount(disk, path, "", nil))
	return disk
}

func (l *lab) detach(disk string) {
	l.Helper()
	number, err := strconv.ParseUint(disk, 10, 32)
	l.ok(err)
	l.ok(l.node.DetachDisk(l.Context(), uint32(number)))
}

func (l *lab) write(path, content string) {
	l.Helper()
	l.ok(l.node.WriteFile(l.Context(), path, []byte(content)))
}

func (l *lab) holds(path, content string) {
	l.Helper()
	if got, err := l.node.ReadFile(l.Context(), path); err != nil || string(got) != content {
		l.Errorf("%s holds %q, %v; want %q", path, got, err, content)
	}
}

// officialHost has none of the contract's additions.
type officialHost struct{ host.Host }

func unsupported(op string) error { return &host.Error{Op: op, Kind: host.KindUnsupported} }

func (officialHost) ListDisks(context.Context) ([]host.DiskInfo, error) {
	return nil, unsupported("ListDisks")
}

func (officialHost) SetDiskReadOnly(context.Context, uint32, bool) error {
	return unsupported("SetDiskReadOnly")
}

func (officialHost) GetLink(context.Context, string) (host.LinkInfo, error) {
	return host.LinkInfo{}, unsupported("GetLink")
}

func (officialHost) GetPathStats(context.Context, string) (host.VolumeStats, error) {
	return host.VolumeStats{}, unsupported("GetPathStats")
}

func (officialHost) ListMounts(context.Context) ([]host.Mount, error) {
	return nil, unsupported("ListMounts")
}

func (officialHost) GetVolume(context.Context, string) (host.VolumeInfo, error) {
	return host.VolumeInfo{}, unsupported("GetVolume")
}

func (officialHost) ListVolumes(context.Context) ([]host.VolumeInfo, error) {
	return nil, unsupported("ListVolumes")
}

func (officialHost) FormatVolumeWith(context.Context, string, host.FormatOptions) error {
	return unsupported("FormatVolumeWith")
}
