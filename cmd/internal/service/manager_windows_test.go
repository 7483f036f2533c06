package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/csi-windows/csi-windows/cmd/internal/service"
)

// realLab is an installer of the test binary in the machine's manager.
type realLab struct {
	*testing.T
	*service.Installer
	definition service.Definition
	notices    []string
}

// newRealLab makes one. Its service is gone when the test ends.
func newRealLab(t *testing.T) *realLab {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "a place") // with a space
	l := &realLab{T: t}
	l.Installer = &service.Installer{
		Manager: service.Windows{}, Source: filepath.Join(t.TempDir(), "new.exe"), Events: "csi-windows-test",
		StartTime: 30 * time.Second, StopTime: 30 * time.Second, Interval: 20 * time.Millisecond,
		Notice: func(format string, args ...any) { l.notices = append(l.notices, fmt.Sprintf(format, args...)) },
	}
	l.definition = service.Definition{
		Name: "csi-windows-test", DisplayName: "Test", Description: "A test.",
		Program: filepath.Join(folder, "program.exe"), Args: []string{asService},
		RestartDelays: []time.Duration{time.Second, time.Minute}, ResetTime: time.Hour, PreshutdownTime: time.Minute,
		Privileges: []string{"SeChangeNotifyPrivilege", "SeManageVolumePrivilege"},
	}
	l.download("1")
	t.Cleanup(func() {
		if err := l.Uninstall(context.Background(), l.definition.Name, folder); err != nil {
			t.Error(err)
		}
	})
	return l
}

