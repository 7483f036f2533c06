package node_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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

// netRoot is the working folder of every netLab.
const netRoot = `C:\var\lib\kubelet`

// netLab is a simulated node with a file server and iSCSI targets on its network,
// an agent, and node tasks over it.
type netLab struct {
	*testing.T
	node     *sim.Node
	os       agent.OS
	agent    *agent.Agent
	tasks    *node.Tasks
	ctx      context.Context
	policy   agent.Policy
	official bool
	upstream bool // the official primitives as the official csi-proxy answers them
	log      *lockedBuffer
	share    string // the real folder of \\srv\share
}

// overBoth runs a test over our agent and over an agent without the additions.
func overBoth(t *testing.T, test func(l *netLab)) {
	t.Helper()
	for _, official := range []bool{false, true} {
		name := map[bool]string{false: "ours", true: "official"}[official]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newNetLab(t, official))
		})
	}
}

// overAll is overBoth, and runs the test over the official csi-proxy too, with all its
// manners.
func overAll(t *testing.T, test func(l *netLab)) {
	t.Helper()
	overBoth(t, test)
	t.Run("upstream", func(t *testing.T) {
		t.Parallel()
		l := newNetLab(t, true)
		l.upstream = true
		l.restart()
		test(l)
	})
}

func newNetLab(t *testing.T, official bool, change ...func(*sim.Config, *agent.Policy)) *netLab {
	t.Helper()
	l := &netLab{T: t, ctx: t.Context(), official: official, log: &lockedBuffer{}, share: t.TempDir()}
	config := sim.Config{Dir: t.TempDir(), ArrivalPolls: -1, ServicePolls: -1}
	logger := slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l.policy = agent.Policy{Roots: []string{netRoot}, RequirePrivacy: true, PollInterval: time.Millisecond, Logger: logger}
	for _, c := range change {
		c(&config, &l.policy)
	}
	simulated, err := sim.Open(l.ctx, config)
	l.ok(err)
	t.Cleanup(func() {
		if err := simulated.Close(); err != nil {
			t.Error(err)
		}
	})
	l.node = simulated
	l.ok(simulated.MakeDir(l.ctx, netRoot))
	l.serve(nil)
	for _, folder := range []string{"a", "b", "pvc/1"} {
		l.ok(os.MkdirAll(filepath.Join(l.share, folder), 0o755))
		l.ok(os.WriteFile(filepath.Join(l.share, folder, "file"), []byte(folder), 0o600))
	}
	l.restart()
	return l
}

// serve puts the file server on the network, or changes it.
func (l *netLab) serve(change func(*sim.SMBServer)) {
	l.Helper()
	server := sim.SMBServer{Name: "srv", Users: map[string]string{"u": "pw", `d\u`: "pw"}, Shares: []sim.SMBShare{
		{Name: "share", Folder: l.share}, {Name: "second", Folder: filepath.Dir(l.share)},
	}}
	if change != nil {
		change(&server)
	}
	l.ok(l.node.SetSMBServer(l.ctx, server))
}

// restart puts a new agent and new tasks over the node, as after a restart of the process.
func (l *netLab) restart() {
	l.Helper()
	l.os = winos.New(l.node, l.node, winos.Options{
		PollInterval: time.Millisecond,
		Retry:        cim.RetryPolicy{FirstDelay: time.Microsecond, LongestDelay: time.Microsecond},
	})
	var err error
	l.agent, err = agent.New(l.os, l.policy)
	l.ok(err)
	var h host.Host = l.agent
	if l.official {
		h = official(l.agent)
	}
	if l.upstream {
		h = upstreamISCSI{upstream(l.agent), l.agent}
	}
	l.tasks, err = node.New(h, node.Options{Logger: l.policy.Logger, DiskTimeout: 2 * time.Second})
	l.ok(err)
}

func (l *netLab) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// want fails the test unless err is of the kind. The errors of the official csi-proxy
// have one kind only.
func (l *netLab) want(kind host.Kind, err error) {
	l.Helper()
	if !host.IsKind(err, kind) && (!l.upstream || !host.IsKind(err, host.KindInternal)) {
		l.Errorf("got %v, want kind %q", err, kind)
	}
}

// reboot restarts the node and what runs on it.
func (l *netLab) reboot() {
	l.Helper()
	l.ok(errors.Join(l.node.PowerCut(l.ctx), l.node.Boot(l.ctx)))
	l.restart()
}

// netStaging is where the kubelet has a volume staged.
func netStaging(volume string) string {
	return netRoot + `\plugins\kubernetes.io\csi\drv\` + volume + `\globalmount`
}

// kubeletFolder makes the empty folder the kubelet makes before it stages.
func (l *netLab) kubeletFolder(volume string) {
	l.Helper()
	l.ok(l.agent.Mkdir(l.ctx, netStaging(volume)))
}

func smbStage(volume, path string) node.StageRequest {
	return node.StageRequest{VolumeID: volume, StagingPath: netStaging(volume), Source: node.Source{
		SMB: &node.SMBSource{Path: path, Username: "u", Password: "pw"},
	}}
}

// smbUnstage is the end of such a stage, with or without the hint.
func smbUnstage(volume, path string) node.UnstageRequest {
	r := node.UnstageRequest{VolumeID: volume, StagingPath: netStaging(volume)}
	if path != "" {
		r.Source.SMB = &node.SMBSource{Path: path}
	}
	return r
}

func (l *netLab) holds(path, content string) {
	l.Helper()
	if got, err := l.node.ReadFile(l.ctx, path); err != nil || string(got) != content {
		l.Errorf("%s holds %q, %v; want %q", path, got, err, content)
	}
}

// missing fails the test when something is at a path, dangling links included.
func (l *netLab) missing(path string) {
	l.Helper()
	if link, err := l.agent.GetLink(l.ctx, path); !host.IsKind(err, host.KindNotFound) {
		l.Errorf("%s is %+v, %v; want nothing there", path, link, err)
	}
}

// mapped fails the test unless so many shares are mapped.
func (l *netLab) mapped(want int) {
	l.Helper()
	mappings, err := l.agent.ListSmbGlobalMappings(l.ctx)
	if err != nil || len(mappings) != want {
		l.Errorf("mappings are %+v, %v; want %d", mappings, err, want)
	}
}

// noHolds fails the test when a hold is left anywhere.
func (l *netLab) noHolds() {
	l.Helper()
	for _, group := range []string{"smb", "iscsi", "portal", "publish", "disk", "unstaging"} {
		names, err := l.node.ListDir(l.ctx, node.DefaultFolder+`\`+group)
		if err == nil && len(names) > 0 {
			l.Errorf("holds are left: %s %q", group, names)
		}
	}
}

// calls runs do and returns the operating system calls whose name and object begin with prefix.
func (l *netLab) calls(prefix string, do func()) []sim.Call {
	l.Helper()
	l.ok(l.node.RecordCalls(l.ctx, true))
	do()
	all, err := l.node.CallLog(l.ctx)
	l.ok(errors.Join(err, l.node.RecordCalls(l.ctx, false)))
	var found []sim.Call
	for _, call := range all {
		if strings.HasPrefix(call.Name+" "+call.Object, strings.TrimSuffix(prefix, "*")) {
			found = append(found, call)
		}
	}
	return found
}
