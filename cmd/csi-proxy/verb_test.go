package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/service"
)

func TestVerbsAreForWindows(t *testing.T) {
	t.Parallel()
	for name := range verbs() {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{name}, environment{GOOS: "linux", Stdout: &stdout, Stderr: &stderr})
		want := "csi-proxy: " + name + ": this is for the Windows service, on Windows only\n"
		if code != 2 || stderr.String() != want || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, %q", name, code, stdout.String(), stderr.String())
		}
		code = run(t.Context(), []string{name, "-help"}, environment{GOOS: "linux", Stdout: &stdout, Stderr: &stderr})
		if code != 0 || !strings.Contains(stdout.String(), "-service-name") {
			t.Errorf("%s -help: exit code %d, %q", name, code, stdout.String())
		}
	}
}

// The flags of the service are what was written, without those of the installation.
func TestInstallSplitsItsFlags(t *testing.T) {
	t.Parallel()
	env := environment{GOOS: "windows"}
	for given, want := range map[string][]string{
		``:                             nil,
		`-v=4|-start=false`:            {"-v=4"},
		`--start|-kubelet-path|D:\a b`: {"-kubelet-path", `D:\a b`},
		`-service-name|x|--require-privacy|--working-dir=C:\x|-o|y`:     {"--require-privacy", `--working-dir=C:\x`, "-o", "y"},
		`-install-dir|-v|-v|-install-dir`:                               {"-v", "-install-dir"},
		`-grace-period`:                                                 {"-grace-period"},
		`-working-dir=a|-start-wait=2s|-working-dir=a|-windows-service`: {"-working-dir=a", "-working-dir=a", "-windows-service"},
	} {
		var args []string
		if given != "" {
			args = strings.Split(given, "|")
		}
		_, got := splitArgs(args, newVerbFlagSet("install", &verbConfig{}), agentFlagSet(env))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", given, diff)
		}
	}
	for _, arg := range []string{"-windows-service", "--windows-service=true", "-windows-service=false"} {
		if got := withoutServiceFlag([]string{"-a", arg, "windows-service"}); len(got) != 2 {
			t.Errorf("%s: %q", arg, got)
		}
	}
}

// What the service could not start with is refused. It is not parallel: klog's flags
// are of the process.
func TestInstallRefusesFlags(t *testing.T) {
	env := environment{GOOS: "windows"}
	reset := func() {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		addLogFlags(fs)
		_ = fs.Parse([]string{"-log_file=", "-log_dir=", "-v=0"})
	}
	t.Cleanup(reset)
	for line, want := range map[string]string{
		"install -grace-period=1h":              "install: invalid value",
		"install -kubelet-path=x":               "-kubelet-path",
		"install -host=sim":                     "-sim-dir",
		"install -no-such-flag":                 "csi-proxy -help",
		"install -version":                      "-version",
		"install -log_file=x":                   "-log_file: must be an absolute path",
		"install -log_dir=x":                    "-log_dir: must be an absolute path",
		"install -v=x":                          "-v",
		"install extra":                         `unexpected argument "extra"`,
		"install -start=perhaps":                "-start",
		"install -start-wait=0s":                "1s to 10m",
		"install -install-dir=x":                "-install-dir: must be an absolute path",
		"upgrade -kubelet-path=x":               "-kubelet-path",
		"upgrade extra":                         `unexpected argument "extra"`,
		"uninstall -service-name=":              "-service-name",
		`status -service-name=a\b`:              "-service-name",
		"status -o=xml":                         "-o: must be table or json",
		"status -start":                         "-start",
		"status -service-name=a/b -o=json":      "-service-name",
		"uninstall -install-dir=relative\\dir":  "-install-dir",
		"uninstall -install-dir=//server/share": "-install-dir",
	} {
		reset()
		args := strings.Fields(line)
		_, err := parseVerb(args[0], verbs()[args[0]], args[1:], env)
		var usage *exit.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	reset()
	c, err := parseVerb("install", verbs()["install"], strings.Fields("-windows-service=false -start=false -v=2"), env)
	if err != nil || c.Start || strings.Join(c.AgentArgs, " ") != "-v=2 -windows-service" {
		t.Errorf("%+v, %v", c, err)
	}
}

// fixedManager is a manager that answers one question.
type fixedManager struct {
	service.Manager
	registration service.Registration
	status       service.Status
	err          error
}

func (m fixedManager) Lookup(string) (service.Registration, service.Status, error) {
	return m.registration, m.status, m.err
}

func TestStatus(t *testing.T) {
	t.Parallel()
	registration := service.Registration{Program: "no program", Args: []string{"-v=1", "-windows-service"}, StartType: "automatic", Account: "LocalSystem"}
	for name, c := range map[string]struct {
		manager fixedManager
		code    int
		want    []string
	}{
		"not installed": {fixedManager{err: service.ErrNotInstalled}, 10, []string{"STATE    not installed"}},
		"stopped": {fixedManager{registration: registration, status: service.Status{State: service.Stopped, ExitCode: service.ServiceSpecificError, ServiceExitCode: 5}}, 10,
			[]string{"STATE      stopped", "EXIT CODE  5 (pipes)", "FLAGS      -v=1 -windows-service", "START      automatic"}},
		"starting": {fixedManager{registration: registration, status: service.Status{State: service.Starting, PID: 7}}, 10, []string{"STATE      starting", "PID        7", "EXIT CODE  0"}},
		"denied":   {fixedManager{err: service.ErrDenied}, 9, nil},
	} {
		var stdout bytes.Buffer
		v := &verbRun{config: &verbConfig{ServiceName: "name", Output: outputTable}, env: environment{Stdout: &stdout}, manager: c.manager}
		if code := exit.Code(v.status(context.Background())); code != c.code {
			t.Errorf("%s: exit code %d, want %d", name, code, c.code)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout.String(), want+"\n") {
				t.Errorf("%s: it does not say %q:\n%s", name, want, stdout.String())
			}
		}
		stdout.Reset()
		v.config.Output = outputJSON
		_ = v.status(context.Background())
		var report serviceReport
		if err := json.Unmarshal(stdout.Bytes(), &report); c.want != nil && (err != nil || report.Service != "name" || report.State == "") {
			t.Errorf("%s: %v in %s", name, err, stdout.String())
		}
	}
	if self, err := os.Executable(); err != nil || fileVersion(self) == "" {
		t.Errorf("the version of a program cannot be read: %v", err)
	}
}

