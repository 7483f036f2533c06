package driver

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/test/wine/bed"
)

const (
	kubelet  = `C:\var\lib\kubelet`
	nodeName = "node-1"
	gib      = bed.GiB
	// callTime is generous: the machine may be busy.
	callTime = 2 * time.Minute
)

// lab is an empty node, and the folders that a kubelet gives one volume.
type lab struct {
	*bed.Node
	staging, target string
	folder          string // a real folder, which Wine and the node have on drive Z
}

func open(t *testing.T) *lab {
	t.Helper()
	folder, err := os.MkdirTemp(`Z:\tmp`, "csi-lab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	name := fmt.Sprintf("driver-%d", time.Now().UnixNano())
	l := &lab{Node: bed.Connect(t), folder: folder}
	l.staging = kubelet + `\plugins\kubernetes.io\csi\` + name + `\globalmount`
	l.target = kubelet + `\pods\` + name + `\volumes\kubernetes.io~csi\pvc-1\mount`
	l.Fresh()
	return l
}

// driver is a running csi-driver.exe and a connection to it.
type driver struct {
	*lab
	program    *bed.Program
	endpoint   string
	controller csi.ControllerClient
	node       csi.NodeClient
	identity   csi.IdentityClient
}

// pipeEndpoint is the endpoint of a named pipe that no other test has.
func pipeEndpoint() string { return fmt.Sprintf("npipe://./pipe/csi-driver-%d", time.Now().UnixNano()) }

// drive starts csi-driver.exe and waits until its endpoint is open.
func (l *lab) drive(endpoint string, flags ...string) *driver {
	l.Helper()
	d := &driver{lab: l, endpoint: endpoint}
	d.program = bed.StartDriver(l, append([]string{"-node-id=" + nodeName, "-endpoint=" + endpoint}, flags...)...)
	d.program.WaitReady(l)
	conn, err := grpc.NewClient("passthrough:csi", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer(endpoint)))
	l.OK(err)
	l.Cleanup(func() { _ = conn.Close() })
	d.controller, d.node, d.identity = csi.NewControllerClient(conn), csi.NewNodeClient(conn), csi.NewIdentityClient(conn)
	for end := time.Now().Add(callTime); ; <-time.After(20 * time.Millisecond) {
		answer := ok(d, d.identity.Probe, &csi.ProbeRequest{})
		if answer.GetReady() == nil || answer.GetReady().GetValue() {
			return d
		}
		if time.Now().After(end) {
			l.Fatalf("after %s the driver still says that it is not ready", callTime)
		}
	}
}

func dialer(endpoint string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) {
		if name, found := strings.CutPrefix(endpoint, "npipe:"); found {
			return winio.DialPipeContext(ctx, strings.ReplaceAll(name, "/", `\`))
		}
		return new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(endpoint, "tcp://"))
	}
}

// ok is a call that has to succeed, and again, as kubelets repeat calls. (Case C068.)
func ok[R, A any](d *driver, call func(context.Context, R, ...grpc.CallOption) (A, error), request R) A {
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

// volume is what the calls of a node say of a volume.
type volume struct {
	id               string
	context, publish map[string]string
	secrets          map[string]string
}

func writer() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

func (d *driver) stageRequest(v volume) *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{
		VolumeId: v.id, StagingTargetPath: d.staging, VolumeCapability: writer(), VolumeContext: v.context, PublishContext: v.publish, Secrets: v.secrets,
	}
}

// begin stages and publishes a volume, writes a file in the pod's folder as a program
// of the pod does, and looks for it in the staging folder.
func (d *driver) begin(v volume) {
	d.Helper()
	ok(d, d.node.NodeStageVolume, d.stageRequest(v))
	ok(d, d.node.NodePublishVolume, &csi.NodePublishVolumeRequest{
		VolumeId: v.id, StagingTargetPath: d.staging, TargetPath: d.target, VolumeCapability: writer(), VolumeContext: v.context, PublishContext: v.publish,
	})
	d.OK(d.Control.WriteFile(d.Context(), d.target+`\file`, []byte("data")))
	if data, err := d.Control.ReadFile(d.Context(), d.staging+`\file`); err != nil || string(data) != "data" {
		d.Errorf("through the staging folder the file holds %q, %v", data, err)
	}
}

// totalBytes asks for the size of a published volume.
func (d *driver) totalBytes(v volume) int64 {
	d.Helper()
	answer := ok(d, d.node.NodeGetVolumeStats, &csi.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: d.target, StagingTargetPath: d.staging})
	for _, usage := range answer.GetUsage() {
		if usage.GetUnit() == csi.VolumeUsage_BYTES {
			return usage.GetTotal()
		}
	}
	d.Fatalf("no bytes in %v", answer)
	return 0
}

// end takes a volume away from the pod and the node, which then has neither folder.
func (d *driver) end(v volume) {
	d.Helper()
	ok(d, d.node.NodeUnpublishVolume, &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: d.target})
	if data, err := d.Control.ReadFile(d.Context(), d.staging+`\file`); err != nil || string(data) != "data" {
		d.Errorf("unpublished, and the file holds %q, %v", data, err)
	}
	ok(d, d.node.NodeUnstageVolume, &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: d.staging})
	if _, err := d.Control.ListDir(d.Context(), d.target); err == nil {
		d.Errorf("%s is still there", d.target)
	}
	if names, err := d.Control.ListDir(d.Context(), d.staging); err == nil && len(names) > 0 {
		d.Errorf("%s holds %q", d.staging, names)
	}
}

// says fails the test unless the driver's log has every part.
func (d *driver) says(parts ...string) {
	d.Helper()
	text := d.program.Text()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			d.Errorf("the log does not say %q", part)
		}
	}
}
