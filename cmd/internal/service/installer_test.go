package service_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/cmd/internal/service"
)

// C061: an installer that runs twice leaves one service, which is not disturbed.
func TestC061_InstallTwice(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed("-a", "b c")
	l.installed("-a", "b c")
	l.wantPlace("good 1")
	l.wantStarted("good 1 -a b c")
	if !l.manager.sources["source"] || l.manager.definition.Name != "name" {
		t.Errorf("it was not set up: %+v", l.manager)
	}
	if !slices.ContainsFunc(l.notices, func(n string) bool { return strings.Contains(n, "what they should be") }) {
		t.Errorf("it said %q", l.notices)
	}
}

func TestInstallWithoutAStart(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1")
	for range 2 {
		if err := l.Install(t.Context(), l.definition(), false); err != nil {
			t.Fatal(err)
		}
	}
	l.wantPlace("good 1")
	l.wantStarted()
}

func TestInstallWithOtherFlags(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed("-a")
	l.installed("-b")
	l.wantStarted("good 1 -a", "good 1 -b")
	l.wantPlace("good 1")
}

// A program that was copied before, and whose service was never registered.
func TestInstallOverWhatIsLeft(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1")
	place := l.definition().Program
	for path, text := range map[string]string{place: "x", place + ".new": "half", place + ".old": "older"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	l.installed()
	l.wantPlace("good 1")
}

func TestInstallThatDoesNotStart(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1")
	err := l.Install(t.Context(), l.definition("-bad"), true)
	l.wantError(err, "the service is installed, but it does not start: it ended with its own exit code 5")
	if !l.manager.installed {
		t.Error("it is not installed")
	}
	l.wantError(l.Install(t.Context(), l.definition("-bad"), true), "it ended with its own exit code 5")
}

func TestRefusedSettingIsAWarning(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1")
	l.manager.refuses = []string{"delayed start"}
	l.installed()
	if !slices.ContainsFunc(l.notices, func(n string) bool { return strings.Contains(n, `"delayed start"`) }) {
		t.Errorf("it said %q", l.notices)
	}
}

// C061: the service goes on with its flags and a newer program.
func TestC061_Upgrade(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed("-a")
	l.download("good 2")
	for range 2 { // the second time there is nothing to do
		if err := l.Upgrade(t.Context(), service.Definition{Name: "name"}, true); err != nil {
			t.Fatal(err)
		}
	}
	l.wantPlace("good 2")
	l.wantStarted("good 1 -a", "good 2 -a")
}

// C061: what does not start is rolled back, and the error says why and what runs.
func TestC061_UpgradeRollsBack(t *testing.T) {
	t.Parallel()
	for program, why := range map[string]string{
		"crash 2": "Windows error 1067", "slow 2": "still starting", "text": "this is no program",
	} {
		l := newLab(t, "good 1").installed("-a")
		l.download(program)
		err := l.Upgrade(t.Context(), service.Definition{Name: "name"}, true)
		l.wantError(err, why, "the old service is restored and runs")
		l.wantPlace("good 1")
		l.wantStarted("good 1 -a", program+" -a", "good 1 -a")
	}
}

func TestFlagsRollBack(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed("-a")
	l.download("good 2")
	l.wantError(l.Install(t.Context(), l.definition("-bad"), true), "exit code 5", "the old service is restored and runs")
	l.wantPlace("good 1")
	l.wantStarted("good 1 -a", "good 2 -bad", "good 1 -a")
	if !slices.Equal(l.manager.registration.Args, []string{"-a"}) {
		t.Errorf("its arguments are %q", l.manager.registration.Args)
	}
}

// Whoever gives up does not leave a node without its storage.
func TestRollBackThoughTheUserHasGone(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed("-a")
	l.download("slow 2")
	ctx, cancel := context.WithCancel(t.Context())
	l.Notice = func(string, ...any) {}
	l.StartTime *= 100
	cancel()
	l.wantError(l.Upgrade(ctx, service.Definition{Name: "name"}, true), "context canceled", "the old service is restored and runs")
	l.wantPlace("good 1")
}

// A service that somebody stopped is not started by a failure.
func TestRollBackOfAStoppedService(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed()
	if err := l.manager.Stop("name"); err != nil {
		t.Fatal(err)
	}
	l.download("crash 2")
	l.wantError(l.Upgrade(t.Context(), service.Definition{Name: "name"}, true), "1067", "the old service is restored")
	l.wantPlace("good 1")
	l.wantStarted("good 1 ", "crash 2 ")
}

// Where an upgrade was cut off after the new program was placed, the next one tells of
// the old one.
func TestUpgradeThatWasCutOff(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed()
	old := l.definition().Program + ".old"
	if err := errors.Join(os.WriteFile(old, []byte("good 1"), 0o600), os.WriteFile(l.definition().Program, []byte("crash 2"), 0o600), l.manager.Stop("name")); err != nil {
		t.Fatal(err)
	}
	l.download("crash 2")
	l.wantError(l.Upgrade(t.Context(), service.Definition{Name: "name"}, true), "1067", "was there before is "+old)
	l.download("good 3")
	l.installed()
	l.wantPlace("good 3")
}

// A service that hangs in its start can be changed and removed all the same.
func TestServiceThatHangsInItsStart(t *testing.T) {
	t.Parallel()
	l := newLab(t, "slow 1")
	l.wantError(l.Install(t.Context(), l.definition(), true), "still starting")
	l.manager.fails["Kill"] = errFake
	l.wantError(l.Uninstall(t.Context(), "name", ""), "it hangs in its start", errFake.Error())
	delete(l.manager.fails, "Kill")
	l.download("good 2")
	l.installed()
	l.wantPlace("good 2")
	if l.manager.status.State != service.Running {
		t.Errorf("it is %s", l.manager.status.State)
	}
}

// Whoever gives up while the old service stops finds it running.
func TestGivenUpWhileItStops(t *testing.T) {
	t.Parallel()
	l := newLab(t, "lazy 1").installed("-a")
	l.download("good 2")
	l.StopTime *= 100
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.wantError(l.Upgrade(ctx, service.Definition{Name: "name"}, true), "context canceled", "the old service is restored and runs")
	l.wantPlace("lazy 1")
	l.wantStarted("lazy 1 -a", "lazy 1 -a")
}

// Two at once would place each other's programs.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed()
	release, err := l.Manager.Lock()
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"install":   l.Install(t.Context(), l.definition("-b"), true),
		"upgrade":   l.Upgrade(t.Context(), service.Definition{Name: "name"}, true),
		"uninstall": l.Uninstall(t.Context(), "name", ""),
	} {
		if !errors.Is(err, service.ErrBusy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	release()
	l.wantStarted("good 1 ")
	l.installed("-b")
}

// What cannot even be stopped stays as it is.
func TestServiceThatDoesNotStop(t *testing.T) {
	t.Parallel()
	l := newLab(t, "stubborn 1").installed()
	l.download("good 2")
	l.wantError(l.Upgrade(t.Context(), service.Definition{Name: "name"}, true), "does not stop: it is still running")
	l.wantPlace("stubborn 1")
	l.wantError(l.Uninstall(t.Context(), "name", ""), "does not stop")
	l.manager.fails["Stop"] = errFake
	l.wantError(l.Uninstall(t.Context(), "name", ""), errFake.Error())
}

// Failures before anything is touched leave everything as it is; later ones restore it.
func TestFailuresOfTheManager(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Lookup", "Change", "Refine"} {
		l := newLab(t, "good 1").installed("-a")
		l.download("good 2")
		l.manager.fails[method] = errFake
		if err := l.Install(t.Context(), l.definition("-b"), true); !errors.Is(err, errFake) {
			t.Errorf("%s: %v", method, err)
		}
		if method != "Lookup" { // it failed when everything was to be undone, too
			l.wantPlace("good 1")
		}
		if method != "Change" && !slices.Equal(l.manager.registration.Args, []string{"-a"}) {
			t.Errorf("%s: its arguments are %q", method, l.manager.registration.Args)
		}
	}
	for _, method := range []string{"Create", "Refine"} {
		l := newLab(t, "good 1")
		l.manager.fails[method] = errFake
		if err := l.Install(t.Context(), l.definition(), true); !errors.Is(err, errFake) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestUpgradeNeedsAService(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1")
	if err := l.Upgrade(t.Context(), service.Definition{Name: "name"}, true); !errors.Is(err, service.ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
	l.installed()
	l.manager.registration.Program = filepath.Join(l.folder, "place")[:3]
	l.manager.registration.Program += "no such program"
	l.wantError(l.Upgrade(t.Context(), service.Definition{Name: "name"}, true), "install the service anew")
}

// A new program that cannot be read is noticed while the old one still runs.
func TestMissingSource(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed()
	l.Source += " that is missing"
	for _, err := range []error{l.Install(t.Context(), l.definition("-b"), true), newLab(t, "").Install(t.Context(), service.Definition{Program: l.folder}, true)} {
		if err == nil {
			t.Error("it succeeded")
		}
	}
	l.wantStarted("good 1 ")
	if l.manager.status.State != service.Running {
		t.Errorf("it is %s", l.manager.status.State)
	}
}

func TestUninstall(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed()
	for range 2 {
		if err := l.Uninstall(t.Context(), "name", filepath.Join(l.folder, "place")); err != nil {
			t.Fatal(err)
		}
	}
	if l.manager.installed || l.manager.sources["source"] {
		t.Errorf("something is left: %+v", l.manager)
	}
	if _, err := os.Stat(filepath.Join(l.folder, "place")); err == nil {
		t.Error("the program is left")
	}
}

// What was not put there by an installation is not removed by its end.
func TestUninstallLeavesForeignPrograms(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed()
	if err := l.Uninstall(t.Context(), "name", l.folder); err != nil {
		t.Fatal(err)
	}
	l.wantPlace("good 1")
	if len(l.notices) == 0 || !strings.Contains(l.notices[len(l.notices)-1], "is left") {
		t.Errorf("it said %q", l.notices)
	}
}

// The program that removes the service cannot remove itself.
func TestUninstallByTheProgramItself(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed()
	l.Source = l.definition().Program
	if err := l.Uninstall(t.Context(), "name", filepath.Dir(l.Source)); err != nil {
		t.Fatal(err)
	}
	l.wantPlace("good 1")
	if len(l.notices) == 0 || !strings.Contains(l.notices[len(l.notices)-1], "delete it afterwards") {
		t.Errorf("it said %q", l.notices)
	}
}

// A removal that was cut off is ended by the next one.
func TestUninstallTwiceTried(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed()
	l.manager.fails["Delete"] = errFake
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = l.Uninstall(ctx, "name", filepath.Join(l.folder, "place"))
	delete(l.manager.fails, "Delete")
	if err := l.Uninstall(t.Context(), "name", filepath.Join(l.folder, "place")); err != nil || l.manager.installed {
		t.Errorf("it is there: %v, %v", l.manager.installed, err)
	}
	if _, err := os.Stat(filepath.Join(l.folder, "place")); err == nil {
		t.Error("the program is left")
	}
}

func TestUninstallOfWhatIsHeldOpen(t *testing.T) {
	t.Parallel()
	l := newLab(t, "good 1").installed()
	l.manager.fails["Delete"] = errFake // it stays for a while
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Uninstall(ctx, "name", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
