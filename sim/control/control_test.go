package control

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/internal/leaktest"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// serve runs a node's control on a socket and gives a client of it.
func serve(t *testing.T, address string) (*sim.Node, *Client) {
	t.Helper()
	n, err := sim.Open(context.Background(), sim.Config{Dir: t.TempDir(), ArrivalPolls: -1, ServicePolls: -1})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, n) }()
	c := NewClient(address)
	if networkOf(address) == "tcp" {
		c = NewClient(listener.Addr().String())
	}
	t.Cleanup(func() {
		c.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, c
}

func TestEveryMethodIsServed(t *testing.T) {
	t.Parallel()
	table := methods()
	contract := reflect.TypeFor[sim.Controller]()
	for i := range contract.NumMethod() {
		if name := contract.Method(i).Name; table[name] == nil {
			t.Errorf("%s is not served", name)
		}
	}
	if len(table) != contract.NumMethod() {
		t.Errorf("%d methods served, the contract has %d", len(table), contract.NumMethod())
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"unix": filepath.Join(t.TempDir(), "c.sock"), "tcp": "127.0.0.1:0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := serve(t, address)
			walk(t, c)
		})
	}
}

// walk calls every method once.
func walk(t *testing.T, c sim.Controller) {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	number, err := c.AttachDisk(ctx, sim.DiskSpec{
		Image: filepath.Join(t.TempDir(), "d"), SizeBytes: 1 << 30, Bus: "NVMe", Serial: "S1",
		IDs: []sim.DeviceID{{CodeSet: 1, Type: 3, ID: []byte{1, 2}}},
	})
	must(err)
	must(c.GrowDisk(ctx, number, 2<<30))
	must(c.CorruptDisk(ctx, number, 512, []byte("junk")))
	disks, err := c.Disks(ctx)
	must(err)
	if len(disks) != 2 || disks[1].Number != number || disks[1].Spec.Serial != "S1" || !slices.Equal(disks[1].Spec.IDs[0].ID, []byte{1, 2}) {
		t.Errorf("disks %+v", disks)
	}
	must(c.DetachDisk(ctx, number))
	must(c.SetSMBServer(ctx, sim.SMBServer{Name: "srv", Users: map[string]string{"u": "p"}}))
	must(c.RemoveSMBServer(ctx, "srv"))
	must(c.SetISCSITarget(ctx, sim.ISCSITarget{IQN: "iqn.x", Portals: []string{"10.0.0.1:3260"}}))
	must(c.RemoveISCSITarget(ctx, "iqn.x"))

	must(c.WriteFile(ctx, `C:\a\f`, []byte("text")))
	must(c.MakeDir(ctx, `C:\b\c`))
	must(c.MakeLink(ctx, `C:\l`, `C:\a`))
	data, err := c.ReadFile(ctx, `C:\l\f`)
	must(err)
	names, err := c.ListDir(ctx, `C:\l`)
	must(err)
	if string(data) != "text" || !slices.Equal(names, []string{"f"}) {
		t.Errorf("file %q, names %q", data, names)
	}
	moved, err := c.SwapForLink(ctx, `C:\b`, `C:\a`)
	must(err)
	if moved == "" {
		t.Error("swapped object has no name")
	}
	must(c.RemoveFile(ctx, `C:\l`))

	must(c.RecordCalls(ctx, true))
	must(c.AddFault(ctx, sim.Fault{Call: "win32.*", Win32: 5, CIM: &cim.Error{HRESULT: 1}}))
	must(c.ClearFaults(ctx))
	_, err = c.CallLog(ctx)
	must(err)
	if count, err := c.HandleCount(ctx); err != nil || count != 0 {
		t.Errorf("%d handles, %v", count, err)
	}
	must(c.SetService(ctx, sim.Service{Name: "x", State: 1, StartType: 3}))
	services, err := c.Services(ctx)
	must(err)
	if !slices.ContainsFunc(services, func(s sim.Service) bool { return s.Name == "x" }) {
		t.Errorf("services %v", services)
	}
	must(c.PowerCut(ctx))
	must(c.Boot(ctx))
	must(c.Reboot(ctx))
}

