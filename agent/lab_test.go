package agent_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// mib is one mebibyte in bytes.
const mib = 1 << 20

// root is the working folder of every lab.
const root = `C:\var\lib\kubelet`

// lab is a simulated node under an agent.
type lab struct {
	*testing.T
	node   *sim.Node
	os     agent.OS
	agent  *agent.Agent
	ctx    context.Context
	policy agent.Policy
	log    *lockedBuffer
}

// lockedBuffer is a log several goroutines write.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// newLab opens a new node with an agent over it; change may alter either.
func newLab(t *testing.T, change ...func(*sim.Config, *agent.Policy)) *lab {
	t.Helper()
	l := &lab{T: t, ctx: t.Context(), log: &lockedBuffer{}}
	config := sim.Config{Dir: t.TempDir(), ArrivalPolls: -1, ServicePolls: -1}
	l.policy = agent.Policy{
		Roots: []string{root}, RequirePrivacy: true, PollInterval: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		c(&config, &l.policy)
	}
	node, err := sim.Open(l.ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	l.node = node
	l.restartAgent()
	l.ok(node.MakeDir(l.ctx, root))
	return l
}

// restartAgent puts a new agent over the node, as after a restart of the process.
func (l *lab) restartAgent() {
	l.Helper()
	var err error
	l.os = winos.New(l.node, l.node, winos.Options{
		PollInterval: time.Millisecond,
		Retry:        cim.RetryPolicy{FirstDelay: time.Microsecond, LongestDelay: time.Microsecond},
	})
	l.agent, err = agent.New(l.os, l.policy)
	l.ok(err)
}

// ok fails the test at once when err is one.
func (l *lab) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// want fails the test unless err is of the kind.
func (l *lab) want(kind host.Kind, err error) {
	l.Helper()
	if !host.IsKind(err, kind) {
		l.Errorf("got %v, want kind %q", err, kind)
	}
}

// disk attaches an empty disk.
func (l *lab) disk(sizeBytes int64) uint32 {
	l.Helper()
	number, err := l.node.AttachDisk(l.ctx, sim.DiskSpec{Image: filepath.Join(l.TempDir(), "disk"), SizeBytes: sizeBytes})
	l.ok(err)
	return number
}

// volume attaches a disk and partitions it.
func (l *lab) volume(sizeBytes int64) string {
	l.Helper()
	number := l.disk(sizeBytes)
	l.ok(l.agent.PartitionDisk(l.ctx, number))
	return l.onlyVolume(number)
}

func (l *lab) onlyVolume(disk uint32) string {
	l.Helper()
	ids, err := l.agent.ListVolumesOnDisk(l.ctx, disk, 0)
	l.ok(err)
	if len(ids) != 1 {
		l.Fatalf("volumes on disk %d: %q", disk, ids)
	}
	return ids[0]
}

// formatted makes a volume with NTFS.
func (l *lab) formatted(sizeBytes int64) string {
	l.Helper()
	id := l.volume(sizeBytes)
	l.ok(l.agent.FormatVolume(l.ctx, id))
	return id
}

// mounted makes a volume with NTFS and mounts it at a path.
func (l *lab) mounted(path string) string {
	l.Helper()
	id := l.formatted(64 * mib)
	l.ok(l.agent.MountVolume(l.ctx, id, path))
	return id
}

func (l *lab) write(path, content string) {
	l.Helper()
	l.ok(l.node.WriteFile(l.ctx, path, []byte(content)))
}

// holds fails the test unless the file has the content.
func (l *lab) holds(path, content string) {
	l.Helper()
	if got, err := l.node.ReadFile(l.ctx, path); err != nil || string(got) != content {
		l.Errorf("%s holds %q, %v; want %q", path, got, err, content)
	}
}

func (l *lab) exists(path string, want bool) {
	l.Helper()
	if got, err := l.agent.PathExists(l.ctx, path); err != nil || got != want {
		l.Errorf("PathExists(%s) = %v, %v; want %v", path, got, err, want)
	}
}

func (l *lab) linkKind(path string, want host.LinkKind) {
	l.Helper()
	if got, err := l.agent.GetLink(l.ctx, path); err != nil || got.Kind != want {
		l.Errorf("GetLink(%s) = %v, %v; want kind %q", path, got, err, want)
	}
	is, err := l.agent.IsSymlink(l.ctx, path)
	if err != nil || is != (want != host.NotALink) {
		l.Errorf("IsSymlink(%s) = %v, %v", path, is, err)
	}
}

// junction makes a junction, as any user of the node can.
func (l *lab) junction(path, target string) {
	l.Helper()
	l.ok(l.node.MakeDir(l.ctx, path))
	h, err := l.node.CreateFile(l.ctx, `\\?\`+path, win32.Open{Access: win32.GenericWrite | win32.FileWriteAttr, Share: 7})
	l.ok(err)
	data, err := win32.EncodeSymlink(target)
	l.ok(err)
	// The buffer of a junction is that of a link without the four bytes of flags.
	data = slices.Delete(data, 16, 20)
	binary.LittleEndian.PutUint32(data, win32.TagMountPoint)
	binary.LittleEndian.PutUint16(data[4:], uint16(len(data)-8))
	_, err = l.node.DeviceIoControl(l.ctx, h, win32.FsctlSetReparsePoint, data, nil)
	l.ok(errors.Join(err, l.node.CloseHandle(h)))
}

// callLog runs do and returns the calls it made.
func (l *lab) callLog(do func()) []sim.Call {
	l.Helper()
	l.ok(l.node.RecordCalls(l.ctx, true))
	do()
	log, err := l.node.CallLog(l.ctx)
	l.ok(errors.Join(err, l.node.RecordCalls(l.ctx, false)))
	return log
}

// calls is callLog with names and objects only.
func (l *lab) calls(do func()) []string {
	l.Helper()
	log := l.callLog(do)
	names := make([]string, 0, len(log))
	for _, call := range log {
		names = append(names, strings.TrimSpace(call.Name+" "+call.Object))
	}
	return names
}

// count returns how many of the calls begin with prefix.
func count(calls []string, prefix string) int {
	n := 0
	for _, call := range calls {
		if strings.HasPrefix(call, prefix) {
			n++
		}
	}
	return n
}

// noHandles fails the test when handles are open.
func (l *lab) noHandles() {
	l.Helper()
	if n, err := l.node.HandleCount(l.ctx); err != nil || n != 0 {
		l.Errorf("%d handles are open, %v", n, err)
	}
}

// withRoots puts other working folders in place of the usual one.
func withRoots(roots ...string) func(*sim.Config, *agent.Policy) {
	return func(_ *sim.Config, p *agent.Policy) { p.Roots = roots }
}