// download makes the new program: the test binary, with some bytes more at its end.
func (l *realLab) download(more string) {
	l.Helper()
	self, err := os.Executable()
	if err != nil {
		l.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		l.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(l.Source)
	if err != nil {
		l.Fatal(err)
	}
	_, copyErr := io.Copy(to, from)
	_, moreErr := to.WriteString(more)
	if err := errors.Join(copyErr, moreErr, to.Close()); err != nil {
		l.Fatal(err)
	}
}

func (l *realLab) lookup() (service.Registration, service.Status) {
	l.Helper()
	registration, status, err := l.Manager.Lookup(l.definition.Name)
	if err != nil {
		l.Fatal(err)
	}
	return registration, status
}

// C061: through the real manager: installed twice, one service with the settings it
// can have; a newer program; one that ends at once; removed twice.
func TestC061_LifeOfAService(t *testing.T) {
	l := newRealLab(t)
	ctx := t.Context()
	l.definition.Args = append(l.definition.Args, `with "quotes"`, `C:\a folder\`, "", `-x=C:\b`)
	for range 2 {
		if err := l.Install(ctx, l.definition, true); err != nil {
			t.Fatal(err)
		}
	}
	registration, first := l.lookup()
	want := service.Registration{Program: l.definition.Program, Args: l.definition.Args, DisplayName: "Test", Account: "LocalSystem", StartType: "automatic"}
	if fmt.Sprintf("%q", registration) != fmt.Sprintf("%q", want) && registration.StartType != "delayed" {
		t.Errorf("it is registered as %q, want %q", registration, want)
	}
	if first.State != service.Running || first.PID == 0 {
		t.Errorf("it is %+v", first)
	}
	l.definition.Args[1] = `other "quotes"`
	if err := l.Install(ctx, l.definition, true); err != nil {
		t.Fatal(err)
	}
	if registration, second := l.lookup(); !slices.Equal(registration.Args, l.definition.Args) || second.PID == first.PID {
		t.Errorf("it runs as %+v with %q", second, registration.Args)
	}
	l.download("2")
	if err := l.Upgrade(ctx, l.definition, true); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(l.definition.Program); err != nil || !strings.HasSuffix(string(text), "2") {
		t.Errorf("the program is not the new one: %v", err)
	}
	l.definition.Args = append(l.definition.Args, "-fail")
	err := l.Install(ctx, l.definition, true)
	if err == nil || !strings.Contains(err.Error(), "exit code 5") || !strings.Contains(err.Error(), "; the old service is restored and runs") {
		t.Errorf("got %v", err)
	}
	if registration, status := l.lookup(); slices.Contains(registration.Args, "-fail") || status.State != service.Running {
		t.Errorf("it is %+v with %q", status, registration.Args)
	}
	for range 2 {
		if err := l.Uninstall(ctx, l.definition.Name, filepath.Dir(l.definition.Program)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := l.Manager.Lookup(l.definition.Name); !errors.Is(err, service.ErrNotInstalled) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(l.definition.Program)); err == nil {
		t.Error("its program is still there")
	}
}

// A settings that Wine's manager does not know, as older ones of Windows do not, is
// named; the service is there all the same.
func TestSettingsThatAreRefused(t *testing.T) {
	l := newRealLab(t)
	if err := l.Manager.Create(l.definition); err != nil {
		t.Fatal(err)
	}
	refused, err := l.Manager.Refine(l.definition)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range refused {
		if !slices.Contains([]string{"delayed start", "restart after an exit code", "privileges"}, setting) {
			t.Errorf("%s was refused", setting)
		}
	}
	t.Logf("refused: %q", refused)
}

// A process that has gone without a word is a stopped service, which starts again.
func TestKilledServiceIsStopped(t *testing.T) {
	l := newRealLab(t)
	if err := l.Install(t.Context(), l.definition, true); err != nil {
		t.Fatal(err)
	}
	_, status := l.lookup()
	process, err := os.FindProcess(int(status.PID))
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = process.Wait()
	if _, status := l.lookup(); status.State != service.Stopped || status.PID != 0 {
		t.Errorf("it is %+v", status)
	}
	if err := l.Manager.Stop(l.definition.Name); err != nil {
		t.Errorf("stop of a stopped service: %v", err)
	}
	if err := l.Install(t.Context(), l.definition, true); err != nil {
		t.Fatal(err)
	}
	if _, again := l.lookup(); again.State != service.Running || again.PID == status.PID {
		t.Errorf("it is %+v", again)
	}
	if err := l.Manager.Start(l.definition.Name); err != nil {
		t.Errorf("start of a running service: %v", err)
	}
}

// What hangs in its start takes no request to stop. It is rolled back, and can be
// removed, all the same.
func TestHangingStart(t *testing.T) {
	l := newRealLab(t)
	if err := l.Install(t.Context(), l.definition, true); err != nil {
		t.Fatal(err)
	}
	good := l.definition.Args
	l.definition.Args = append(slices.Clone(good), "-hang")
	l.StartTime = 3 * time.Second
	err := l.Install(t.Context(), l.definition, true)
	if err == nil || !strings.Contains(err.Error(), "still starting") || !strings.Contains(err.Error(), "; the old service is restored and runs") {
		t.Errorf("got %v", err)
	}
	if registration, status := l.lookup(); !slices.Equal(registration.Args, good) || status.State != service.Running {
		t.Errorf("it is %+v with %q", status, registration.Args)
	}
	if err := l.Uninstall(t.Context(), l.definition.Name, ""); err != nil {
		t.Fatal(err)
	}
	if err := l.Install(t.Context(), l.definition, true); err == nil || !strings.Contains(err.Error(), "still starting") {
		t.Errorf("got %v", err)
	}
	if err := l.Uninstall(t.Context(), l.definition.Name, ""); err != nil {
		t.Fatal(err)
	}
}

// Kill ends what the manager says is the service, and is content when there is nothing.
func TestKill(t *testing.T) {
	l := newRealLab(t)
	if err := l.Install(t.Context(), l.definition, true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Manager.Kill(l.definition.Name); err != nil {
			t.Fatal(err)
		}
		if _, status := l.lookup(); status.State != service.Stopped {
			t.Errorf("it is %+v", status)
		}
	}
	if err := l.Manager.Kill("csi-windows-missing"); !errors.Is(err, service.ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
}

func TestLock(t *testing.T) {
	manager := service.Windows{}
	for range 2 {
		release, err := manager.Lock()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := manager.Lock(); !errors.Is(err, service.ErrBusy) {
			t.Errorf("locked twice: %v", err)
		}
		release()
	}
}

func TestEventSource(t *testing.T) {
	manager, name := service.Windows{}, "csi-windows-source"
	path := `SYSTEM\CurrentControlSet\Services\EventLog\Application\` + name
	for range 2 {
		if err := manager.AddEventSource(name); err != nil {
			t.Fatal(err)
		}
	}
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE)
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := key.GetStringValue("EventMessageFile")
	if levels, _, levelsErr := key.GetIntegerValue("TypesSupported"); err != nil || levelsErr != nil || levels != 7 || !strings.HasSuffix(file, "EventCreate.exe") {
		t.Errorf("levels %d, texts in %s, %v", levels, file, errors.Join(err, levelsErr))
	}
	_ = key.Close()
	for range 2 {
		if err := manager.RemoveEventSource(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE); !errors.Is(err, registry.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// Every failure says what it was of.
func TestFailuresOfTheRealManager(t *testing.T) {
	manager := service.Windows{}
	d := service.Definition{Name: "csi-windows-missing"}
	_, lookupErr := refine(manager, d)
	for method, err := range map[string]error{
		"Start": manager.Start(d.Name), "Stop": manager.Stop(d.Name), "Delete": manager.Delete(d.Name), "Change": manager.Change(d), "Refine": lookupErr,
	} {
		if !errors.Is(err, service.ErrNotInstalled) || !strings.Contains(err.Error(), d.Name) {
			t.Errorf("%s: %v", method, err)
		}
	}
	l := newRealLab(t)
	for range 2 {
		err := manager.Create(l.definition)
		if err != nil && (!errors.Is(err, windows.ERROR_SERVICE_EXISTS) || !strings.Contains(err.Error(), l.definition.Name)) {
			t.Errorf("Create: %v", err)
		}
	}
	if err := manager.Start(l.definition.Name); err == nil {
		t.Error("a program that is missing was started")
	}
	const zero = "a\x00b"
	_, refineErr := refine(manager, service.Definition{Name: l.definition.Name, Description: zero})
	for what, err := range map[string]error{
		"name": manager.Start(zero), "description": refineErr, "program": manager.Change(service.Definition{Name: l.definition.Name, Program: zero}),
		"display name": manager.Change(service.Definition{Name: l.definition.Name, DisplayName: zero}),
	} {
		if err == nil {
			t.Errorf("a %s with a zero byte was accepted", what)
		}
	}
}

func refine(manager service.Windows, d service.Definition) ([]string, error) {
	return manager.Refine(d)
}
