//go:build unix

package csikit_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

const (
	toyLinesMax = 60
	// toyStartMax bounds what a test cannot see: the compiler, and a start.
	toyStartMax = 3 * time.Minute
	toyStopMax  = 30 * time.Second
)

// toyProgram is the program of docs/writing-a-driver.md.
func toyProgram(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/writing-a-driver.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n```go\n")
	program, more, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed || strings.Contains(more, "\n```go\n") {
		t.Fatal("the page has not one program")
	}
	return program + "\n"
}

// buildToy compiles the program as a user would.
func buildToy(t *testing.T, program string) (path string) {
	t.Helper()
	folder := t.TempDir()
	source := filepath.Join(folder, "main.go")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(folder, "toydriver.exe")
	ctx, cancel := context.WithTimeout(t.Context(), toyStartMax)
	defer cancel()
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("the program of the page does not compile: %v\n%s", err, output)
	}
	return path
}

// runToy runs the program until the test ends.
func runToy(t *testing.T, program, endpoint, pipes string) {
	t.Helper()
	var output bytes.Buffer
	command := exec.Command(program)
	command.Env = append(os.Environ(), "CSI_ENDPOINT="+endpoint, "CSI_PROXY_DIR="+pipes)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // as Kubernetes does
		kill := time.AfterFunc(toyStopMax, func() { _ = command.Process.Kill() })
		defer kill.Stop()
		if err := command.Wait(); err != nil {
			t.Errorf("the program ended with %v:\n%s", err, output.String())
		}
	})
}

// A volume's life, through the program of the page, csi-proxy's pipes, the node tasks
// and the agent, on the simulated node.
func TestTheDriverOfTheDocumentWorks(t *testing.T) {
	t.Parallel()
	program := toyProgram(t)
	if lines := strings.Count(program, "\n"); lines >= toyLinesMax {
		t.Errorf("the program has %d lines, the page says less than %d", lines, toyLinesMax)
	}
	binary := buildToy(t, program)
	const kubelet = `C:\var\lib\kubelet`
	s := stack.New(t, func(c *stack.Config) {
		c.Policy.Roots, c.Tasks.Folder = []string{kubelet}, kubelet+`\plugins\csi-windows`
	})
	s.MakeDir(kubelet + `\pods\p`)
	s.Attach(sim.DiskSpec{Serial: "pvc-1", SizeBytes: 64 << 20})
	socket := filepath.Join(socketDir(t), "csi.sock")
	runToy(t, binary, "unix:"+socket, s.Place().Dir)

	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), toyStartMax)
	defer cancel()
	identity, controller, nodes := csi.NewIdentityClient(conn), csi.NewControllerClient(conn), csi.NewNodeClient(conn)
	probed, err := identity.Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
	if err != nil || !probed.GetReady().GetValue() {
		t.Fatalf("Probe: %v %v", probed, err)
	}
	made, err := controller.CreateVolume(ctx, createRequest("pvc-1", writer()))
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetVolume().GetVolumeId()
	for range 2 { // every call may be repeated
		_, err = nodes.NodeStageVolume(ctx, stage(id, writer()))
		expect(t, "stage", err, codes.OK)
		_, err = nodes.NodePublishVolume(ctx, publish(id, writer()))
		expect(t, "publish", err, codes.OK)
	}
	s.WriteFile(targetPath+`\hello.txt`, "hello")
	s.Holds(stagingPath+`\hello.txt`, "hello")
	stats, err := nodes.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: targetPath})
	if total := stats.GetUsage(); err != nil || len(total) != 1 || total[0].GetTotal() <= 0 || total[0].GetTotal() > 64<<20 {
		t.Errorf("NodeGetVolumeStats: %v %v", stats, err)
	}
	_, err = nodes.NodeStageVolume(ctx, stage("pvc-2", writer()))
	expect(t, "stage of a volume nobody made", err, codes.NotFound)
	for range 2 {
		_, err = nodes.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: targetPath})
		expect(t, "unpublish", err, codes.OK)
		_, err = nodes.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: stagingPath})
		expect(t, "unstage", err, codes.OK)
		_, err = controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		expect(t, "delete", err, codes.OK)
	}
}

// socketDir is a folder whose name is short enough for sockets in it.
func socketDir(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "kit")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}
