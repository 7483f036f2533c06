package service_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/service"
)

// fakeManager knows one service. What its program does is told by the program's
// bytes: "good…" runs, "slow…" never gets to run and takes no request to stop until
// it is killed, "stubborn…" never stops, "lazy…" stops when it has been looked at twice, and
// everything else ends at once.
type fakeManager struct {
	installed    bool
	registration service.Registration
	status       service.Status
	definition   service.Definition // of the last Refine
	sources      map[string]bool
	started      []string // the programs that were started
	locked       bool
	looks        int // at it while it stops
	refuses      []string
	fails        map[string]error // by method
}

var errFake = errors.New("the manager fails")

func (m *fakeManager) Lookup(string) (service.Registration, service.Status, error) {
	if !m.installed {
		return service.Registration{}, service.Status{}, fmt.Errorf("open the service: %w", service.ErrNotInstalled)
	}
	status := m.status
	if status.State == service.Stopping {
		if m.looks++; m.looks > 1 {
			m.status = service.Status{State: service.Stopped}
		}
	}
	return m.registration, status, m.fails["Lookup"]
}

func (m *fakeManager) Create(d service.Definition) error {
	if m.installed {
		return errors.New("the service exists")
	}
	if err := m.fails["Create"]; err != nil {
		return err
	}
	m.installed, m.status = true, service.Status{State: service.Stopped}
	return m.Change(d)
}

func (m *fakeManager) Change(d service.Definition) error {
	if err := m.fails["Change"]; err != nil {
		return err
	}
	m.registration = service.Registration{Program: d.Program, Args: d.Args, DisplayName: d.DisplayName, StartType: "automatic"}
	return nil
}

func (m *fakeManager) Refine(d service.Definition) ([]string, error) {
	m.definition = d
	return m.refuses, m.fails["Refine"]
}

func (m *fakeManager) Start(string) error {
	bytes, err := os.ReadFile(m.registration.Program)
	if err != nil {
		return err
	}
	text := string(bytes)
	m.started = append(m.started, text+" "+strings.Join(m.registration.Args, " "))
	switch {
	case strings.Contains(strings.Join(m.registration.Args, " "), "-bad"):
		m.status = service.Status{State: service.Stopped, ExitCode: service.ServiceSpecificError, ServiceExitCode: 5}
	case strings.HasPrefix(text, "good"), strings.HasPrefix(text, "stubborn"), strings.HasPrefix(text, "lazy"):
		m.status = service.Status{State: service.Running, PID: 7}
	case strings.HasPrefix(text, "slow"):
		m.status = service.Status{State: service.Starting, PID: 7}
	case strings.HasPrefix(text, "crash"):
		m.status = service.Status{State: service.Stopped, ExitCode: 1067}
	default:
		return errors.New("this is no program")
	}
	return nil
}

func (m *fakeManager) Stop(string) error {
	if err := m.fails["Stop"]; err != nil {
		return err
	}
	if m.status.State == service.Starting {
		return errors.New("it takes no controls")
	}
	switch bytes, _ := os.ReadFile(m.registration.Program); {
	case strings.HasPrefix(string(bytes), "lazy"):
		m.status.State = service.Stopping
	case !strings.HasPrefix(string(bytes), "stubborn"):
		m.status = service.Status{State: service.Stopped}
	}
	return nil
}

func (m *fakeManager) Kill(string) error {
	if err := m.fails["Kill"]; err != nil {
		return err
	}
	m.status = service.Status{State: service.Stopped, ExitCode: 1067}
	return nil
}

func (m *fakeManager) Lock() (func(), error) {
	if m.locked {
		return nil, service.ErrBusy
	}
	m.locked = true
	return func() { m.locked = false }, nil
}

func (m *fakeManager) Delete(string) error {
	m.installed = m.fails["Delete"] != nil
	return nil
}

func (m *fakeManager) AddEventSource(source string) error {
	m.sources[source] = true
	return nil
}

func (m *fakeManager) RemoveEventSource(source string) error {
	delete(m.sources, source)
	return nil
}

// lab is an installer with its surroundings.
type lab struct {
	*testing.T
	*service.Installer
	manager *fakeManager
	folder  string
	notices []string
}

// newLab makes one whose new program has some bytes.
func newLab(t *testing.T, program string) *lab {
	t.Helper()
	l := &lab{T: t, manager: &fakeManager{sources: map[string]bool{}, fails: map[string]error{}}, folder: t.TempDir()}
	l.Installer = &service.Installer{
		Manager: l.manager, Source: filepath.Join(l.folder, "download"), Events: "source",
		StartTime: 50 * time.Millisecond, StopTime: 50 * time.Millisecond, Interval: time.Millisecond,
		Notice: func(format string, args ...any) { l.notices = append(l.notices, fmt.Sprintf(format, args...)) },
	}
	l.download(program)
	return l
}

// download gives the installer another new program.
func (l *lab) download(program string) {
	l.Helper()
	if err := os.WriteFile(l.Source, []byte(program), 0o600); err != nil {
		l.Fatal(err)
	}
}

// definition is the service with some arguments.
func (l *lab) definition(args ...string) service.Definition {
	return service.Definition{Name: "name", DisplayName: "Name", Program: filepath.Join(l.folder, "place", "program.exe"), Args: args}
}

// installed installs the service and starts it.
func (l *lab) installed(args ...string) *lab {
	l.Helper()
	if err := l.Install(l.Context(), l.definition(args...), true); err != nil {
		l.Fatal(err)
	}
	return l
}

// wantPlace checks what stands at the program's place and beside it.
func (l *lab) wantPlace(program string) {
	l.Helper()
	entries, err := os.ReadDir(filepath.Join(l.folder, "place"))
	if err != nil || len(entries) != 1 {
		l.Errorf("in the program's folder is %v, %v", entries, err)
	}
	if bytes, err := os.ReadFile(l.definition().Program); err != nil || string(bytes) != program {
		l.Errorf("the program is %q, %v, want %q", bytes, err, program)
	}
}

// wantStarted checks which programs were started, with which arguments.
func (l *lab) wantStarted(want ...string) {
	l.Helper()
	if got := strings.Join(l.manager.started, ", "); got != strings.Join(want, ", ") {
		l.Errorf("started were %q, want %q", l.manager.started, want)
	}
}

// wantError checks that an error says some things.
func (l *lab) wantError(err error, parts ...string) {
	l.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			l.Errorf("the error is %v, want one that says %q", err, part)
		}
	}
}
