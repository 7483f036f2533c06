package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/internal/freeport"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/conformance"
	"github.com/csi-windows/csi-windows/test/wine/bed"
)

const (
	workingDir = `C:\k`
	targetIQN  = "iqn.2026-01.io.example:conformance"
	portal     = "10.0.0.1:3260"
	secret     = "0123456789abc"
	// suiteTime is generous: the whole suite takes some seconds on an idle machine.
	suiteTime = 8 * time.Minute
)

// The shipped csi-proxy.exe passes the whole suite, run by the shipped
// csi-proxyctl.exe over named pipes.
func TestConformance(t *testing.T) {
	b := openWorld(t)
	bed.Start(t, b.agentFlags...).WaitReady(t)
	b.servers(t)
	secretFile := filepath.Join(b.folder, "secret")
	if err := os.WriteFile(secretFile, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := append([]string{
		"conformance", "-o", "json", "--working-dir", workingDir, "--sim-control", b.address, "--scratch", b.scratch,
		"--smb-path", `\\files\share`, "--smb-user", "tester", "--smb-password-file", secretFile,
		"--iscsi-portal", portal, "--iscsi-chap-user", "tester", "--iscsi-chap-secret-file", secretFile,
	}, b.suiteFlags...)
	ctx, cancel := context.WithTimeout(t.Context(), suiteTime)
	defer cancel()
	command := exec.CommandContext(ctx, bed.Environment(t, bed.ProxyCtlVariable), flags...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	runErr := command.Run()
	var results []conformance.Result
	if err := json.Unmarshal(stdout.Bytes(), &results); err != nil {
		t.Fatalf("csi-proxyctl: %v\n%s\n%s", runErr, stdout.String(), stderr.String())
	}
	if len(results) != len(conformance.Cases()) {
		t.Errorf("%d results of %d cases", len(results), len(conformance.Cases()))
	}
	for _, r := range results {
		t.Run(r.Name, func(t *testing.T) {
			if r.Outcome != conformance.Passed {
				t.Errorf("%s after %d ms:\n%s\n%s", r.Outcome, r.DurationMilliseconds, strings.Join(r.Failures, "\n"), strings.Join(r.Notes, "\n"))
			}
		})
	}
	if runErr != nil {
		t.Errorf("csi-proxyctl: %v: %s", runErr, stderr.String())
	}
	b.isClean(t)
}

// world is the node under csi-proxy.exe, and how to reach it.
type world struct {
	control *control.Client
	address string // of the control interface
	// folder is a real folder, which the node has by the name nodeFolder.
	folder, nodeFolder string
	scratch            string
	agentFlags         []string
	suiteFlags         []string
}

// openWorld makes the world of the lane the test runs in. What it makes first outlives
// csi-proxy.exe, which may keep files open.
func openWorld(t *testing.T) *world {
	t.Helper()
	b := &world{address: os.Getenv(bed.ControlVariable)}
	if b.address != "" {
		folder, err := os.MkdirTemp(`Z:\tmp`, "csi-lab")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(folder) })
		b.folder, b.nodeFolder = folder, filepath.ToSlash(strings.TrimPrefix(folder, "Z:"))
		b.scratch = "vhdx"
		b.agentFlags = []string{"-host=windows", "-kubelet-path=" + workingDir}
		bed.Connect(t).Fresh()
	} else {
		b.folder = t.TempDir()
		b.nodeFolder, b.address, b.scratch = b.folder, freeport.Address(t), "sim"
		b.agentFlags = []string{"-host=sim", "-sim-dir=" + t.TempDir(), "-sim-control=" + b.address, "-kubelet-path=" + workingDir}
		b.suiteFlags = []string{"--scratch-dir", b.folder}
	}
	b.control = control.NewClient(b.address)
	t.Cleanup(b.control.Close)
	return b
}

// servers puts a file server and a target on the node's network.
func (b *world) servers(t *testing.T) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(b.folder, "share"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(
		b.control.SetSMBServer(t.Context(), sim.SMBServer{
			Name: "files", Users: map[string]string{"tester": secret}, Shares: []sim.SMBShare{{Name: "share", Folder: b.nodeFolder + "/share"}},
		}),
		b.control.SetISCSITarget(t.Context(), sim.ISCSITarget{
			IQN: targetIQN, Portals: []string{portal}, ChapUser: "tester", ChapSecret: secret,
			LUNs: []sim.DiskSpec{{Image: b.nodeFolder + "/lun", SizeBytes: 64 << 20}},
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// isClean fails the test when the suite has left anything on the node.
func (b *world) isClean(t *testing.T) {
	t.Helper()
	disks, err := b.control.Disks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range disks {
		if !d.System {
			t.Errorf("disk %d was left", d.Number)
		}
	}
	for _, folder := range []string{workingDir, `C:\`} {
		names, err := b.control.ListDir(t.Context(), folder)
		if err != nil && folder != workingDir {
			t.Error(err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, "csi-conformance") {
				t.Errorf(`%s\%s was left`, folder, name)
			}
		}
	}
}
