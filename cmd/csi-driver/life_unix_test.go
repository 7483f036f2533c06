//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/test/bed"
)

const (
	gib       = 1 << 30
	staging   = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\simcloud\staging`
	target    = `C:\var\lib\kubelet\pods\uid\volumes\mount`
	callTime  = 30 * time.Second
	nodeNamed = "node-1"
)

// bedDriver is csi-driver as a process of its own.
type bedDriver struct {
	*testing.T
	process    *bed.Process
	controller csi.ControllerClient
	node       csi.NodeClient
	identity   csi.IdentityClient
}

// self is this test program, which is csi-driver when its first flag is -mode.
func self(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// startDriver starts a driver and waits until it is ready.
func startDriver(t *testing.T, flags ...string) *bedDriver {
	t.Helper()
	folder, err := os.MkdirTemp("", "drv") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "csi.sock")
	d := &bedDriver{T: t, process: bed.Start(t, self(t), append(flags, "-endpoint=unix:"+socket, "-v=4")...)}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	d.controller, d.node, d.identity = csi.NewControllerClient(conn), csi.NewNodeClient(conn), csi.NewIdentityClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), bed.ReadyTime)
	defer cancel()
	for {
		answer, err := d.identity.Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
		if err == nil && (answer.GetReady() == nil || answer.GetReady().GetValue()) {
			return d
		}
		if ctx.Err() != nil || d.process.Ended() {
			t.Fatalf("csi-driver is not ready: %v, %v", answer, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// ok is a call that has to succeed. It is made twice, as a kubelet may. (Case C068.)
func ok[R, A any](d *bedDriver, call func(context.Context, R, ...grpc.CallOption) (A, error), request R) A {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), callTime)
	defer cancel()
	answer, err := call(ctx, request)
	if err == nil {
		answer, err = call(ctx, request)
	}
	if err != nil {
		d.Fatalf("%T: %v", request, err)
	}
	return answer
}

func writer() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// live plays the life of a volume, from CreateVolume to DeleteVolume.
func (d *bedDriver) live(n *bed.Node) {
	d.Helper()
	ctx := d.Context()
	volume := ok(d, d.controller.CreateVolume, &csi.CreateVolumeRequest{
		Name: "pvc-1", CapacityRange: &csi.CapacityRange{RequiredBytes: gib}, VolumeCapabilities: []*csi.VolumeCapability{writer()},
	}).GetVolume()
	id := volume.GetVolumeId()
	attached := ok(d, d.controller.ControllerPublishVolume, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: nodeNamed, VolumeCapability: writer(), VolumeContext: volume.GetVolumeContext()})
	ok(d, d.node.NodeStageVolume, &csi.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, VolumeCapability: writer(), VolumeContext: volume.GetVolumeContext(), PublishContext: attached.GetPublishContext(),
	})
	ok(d, d.node.NodePublishVolume, &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: writer(), VolumeContext: volume.GetVolumeContext(),
	})
	if err := n.WriteFile(ctx, target+`\file`, []byte("data")); err != nil {
		d.Fatal(err)
	}
	ok(d, d.controller.ControllerExpandVolume, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}, VolumeCapability: writer()})
	ok(d, d.node.NodeExpandVolume, &csi.NodeExpandVolumeRequest{VolumeId: id, VolumePath: target, StagingTargetPath: staging, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}, VolumeCapability: writer()})
	stats := ok(d, d.node.NodeGetVolumeStats, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target, StagingTargetPath: staging})
	if usage := stats.GetUsage(); len(usage) == 0 || usage[0].GetTotal() < 19*gib/10 {
		d.Errorf("stats after the expansion: %v", usage)
	}
	ok(d, d.node.NodeUnpublishVolume, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target})
	ok(d, d.node.NodeUnstageVolume, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging})
	// What was written is there at the next stage.
	ok(d, d.node.NodeStageVolume, &csi.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, VolumeCapability: writer(), VolumeContext: volume.GetVolumeContext(), PublishContext: attached.GetPublishContext(),
	})
	if data, err := n.ReadFile(ctx, staging+`\file`); err != nil || string(data) != "data" {
		d.Errorf("the file holds %q, %v", data, err)
	}
	ok(d, d.node.NodeUnstageVolume, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging})
	ok(d, d.controller.ControllerUnpublishVolume, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: nodeNamed})
	ok(d, d.controller.DeleteVolume, &csi.DeleteVolumeRequest{VolumeId: id})
	if list := ok(d, d.controller.ListVolumes, &csi.ListVolumesRequest{}); len(list.GetEntries()) > 0 {
		d.Errorf("volumes are left: %v", list)
	}
}

// firstLine is the first line of the driver's log.
func (d *bedDriver) firstLine() string {
	line, _, _ := strings.Cut(d.process.Log(), "\n")
	return line
}

// says fails the test unless a text holds every part.
func (d *bedDriver) says(text string, parts ...string) {
	d.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			d.Errorf("%q does not say %q", text, part)
		}
	}
}

// The whole driver as a process, over csi-proxy as another: with its group node, with
// the driver's own tasks although the group is there, and with what every
// csi-proxy has, be it as old as it may (C062).
func TestC093_LifeOfAVolumeOverPipes(t *testing.T) {
	t.Parallel()
	t.Run("group node", func(t *testing.T) {
		t.Parallel()
		n := bed.StartNode(t)
		overPipes(t, n, `nodeTasks="proxy"`)
		overPipes(t, n, "", "-node-tasks=driver")
	})
	t.Run("official", func(t *testing.T) {
		t.Parallel()
		n := bed.StartNode(t, "-api=disk/*,volume/*,filesystem/*,smb/*,iscsi/*,system/*")
		overPipes(t, n, `nodeTasks="driver"`)
	})
}

// overPipes plays the life of a volume with a driver of its own.
func overPipes(t *testing.T, n *bed.Node, tasks string, flags ...string) {
	t.Helper()
	d := startDriver(t, append([]string{"-mode=all", "-driver=simcloud", "-node-id=" + nodeNamed, "-cloud-dir=" + t.TempDir(),
		"-cloud-node=" + nodeNamed + "=" + n.ControlAddress, "-socket-dir=" + n.Place.Dir, "-metrics-bind-address=127.0.0.1:0"}, flags...)...)
	d.says(d.firstLine(), "csi-driver starts", `host="proxy"`, `why="this is no Windows"`)
	d.live(n)
	d.says(d.process.Log(), tasks)
	if tasks == "" && strings.Contains(d.process.Log(), "nodeTasks") {
		t.Error("tasks that a flag decides are chosen")
	}
	d.says(d.scrape(), "csi_driver_build_info{", `method_name="/csi.v1.Node/NodeStageVolume"`)
	if err := d.process.Stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	d.says(d.process.Log(), "csi-driver has stopped")
}

// scrape reads the metrics from the address that the log tells.
func (d *bedDriver) scrape() string {
	d.Helper()
	found := regexp.MustCompile(`metrics are served" address="?([0-9.:]+)`).FindStringSubmatch(d.process.Log())
	if found == nil {
		d.Fatal("the log does not tell the address of the metrics")
	}
	request, err := http.NewRequestWithContext(d.Context(), http.MethodGet, "http://"+found[1]+"/metrics", nil)
	if err != nil {
		d.Fatal(err)
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		d.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		d.Fatal(err)
	}
	return string(text)
}

func TestC093_InProcessWithASimulatedNode(t *testing.T) {
	t.Parallel()
	d := startDriver(t, "-mode=node", "-driver=iscsi", "-node-id="+nodeNamed, "-sim-dir="+t.TempDir())
	d.says(d.firstLine(), "csi-driver starts", `host="local"`, "-sim-dir is set")
	if info := ok(d, d.node.NodeGetInfo, &csi.NodeGetInfoRequest{}); info.GetNodeId() != nodeNamed {
		t.Errorf("got %v", info)
	}
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	stage := func(id string, capability *csi.VolumeCapability) codes.Code {
		_, err := d.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: capability})
		return status.Code(err)
	}
	if code := stage("nonsense", writer()); code != codes.NotFound {
		t.Errorf("an unknown volume: %v", code)
	}
	block := writer()
	block.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	if code := stage("iqn.2026-01.x:d/0@192.0.2.1", block); code != codes.InvalidArgument { // C067
		t.Errorf("a raw device: %v", code)
	}
	_, err := d.controller.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "x", VolumeCapabilities: []*csi.VolumeCapability{writer()}})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("the controller of a node: %v", err)
	}
}

func TestFailedStartsHaveTheirExitCodes(t *testing.T) {
	t.Parallel()
	cloudDir := t.TempDir()
	controller := []string{"-mode=controller", "-driver=simcloud", "-cloud-dir=" + cloudDir}
	startDriver(t, controller...)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	iscsi := []string{"-mode=controller", "-driver=iscsi"}
	for name, test := range map[string]struct {
		args []string
		want int
	}{
		"cloud in use":     {append(controller, "-endpoint=tcp://127.0.0.1:0"), 11},
		"file in the way":  {append(iscsi, "-endpoint=unix:"+file), 5},
		"unknown endpoint": {append(iscsi, "-endpoint=http://x"), 2},
		"no metrics":       {append(iscsi, "-endpoint=tcp://127.0.0.1:0", "-metrics-bind-address=192.0.2.1:1"), 6},
		"bad name":         {append(iscsi, "-endpoint=tcp://127.0.0.1:0", "-driver-name=a b"), 2},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), callTime)
		output, err := exec.CommandContext(ctx, self(t), test.args...).CombinedOutput()
		cancel()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != test.want {
			t.Errorf("%s: %v, want exit code %d\n%s", name, err, test.want, output)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "precious" {
		t.Errorf("the file in the way holds %q, %v", data, err)
	}
}