// What cannot be looked at or found is a failure of the verb.
func TestVerbsThatFail(t *testing.T) {
	t.Parallel()
	env := environment{GOOS: "windows", Stdout: &bytes.Buffer{}}
	for name, manager := range map[string]fixedManager{
		"denied":            {err: service.ErrDenied},
		"not installed":     {err: service.ErrNotInstalled},
		"not a service":     {registration: service.Registration{Program: "x"}},
		"flags are unknown": {registration: service.Registration{Program: "x", Args: []string{"-windows-service", "-gone"}}},
	} {
		v := &verbRun{config: &verbConfig{ServiceName: "name", InstallDir: t.TempDir()}, env: env, manager: manager}
		if err := v.upgrade(t.Context()); exit.Code(err) == 0 {
			t.Errorf("%s: the upgrade succeeded", name)
		}
		if manager.err == nil || errors.Is(manager.err, service.ErrNotInstalled) {
			continue
		}
		for verb, err := range map[string]error{"install": v.install(t.Context()), "uninstall": v.uninstall(t.Context())} {
			if exit.Code(err) != int(stageManage) || !errors.Is(err, manager.err) {
				t.Errorf("%s: %s: %v", name, verb, err)
			}
		}
	}
}

// Nobody's service but csi-proxy's is changed or removed.
func TestForeignServices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manager fixedManager
		service string
		want    string
	}{
		"of Windows":    {fixedManager{registration: service.Registration{Program: "spoolsv.exe"}}, "Spooler", "another program's, spoolsv.exe"},
		"a wrapper":     {fixedManager{registration: service.Registration{Program: "wrapper.exe"}}, "CSIProxy", ""},
		"made by hand":  {fixedManager{registration: service.Registration{Program: "x", Args: []string{"--windows-service"}}}, "mine", ""},
		"not installed": {fixedManager{err: service.ErrNotInstalled}, "mine", ""},
		"denied":        {fixedManager{err: service.ErrDenied}, "mine", "denied"},
	} {
		v := &verbRun{config: &verbConfig{ServiceName: c.service}, manager: c.manager}
		err := v.refuseForeign()
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	v := &verbRun{config: &verbConfig{ServiceName: "Spooler", InstallDir: t.TempDir()}, manager: fixedManager{registration: service.Registration{Program: "x"}}}
	for verb, err := range map[string]error{"install": v.install(t.Context()), "uninstall": v.uninstall(t.Context())} {
		if exit.Code(err) != int(stageManage) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

// A service whose flags the manager could not tell of could not be removed either.
func TestFlagsThatAreTooLong(t *testing.T) {
	t.Parallel()
	long := []string{"-working-dir=C:\\" + strings.Repeat("x", commandLineMax)}
	v := &verbRun{config: &verbConfig{ServiceName: "name", InstallDir: t.TempDir(), AgentArgs: long}, manager: fixedManager{err: service.ErrNotInstalled}}
	var usage *exit.UsageError
	if err := v.install(t.Context()); !errors.As(err, &usage) || !strings.Contains(err.Error(), "3072") {
		t.Errorf("got %v", err)
	}
}

func TestOperationsPageNamesEveryVerb(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range verbs() {
		if !bytes.Contains(page, []byte("`csi-proxy "+name)) {
			t.Errorf("docs/operations.md does not describe %s", name)
		}
		newVerbFlagSet(name, &verbConfig{}).VisitAll(func(f *flag.Flag) {
			if !bytes.Contains(page, []byte("| `-"+f.Name+"` |")) {
				t.Errorf("docs/operations.md does not describe -%s of %s", f.Name, name)
			}
		})
	}
	for code := stageRun; code <= stageNotRunning; code++ {
		if !bytes.Contains(page, fmt.Appendf(nil, "\n| %d | ", code)) {
			t.Errorf("docs/operations.md does not describe exit code %d", code)
		}
	}
	for _, privilege := range definition("", "", nil).Privileges {
		if !bytes.Contains(page, []byte("`"+privilege+"`")) {
			t.Errorf("docs/operations.md does not describe %s", privilege)
		}
	}
}
