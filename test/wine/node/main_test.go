package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/internal/leaktest"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/wine/standin"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// program is a node server that runs in this process.
type program struct {
	*testing.T
	addresses map[string]string
	input     *io.PipeWriter
	ended     chan error
	control   *control.Client
	link      *standin.Client
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	input, inputEnd := io.Pipe()
	output, outputEnd := io.Pipe()
	p := &program{T: t, input: inputEnd, ended: make(chan error, 1)}
	go func() {
		p.ended <- run(context.Background(), args, input, outputEnd, io.Discard)
		close(p.ended)
	}()
	p.ok(json.NewDecoder(output).Decode(&p.addresses))
	go func() { _, _ = io.Copy(io.Discard, output) }()
	var err error
	p.link, err = standin.Dial(t.Context(), p.addresses["standin"])
	p.ok(err)
	p.control = control.NewClient(p.addresses["control"])
	t.Cleanup(func() {
		p.stop()
		_ = p.link.Close()
		p.control.Close()
		http.DefaultClient.CloseIdleConnections()
		p.ok(outputEnd.Close())
	})
	return p
}

// stop ends the server by the end of its input; a second time it does nothing.
func (p *program) stop() {
	p.Helper()
	p.ok(p.input.Close())
	p.ok(<-p.ended)
}

func (p *program) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// post sends a control request of the link.
func (p *program) post(path, body string) (int, string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.addresses["control"]+path, strings.NewReader(body))
	p.ok(err)
	answer, err := http.DefaultClient.Do(r)
	p.ok(err)
	text, err := io.ReadAll(answer.Body)
	p.ok(err)
	p.ok(answer.Body.Close())
	return answer.StatusCode, string(text)
}

func (p *program) stats() (s standin.Stats) {
	p.Helper()
	_, text := p.post("/standin/stats", "")
	p.ok(json.Unmarshal([]byte(text), &s))
	return s
}

func (p *program) disks() []cim.Instance {
	p.Helper()
	rows, err := p.link.Query(p.Context(), cim.NamespaceStorage, "SELECT * FROM MSFT_Disk")
	p.ok(err)
	return rows
}

func TestArrangedByControlSeenByTheLink(t *testing.T) {
	drive := t.TempDir()
	p := start(t, "-drive", "C="+drive)
	ctx := t.Context()
	number, err := p.control.AttachDisk(ctx, sim.DiskSpec{Image: "a/disk.img", SizeBytes: 1 << 30})
	p.ok(err)
	if rows := p.disks(); number != 1 || len(rows) != 2 {
		t.Errorf("disk %d of %d", number, len(rows))
	}
	p.ok(p.control.SetSMBServer(ctx, sim.SMBServer{Name: "srv", Users: map[string]string{"u": "p"}, Shares: []sim.SMBShare{{Name: "s", Folder: "share"}}}))
	r, err := p.link.Exec(ctx, cim.NamespaceSMB, "MSFT_SmbGlobalMapping", "Create", cim.Values{"RemotePath": `\\srv\s`, "Credential": "u:p"})
	p.ok(err)
	if r.ReturnValue != 0 {
		t.Errorf("mapping: %d", r.ReturnValue)
	}
	p.ok(p.control.SetISCSITarget(ctx, sim.ISCSITarget{IQN: "iqn.x", Portals: []string{"192.0.2.1:3260"}, LUNs: []sim.DiskSpec{{Image: "lun.img", SizeBytes: 1 << 30}}}))
	p.ok(p.link.CreateDirectory(ctx, `C:\folder`))
	if info, err := os.Stat(filepath.Join(drive, "folder")); err != nil || !info.IsDir() {
		t.Errorf("the drive's folder: %v", err)
	}
	if _, err := p.control.AttachDisk(ctx, sim.DiskSpec{}); err == nil {
		t.Error("a disk without image was attached")
	}
}

