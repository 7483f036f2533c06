package sweep

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// The node of every world.
const (
	mib      = 1 << 20
	diskMiB  = 256
	root     = `C:\var\lib\kubelet`
	staging  = root + `\plugins\kubernetes.io\csi\driver.example.org\1\globalmount`
	target   = root + `\pods\1\volumes\kubernetes.io~csi\pv\mount`
	volumeID = "volume-1"
	payload  = "written before"
	taskTime = 20 * time.Second
)

// world is a simulated node under the node tasks.
type world struct {
	testing.TB
	ctx   context.Context
	node  *sim.Node
	os    agent.OS
	tasks *node.Tasks
	wrap  func(host.Host) host.Host
}

// newWorld opens a node with every kind of source on its network.
func newWorld(t testing.TB, wrap func(host.Host) host.Host) *world {
	t.Helper()
	w := &world{TB: t, ctx: t.Context(), wrap: wrap}
	var err error
	w.node, err = sim.Open(w.ctx, sim.Config{Dir: t.TempDir(), ArrivalPolls: -1, ServicePolls: -1, DiskWriteCache: true})
	w.ok(err)
	t.Cleanup(func() { w.ok(w.node.Close()) })
	w.ok(w.node.MakeDir(w.ctx, root))
	w.restart()
	return w
}

// restart puts new tasks over the node, as after a restart of the process.
func (w *world) restart() {
	w.Helper()
	w.os = winos.New(w.node, w.node, winos.Options{
		PollInterval: time.Millisecond,
		Retry:        cim.RetryPolicy{FirstDelay: time.Microsecond, LongestDelay: time.Microsecond},
	})
	a, err := agent.New(w.os, agent.Policy{Roots: []string{root}, RequirePrivacy: true, PollInterval: time.Millisecond})
	w.ok(err)
	var h host.Host = a
	if w.wrap != nil {
		h = w.wrap(h)
	}
	w.tasks, err = node.New(h, node.Options{})
	w.ok(err)
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// state describes what a task can leave on the node: disks, partitions, mounts,
// links, mappings, sessions, holds and every other file below the kubelet's folder.
// It is taken from under the tasks, not through them.
func (w *world) state() string {
	w.Helper()
	var b strings.Builder
	disks, err := w.node.Disks(w.ctx)
	w.ok(err)
	for _, d := range disks {
		fmt.Fprintf(&b, "disk %s: style %s, %d partitions, offline %v, read-only %v\n",
			filepath.Base(d.Spec.Image), d.Style, d.Partitions, d.Offline, d.ReadOnly)
	}
	volumes, err := w.os.Volumes(w.ctx)
	w.ok(err)
	for _, v := range volumes {
		paths, err := w.os.MountPaths(w.ctx, v.ID)
		w.ok(err)
		fmt.Fprintf(&b, "volume %s of %d bytes at %q\n", v.FileSystem, v.SizeBytes, paths)
	}
	mappings, err := w.os.SMBMappings(w.ctx)
	w.ok(err)
	fmt.Fprintln(&b, "mappings", mappings)
	b.WriteString(w.initiator())
	b.WriteString(volumeHold.ReplaceAllString(w.tree(root), `$1<volume>`))
	return b.String()
}

// volumeHold is the folder of a hold on a volume of a disk, whose name every world has
// of its own.
var volumeHold = regexp.MustCompile(`(\\csi-windows\\disk\\)[0-9a-f]{32}`)

// initiator describes what the iSCSI initiator knows. Its service says nothing while
// it does not run, as after a power cut, so it is started for that.
func (w *world) initiator() string {
	w.Helper()
	if err := w.os.StartService(w.ctx, "MSiSCSI"); !host.IsKind(err, host.KindExists) {
		w.ok(err)
	}
	var b strings.Builder
	portals, err := w.os.TargetPortals(w.ctx)
	w.ok(err)
	fmt.Fprintln(&b, "portals", portals)
	sessions, err := w.os.Sessions(w.ctx)
	w.ok(err)
	for _, session := range sessions {
		fmt.Fprintf(&b, "session with %s, persistent %v\n", session.IQN, session.Persistent)
	}
	return b.String()
}

// tree lists a folder of the node with everything below it. What is on a volume or
// share is listed below each path that leads there.
func (w *world) tree(path string) string {
	w.Helper()
	names, err := w.node.ListDir(w.ctx, path)
	if err != nil {
		return "" // a file, or a link that leads nowhere
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		if name == "System Volume Information" {
			continue
		}
		below := path + `\` + name
		fmt.Fprintln(&b, strings.TrimPrefix(below, root))
		b.WriteString(w.tree(below))
	}
	return b.String()
}
