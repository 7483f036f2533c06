package node_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const (
	mib    = 1 << 20
	root   = `C:\var\lib\kubelet`
	folder = root + `\plugins\csi-windows`
	// stagingPath and targetPath are of the usual form and length.
	stagingPath = root + `\plugins\kubernetes.io\csi\disk.example\0123\globalmount`
	targetPath  = root + `\pods\4567\volumes\kubernetes.io~csi\pvc-89\mount`
	volumeID    = "volume-1"
)

// lab is a simulated node with tasks over it.
type lab struct {
	*testing.T
	ctx    context.Context
	node   *sim.Node
	host   host.Host // what the tasks see
	agent  *agent.Agent
	tasks  *node.Tasks
	log    *lockedBuffer
	wrap   func(host.Host) host.Host
	config sim.Config
	// isOfficial is set when the tasks have the official primitives only.
	isOfficial bool
	disks      int
	// diskTime is how long the tasks wait for a disk.
	diskTime time.Duration
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

// inEveryWorld runs a test over our own primitives and over the official ones, as
// our agent and as others answer them.
func inEveryWorld(t *testing.T, test func(l *lab)) {
	t.Helper()
	t.Run("additions", func(t *testing.T) { test(newLab(t, nil)) })
	for name, wrap := range map[string]func(host.Host) host.Host{"official": official, "upstream": upstream} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, wrap)
			l.isOfficial = true
			test(l)
		})
	}
}

// newLab opens a new node. wrap may put something between agent and tasks; change
// may alter the node.
func newLab(t *testing.T, wrap func(host.Host) host.Host, change ...func(*sim.Config)) *lab {
	t.Helper()
	l := &lab{T: t, ctx: t.Context(), log: &lockedBuffer{}, wrap: wrap, diskTime: 200 * time.Millisecond}
	l.config = sim.Config{Dir: t.TempDir(), ArrivalPolls: -1, ServicePolls: -1}
	for _, c := range change {
		c(&l.config)
	}
	simulated, err := sim.Open(l.ctx, l.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := simulated.Close(); err != nil {
			t.Error(err)
		}
	})
	l.node = simulated
	l.restart()
	l.ok(simulated.MakeDir(l.ctx, root))
	return l
}

// restart puts a new agent and new tasks over the node, as after a restart of the
// processes.
func (l *lab) restart() {
	l.Helper()
	logger := slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	os := winos.New(l.node, l.node, winos.Options{
		PollInterval: time.Millisecond,
		Retry:        cim.RetryPolicy{FirstDelay: time.Microsecond, LongestDelay: time.Microsecond},
	})
	var err error
	l.agent, err = agent.New(os, agent.Policy{Roots: []string{root}, RequirePrivacy: true, PollInterval: time.Millisecond, Logger: logger})
	l.ok(err)
	l.host = l.agent
	if l.wrap != nil {
		l.host = l.wrap(l.agent)
	}
	l.tasks, err = node.New(l.host, node.Options{Folder: folder, Logger: logger, DiskTimeout: l.diskTime})
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
	if err == nil || !host.IsKind(err, kind) {
		l.Errorf("got %v, want kind %q", err, kind)
	}
}

// attach plugs in an empty disk with a page 83 id of its own.
func (l *lab) attach(change ...func(*sim.DiskSpec)) (number uint32, source node.Source) {
	l.Helper()
	l.disks++
	id := "ID-" + strconv.Itoa(l.disks)
	spec := sim.DiskSpec{
		Image: filepath.Join(l.TempDir(), "disk-"+id), SizeBytes: 64 * mib, Bus: "SAS", Serial: "SN-" + id,
		IDs: []sim.DeviceID{{CodeSet: 2, Type: 1, Association: 0, ID: []byte(id)}},
	}
	for _, c := range change {
		c(&spec)
	}
	number, err := l.node.AttachDisk(l.ctx, spec)
	l.ok(err)
	return number, node.Source{Disk: &node.DiskSource{Page83: id}}
}

func stageRequest(source node.Source) node.StageRequest {
	return node.StageRequest{VolumeID: volumeID, StagingPath: stagingPath, Source: source}
}

func unstageRequest(source node.Source) node.UnstageRequest {
	return node.UnstageRequest{VolumeID: volumeID, StagingPath: stagingPath, Source: source}
}

func publishRequest() node.PublishRequest {
	return node.PublishRequest{VolumeID: volumeID, StagingPath: stagingPath, TargetPath: targetPath}
}

func unpublishRequest() node.UnpublishRequest {
	return node.UnpublishRequest{VolumeID: volumeID, TargetPath: targetPath}
}

// staged attaches a disk and stages it.
func (l *lab) staged() (number uint32, source node.Source) {
	l.Helper()
	number, source = l.attach()
	l.ok(l.tasks.Stage(l.ctx, stageRequest(source)))
	return number, source
}

// published stages a new disk and publishes it.
func (l *lab) published() (number uint32, source node.Source) {
	l.Helper()
	number, source = l.staged()
	l.ok(l.tasks.Publish(l.ctx, publishRequest()))
	return number, source
}

// disk returns a disk as the node itself sees it.
func (l *lab) disk(number uint32) sim.DiskStatus {
	l.Helper()
	disks, err := l.node.Disks(l.ctx)
	l.ok(err)
	for _, d := range disks {
		if d.Number == number {
			return d
		}
	}
	l.Fatalf("there is no disk %d", number)
	return sim.DiskStatus{}
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

// linkKind fails the test unless what is at the path is of the kind.
func (l *lab) linkKind(path string, want host.LinkKind) {
	l.Helper()
	if got, err := l.agent.GetLink(l.ctx, path); err != nil || got.Kind != want {
		l.Errorf("GetLink(%s) = %v, %v; want kind %q", path, got, err, want)
	}
}

// exists fails the test unless something, or nothing, is at the path.
func (l *lab) exists(path string, want bool) {
	l.Helper()
	if got, err := l.agent.PathExists(l.ctx, path); err != nil || got != want {
		l.Errorf("PathExists(%s) = %v, %v; want %v", path, got, err, want)
	}
}

// calls runs do and returns the calls of the operating system it made, without
// their objects.
func (l *lab) calls(do func()) []string {
	l.Helper()
	l.ok(l.node.RecordCalls(l.ctx, true))
	do()
	log, err := l.node.CallLog(l.ctx)
	l.ok(errors.Join(err, l.node.RecordCalls(l.ctx, false)))
	names := make([]string, 0, len(log))
	for _, call := range log {
		names = append(names, call.Name)
	}
	return names
}

// clean fails the test when handles are open or the tasks' own folder holds more
// than empty folders.
func (l *lab) clean() {
	l.Helper()
	if n, err := l.node.HandleCount(l.ctx); err != nil || n != 0 {
		l.Errorf("%d handles are open, %v", n, err)
	}
	exists, err := l.agent.PathExists(l.ctx, folder)
	l.ok(err)
	if !exists {
		return
	}
	groups, err := l.node.ListDir(l.ctx, folder)
	l.ok(err)
	for _, group := range groups {
		if names, err := l.node.ListDir(l.ctx, folder+`\`+group); err != nil || len(names) > 0 {
			l.Errorf("%s holds %q, %v", group, names, err)
		}
	}
}

func (l *lab) sourceOf(id string) node.Source {
	return node.Source{Disk: &node.DiskSource{Page83: id}}
}
