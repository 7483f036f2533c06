//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	nodetasks "github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// The paths of a volume on a node whose kubelet is at C:\k.
const (
	nodeStaging = `C:\k\plugins\kubernetes.io\csi\d\1\globalmount`
	nodeTarget  = `C:\k\pods\p\volumes\kubernetes.io~csi\v\mount`
)

// diskStage attaches a disk and returns the request that stages it.
func diskStage(t *testing.T, n *control.Client) nodetasks.StageRequest {
	t.Helper()
	_, err := n.AttachDisk(t.Context(), sim.DiskSpec{Image: filepath.Join(t.TempDir(), "d.img"), SizeBytes: 64 << 20, Serial: "D-1"})
	if err != nil {
		t.Fatal(err)
	}
	return nodetasks.StageRequest{VolumeID: "vol-1", StagingPath: nodeStaging, Source: nodetasks.Source{Disk: &nodetasks.DiskSource{SerialNumber: "D-1"}}}
}

// The node tasks are served beside the primitives: counted, in the audit with who
// asked, and with no word about passwords.
func TestNodeTasksAreServed(t *testing.T) {
	t.Parallel()
	r := startProgram(t, `-kubelet-path=C:\k\`, "-metrics-bind-address=127.0.0.1:0")
	c, n := r.connect()
	ctx := t.Context()
	if has, err := c.HasNode(ctx); !has || err != nil {
		t.Fatalf("node tasks are served: %t, %v", has, err)
	}
	err := errors.Join(
		c.Stage(ctx, diskStage(t, n)),
		c.Publish(ctx, nodetasks.PublishRequest{VolumeID: "vol-1", StagingPath: nodeStaging, TargetPath: nodeTarget}),
		n.WriteFile(ctx, nodeTarget+`\file`, []byte("x")),
		c.Unpublish(ctx, nodetasks.UnpublishRequest{VolumeID: "vol-1", TargetPath: nodeTarget}),
		c.Unstage(ctx, nodetasks.UnstageRequest{VolumeID: "vol-1", StagingPath: nodeStaging}),
	)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "MARKER-53cr3t"
	if err := n.SetSMBServer(ctx, sim.SMBServer{Name: "srv", Users: map[string]string{"u": "other"}, Shares: []sim.SMBShare{{Name: "s", Folder: t.TempDir()}}}); err != nil {
		t.Fatal(err)
	}
	share := nodetasks.StageRequest{VolumeID: "vol-2", StagingPath: nodeStaging, Source: nodetasks.Source{SMB: &nodetasks.SMBSource{Path: `\\srv\s`, Username: "u", Password: secret}}}
	if err := c.Stage(ctx, share); !host.IsKind(err, host.KindUnauthenticated) || strings.Contains(err.Error(), secret) {
		t.Errorf("a wrong password: %v", err)
	}
	metrics := r.scrape()
	for _, want := range []string{
		`csi_proxy_calls_total{code="OK",group="node",method="Stage",version="v1alpha1"} 1`,
		`csi_proxy_calls_total{code="Unauthenticated",group="node",method="Stage",version="v1alpha1"} 1`,
		`csi_proxy_call_duration_seconds_count{group="node",method="Unstage"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if audit := fmt.Sprintf("callerPID=%d", os.Getpid()); !hasLine(r.text(), "op=FormatVolume", audit) || strings.Contains(r.text(), "MARKER") {
		t.Errorf("want who formatted, and no secret, in the log:\n%s", r.text())
	}
}

// hasLine reports whether a line holds all the texts.
func hasLine(text string, all ...string) bool {
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(all, func(part string) bool { return !strings.Contains(line, part) }) {
			return true
		}
	}
	return false
}

// The tasks' own folder follows kubelet's.
func TestFolderOfNodeTasksIsBelowKubelets(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		defaultKubeletPath: nodetasks.DefaultFolder, `C:\k`: `C:\k\plugins\csi-windows`, `D:\k\`: `D:\k\plugins\csi-windows`,
		`/var/lib/kubelet/`: `/var/lib/kubelet\plugins\csi-windows`,
	} {
		if got := (&config{KubeletPath: path}).tasksFolder(); got != want {
			t.Errorf("kubelet at %s: folder %s, want %s", path, got, want)
		}
	}
}

// A pod can be given the pipe of the node tasks alone, and a node can be without it.
func TestNodePipeAloneAndLeftOut(t *testing.T) {
	t.Parallel()
	alone := startProgram(t, `-kubelet-path=C:\k`, "-api=node/v1alpha1")
	c, n := alone.connect()
	if err := c.Stage(t.Context(), diskStage(t, n)); err != nil {
		t.Errorf("with the pipe alone: %v", err)
	}
	if _, err := c.ListDisks(t.Context()); !host.IsKind(err, host.KindUnsupported) {
		t.Errorf("disks are listed through the pipe of the node tasks: %v", err)
	}
	sockets, err := filepath.Glob(filepath.Join(alone.sockets(), "*"))
	if err != nil || len(sockets) != 1 || filepath.Base(sockets[0]) != pipe.Name(wire.GroupNode, "v1alpha1")+".sock" {
		t.Errorf("sockets %q, %v", sockets, err)
	}
	without, _ := startProgram(t, "-api=disk/v1,extension/*").connect()
	if has, err := without.HasNode(t.Context()); has || err != nil {
		t.Errorf("without the pipe: %t, %v", has, err)
	}
}

// A primitive that hangs below a task is reported, the task is answered at its
// deadline, and a stop does not wait for it. The deadline leaves time to come as far
// as the primitive, on a busy machine too.
func TestC064_TaskWithHungPrimitiveIsReported(t *testing.T) {
	t.Parallel()
	r := startProgram(t, `-kubelet-path=C:\k`, "-call-timeout=5s", "-grace-period=10m")
	c, n := r.connect()
	request := diskStage(t, n)
	if err := n.AddFault(t.Context(), sim.Fault{Call: "cim.Exec MSFT_Volume.Format", Hang: true}); err != nil {
		t.Fatal(err)
	}
	if err := c.Stage(context.Background(), request); !host.IsKind(err, host.KindTimeout) {
		t.Errorf("the stage was answered with %v, want timed out", err)
	}
	r.events.wait(t, "30 Warning ", "FormatVolume")
	stopping := time.Now()
	if err := r.end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if took := time.Since(stopping); took > endTime {
		t.Errorf("the stop took %v", took)
	}
}

// A folder that was named by mistake keeps what it has, and the flag is named.
func TestASimulatedNodeTakesNoFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hosts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse("linux", "-sim-dir="+dir)
	if err != nil {
		t.Fatal(err)
	}
	n, err := openSim(t.Context(), c, slog.New(slog.DiscardHandler))
	if err == nil {
		_ = n.close()
		t.Fatal("the folder was taken")
	}
	if !strings.Contains(err.Error(), "-sim-dir") || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v; want one that names flag and folder", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("then there were %v, %v", entries, err)
	}
}