func TestErrorsKeepTheirType(t *testing.T) {
	t.Parallel()
	_, c := serve(t, filepath.Join(t.TempDir(), "c.sock"))
	ctx := context.Background()
	var e *win32.Error
	if _, err := c.ReadFile(ctx, `C:\none`); !errors.As(err, &e) || e.Code != win32.ErrFileNotFound {
		t.Errorf("missing file: %v", err)
	}
	if err := c.DetachDisk(ctx, 77); err == nil || !strings.Contains(err.Error(), "no such disk") {
		t.Errorf("missing disk: %v", err)
	}
	if err := c.AddFault(ctx, sim.Fault{Call: "x", Hook: func() {}}); err == nil {
		t.Error("a hook crossed the process border")
	}
	if _, err := call[any](ctx, c, "Nope"); err == nil || !strings.Contains(err.Error(), "Nope") || !strings.Contains(err.Error(), "AttachDisk") {
		t.Errorf("unknown method: %v, want one that names it and those that are known", err)
	}
	if _, err := call[any](ctx, c, "DetachDisk"); err == nil {
		t.Error("missing argument accepted")
	}
	if _, err := call[any](ctx, c, "DetachDisk", "one"); err == nil {
		t.Error("argument of the wrong type accepted")
	}
}

// Whoever misspells something is told so, before anything is done.
func TestWhatIsNotUnderstoodIsNamed(t *testing.T) {
	t.Parallel()
	n, _ := serve(t, filepath.Join(t.TempDir(), "c.sock"))
	server := httptest.NewServer(Handler(n))
	defer server.Close()
	for _, c := range []struct {
		verb, method, body string
		code               int
		want               []string
	}{
		{"POST", "AttachDisk", `{"args":[{"img":"/d"}]}`, http.StatusOK, []string{`\"img\"`}},
		{"POST", "AttachDisk", `{"args":[{"sizeBytes":1073741824}]}`, http.StatusOK, []string{"image", "must not be empty"}},
		{"POST", "AttachDisk", `{"arguments":[]}`, http.StatusOK, []string{`\"arguments\"`}},
		{"POST", "SetISCSITarget", `{"args":[{"iqn":"iqn.x","luns":[{"img":"/d"}]}]}`, http.StatusOK, []string{`\"img\"`}},
		{"POST", "HandleCount", `{"args":[]} {}`, http.StatusOK, []string{"follows"}},
		{"POST", "AtachDisk", `{"args":[]}`, http.StatusNotFound, []string{`\"AtachDisk\"`, "AttachDisk", "Reboot"}},
		{"GET", "Disks", "", http.StatusMethodNotAllowed, []string{"POST", "args"}},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.verb, server.URL+"/"+c.method, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		_ = reply.Body.Close()
		if err != nil || reply.StatusCode != c.code {
			t.Errorf("%s %s: %s, %v; want %d", c.method, c.body, reply.Status, err, c.code)
		}
		for _, want := range append(c.want, `"error"`) {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s %s: %s; want %s in it", c.method, c.body, text, want)
			}
		}
	}
	if disks, err := n.Disks(t.Context()); err != nil || len(disks) != 1 {
		t.Errorf("disks %v, %v; want the system disk alone", disks, err)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	c := NewClient(filepath.Join(t.TempDir(), "none.sock"))
	defer c.Close()
	if _, err := c.Disks(context.Background()); err == nil {
		t.Fatal("no error")
	}
}

func TestListenReplacesAStaleSocket(t *testing.T) {
	t.Parallel()
	address := filepath.Join(t.TempDir(), "c.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(address); err == nil {
		t.Fatal("took over a socket that is served")
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
