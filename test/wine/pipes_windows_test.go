package wine

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// diskV1 is the pipe that the tests of one pipe look at.
var diskV1 = wire.API{Group: "disk", Version: "v1"}

// newClient opens a client of the program at the usual place.
func newClient(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// C060: the pipes of csi-proxy.exe are for SYSTEM and Administrators, and for each
// account that was named, once. Wine applies an access list without enforcing it, so
// this reads it back.
func TestC060_AccessListOfThePipes(t *testing.T) {
	p := bed.Start(t, simFlags(t, "-pipe-access=S-1-5-93-2-1", "-pipe-access=S-1-5-93-2-1,S-1-5-18")...)
	p.WaitReady(t)
	for _, api := range []wire.API{diskV1, {Group: "smb", Version: "v1beta1"}} {
		conn, err := pipe.Place{}.Dial(t.Context(), api.Group, api.Version)
		if err != nil {
			t.Fatal(err)
		}
		handle := windows.Handle(conn.(interface{ Fd() uintptr }).Fd())
		descriptor, err := windows.GetSecurityInfo(handle, windows.SE_KERNEL_OBJECT, windows.DACL_SECURITY_INFORMATION)
		_ = conn.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := strings.NewReplacer("GRGW", "FRFW", "GWGR", "FRFW", "0x12019f", "FRFW", "GA", "FA", "0x1f01ff", "FA").Replace(descriptor.String())
		if want := "D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FRFW;;;S-1-5-93-2-1)"; got != want {
			t.Errorf("%s has %s, want %s", api, got, want)
		}
	}
}

// The log says which process changed the node, and its program.
func TestAuditNamesTheCaller(t *testing.T) {
	p := bed.Start(t, simFlags(t)...)
	p.WaitReady(t)
	c := newClient(t)
	if err := c.Mkdir(t.Context(), `C:\var\lib\kubelet\made`); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`callerPID=%d callerImage="%s"`, os.Getpid(), strings.ReplaceAll(self, `\`, `\\`))
	for deadline := time.Now().Add(quickTime); ; <-time.After(20 * time.Millisecond) {
		for line := range strings.SplitSeq(p.Text(), "\n") {
			if strings.Contains(line, `"audit" op="Mkdir"`) && strings.Contains(line, want) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no audit line says %s:\n%s", want, p.Text())
		}
	}
}

// quickly fails the test when none of five tries is over within two seconds: a busy
// machine makes one slow, a wait in the product all of them.
func quickly(t *testing.T, try func()) {
	t.Helper()
	for n := 1; ; n++ {
		began := time.Now()
		try()
		switch took := time.Since(began); {
		case took < 2*time.Second:
			return
		case n == 5:
			t.Fatalf("it took %s", took)
		}
	}
}

// C062: a client takes the newest version that csi-proxy.exe offers, soon, and
// names every pipe it tried when there is none.
func TestC062_OlderVersionsOnly(t *testing.T) {
	c := newClient(t)
	var err error
	quickly(t, func() {
		if _, err = c.GetDiskStats(t.Context(), 0); !host.IsKind(err, host.KindUnavailable) {
			t.Error(err)
		}
	})
	for _, version := range []string{"v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1"} {
		if err == nil || !strings.Contains(err.Error(), `\\.\pipe\csi-proxy-disk-`+version+":") {
			t.Errorf("%v does not name %s", err, version)
		}
	}
	bed.Start(t, simFlags(t, "-api=disk/v1beta1,disk/v1beta2")...).WaitReady(t)
	quickly(t, func() {
		c = newClient(t)
		if err := c.Rescan(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if got := c.Chosen()["disk"]; got != "v1beta2" {
		t.Errorf("it chose %s", got)
	}
}

// C058: one pipe that cannot be opened is named, the others are closed again, and
// the manager learns the stage.
func TestC058_OnePipeIsTaken(t *testing.T) {
	taken := wire.APIs()[0] // the one that is opened last
	// A listener that accepts nobody, as of a server that hangs: it cannot be found
	// by asking, only by opening the pipe.
	listener, err := winio.ListenPipe(`\\.\pipe\`+pipe.Name(taken.Group, taken.Version), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if ghost, err := (pipe.Place{}).Dial(t.Context(), taken.Group, taken.Version); err == nil {
		_ = ghost.Close() // Wine connects one client to the instance that only keeps the name
	}
	code, output := run(t, simFlags(t)...)
	if code != 5 || !strings.Contains(output, "pipe "+pipe.Name(taken.Group, taken.Version)+" is in use") {
		t.Errorf("exit code %d: %s", code, output)
	}
	for _, api := range wire.APIs()[1:] {
		if canDial(t, api) {
			t.Errorf("%s is still open", api)
		}
	}
	service := install(t, "csi-proxy-taken", simFlags(t)...)
	_ = service.Start() // whether this fails depends on who is faster
	status := bed.WaitState(t, service, svc.Stopped)
	if status.Win32ExitCode != uint32(windows.ERROR_SERVICE_SPECIFIC_ERROR) || status.ServiceSpecificExitCode != 5 {
		t.Errorf("exit code %d, service-specific %d; want 1066 and 5", status.Win32ExitCode, status.ServiceSpecificExitCode)
	}
}

// handleCount is how many handles a process has.
func handleCount(t *testing.T, pid int) int {
	t.Helper()
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_INFORMATION, false, uint32(pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var count uint32
	if ok, _, err := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetProcessHandleCount").Call(uintptr(process), uintptr(unsafe.Pointer(&count))); ok == 0 {
		t.Fatal(err)
	}
	return int(count)
}

// Connections that say nothing, and those that say half a word, are held within a
// bound, keep nobody out, and leave nothing behind.
func TestSilentConnectionsCostNothing(t *testing.T) {
	p := bed.Start(t, simFlags(t)...)
	p.WaitReady(t)
	c := newClient(t)
	if _, err := c.ListDisks(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := handleCount(t, p.PID)
	const opened, limit = 600, 256 // the limit is that of a pipe
	var all []interface{ Close() error }
	for n := range opened {
		conn, err := pipe.Place{}.Dial(t.Context(), diskV1.Group, diskV1.Version)
		if err != nil {
			t.Fatalf("connection %d: %v", n, err)
		}
		if n%2 == 1 {
			_, err = conn.Write([]byte("PRI * HT"))
		}
		if err != nil && !errors.Is(err, os.ErrClosed) {
			t.Logf("connection %d: %v", n, err) // it may have lost its place already
		}
		all = append(all, conn)
	}
	if got := handleCount(t, p.PID); got > before+3*limit {
		t.Errorf("%d handles before, %d with %d connections", before, got, opened)
	}
	if _, err := newClient(t).ListDisks(t.Context()); err != nil {
		t.Errorf("another client is kept out: %v", err)
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	for deadline := time.Now().Add(readyTime); ; <-time.After(50 * time.Millisecond) {
		got := handleCount(t, p.PID)
		if got < before+limit/4 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d handles before, %d after", before, got)
		}
	}
}