func TestFaultsStatsAndReset(t *testing.T) {
	p := start(t)
	if status, text := p.post("/standin/fault", `{"op":"Query","class":"MSFT_Disk","kind":"hresult","code":2147749889,"times":-1}`); status != http.StatusNoContent {
		t.Fatal(status, text)
	}
	if _, err := p.link.Query(t.Context(), cim.NamespaceStorage, "SELECT * FROM MSFT_Disk"); err == nil {
		t.Error("no fault")
	}
	for _, bad := range []string{"", "{", `{"kind":"hang","color":"red"}`, `{"kind":"sing"}`} {
		if status, _ := p.post("/standin/fault", bad); status != http.StatusBadRequest {
			t.Errorf("%q: status %d", bad, status)
		}
	}
	if s := p.stats(); s.Calls["Query"] != 1 || s.Failed["Query"] != 1 || s.Faults != 1 || s.Fired != 1 || s.Connections != 1 || s.Running != 0 {
		t.Errorf("stats %+v", s)
	}
	if status, _ := p.post("/standin/reset", ""); status != http.StatusNoContent {
		t.Error(status)
	}
	p.disks()
	if status, _ := p.post("/standin/none", ""); status != http.StatusNotFound {
		t.Error(status)
	}
}

func TestFreshNode(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	_, err := p.control.AttachDisk(ctx, sim.DiskSpec{Image: "disk.img", SizeBytes: 1 << 30})
	p.ok(err)
	p.ok(p.link.CreateDirectory(ctx, `C:\old`))
	h, err := p.link.CreateFile(ctx, `C:\old`, win32.Open{Access: win32.FileListDir, Share: 7})
	p.ok(err)
	p.ok(p.control.AddFault(ctx, sim.Fault{Call: "win32.FindVolumes", Hang: true}))
	if status, text := p.post("/standin/node/reset", ""); status != http.StatusNoContent {
		t.Fatal(status, text)
	}
	if rows := p.disks(); len(rows) != 1 {
		t.Errorf("%d disks on a fresh node", len(rows))
	}
	if _, err := p.link.FileAttributes(ctx, `C:\old`); err == nil {
		t.Error("the old node's folder is there")
	}
	if names, err := p.link.ReadDir(ctx, h); err == nil {
		t.Errorf("a handle of the old node reads %q", names)
	}
	p.ok(p.link.CloseHandle(h))
	if _, err := p.link.FindVolumes(ctx); err != nil {
		t.Error(err)
	}
	if s := p.stats(); s.Generation < 2 || len(s.Devices) != 2 || s.Devices[0] != "PhysicalDrive0" {
		t.Errorf("stats %+v", s)
	}
	folders, err := os.ReadDir(p.addresses["dir"])
	p.ok(err)
	if len(folders) != 1 || folders[0].Name() != "node1" {
		t.Errorf("left over: %v", folders)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-drive", "C"}, {"-drive", "CD=/x"}, {"-drive", "C="}, {"extra"}, {"-standin", "nowhere:x"}, {"-control", "nowhere:x"}} {
		var output bytes.Buffer
		if err := run(t.Context(), args, strings.NewReader(""), &output, io.Discard); err == nil || output.Len() > 0 {
			t.Errorf("%q: %v, %q", args, err, output.String())
		}
	}
	dir := t.TempDir()
	if err := run(t.Context(), []string{"-dir", dir}, strings.NewReader(""), io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node0")); err != nil {
		t.Errorf("a given folder stays: %v", err)
	}
}

// The server ends while calls hang in the node.
func TestEndWhileCallsHang(t *testing.T) {
	p := start(t)
	p.ok(p.control.AddFault(t.Context(), sim.Fault{Call: "win32.FindVolumes", Hang: true}))
	hanging, err := standin.Dial(t.Context(), p.addresses["standin"])
	p.ok(err)
	answered := make(chan error, 1)
	go func() {
		_, err := hanging.FindVolumes(context.Background())
		answered <- err
	}()
	for p.stats().Running < 1 {
		time.Sleep(time.Millisecond)
	}
	p.stop()
	if err := <-answered; err == nil {
		t.Error("a call was answered after the end")
	}
	_ = hanging.Close()
}
