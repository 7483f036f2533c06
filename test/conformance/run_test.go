package conformance_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/test/conformance"
)

var disk = []conformance.Need{conformance.NeedDisk}

// Names are unique, begin with their group, and every group has cases.
func TestTableIsWellFormed(t *testing.T) {
	t.Parallel()
	names, groups := map[string]bool{}, map[conformance.Group]int{}
	for _, c := range conformance.Cases() {
		if names[c.Name] || !strings.HasPrefix(c.Name, string(c.Group)+"/") || !regexp.MustCompile(`^[a-z]+/[a-z-]+$`).MatchString(c.Name) {
			t.Errorf("case %q of group %s", c.Name, c.Group)
		}
		names[c.Name] = true
		groups[c.Group]++
	}
	for _, group := range []conformance.Group{
		conformance.GroupDisk, conformance.GroupVolume, conformance.GroupFilesystem, conformance.GroupSMB, conformance.GroupISCSI, conformance.GroupSystem,
	} {
		if groups[group] < 3 {
			t.Errorf("group %s has %d cases", group, groups[group])
		}
	}
	if got := conformance.Select(regexp.MustCompile("^smb/")); len(got) != groups[conformance.GroupSMB] {
		t.Errorf("^smb/ selects %d cases of %d", len(got), groups[conformance.GroupSMB])
	}
}

// However a case ends, what it has made goes, and the next case is run.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	s, env := newBed(t)
	env.Host = s.Agent
	leave := func(ctx context.Context, scene conformance.Scene) {
		scene.Mounted(ctx, scene.Folder()+`\tree\m`)
		s.WriteFile(scene.Folder()+`\tree\m\file`, "x")
		s.WriteFile(scene.Folder()+`\a\b\c`, "x")
		s.WriteFile(scene.Outside()+`\a\b`, "x")
		s.OK(s.Node.MakeLink(ctx, scene.Folder()+`\link`, `C:\Windows`))
	}
	undone := false
	results, err := conformance.RunCases(t.Context(), env, conformance.Options{CaseTimeout: 20 * time.Second},
		conformance.CaseOf("test/passes", disk, leave),
		conformance.CaseOf("test/fails", disk, func(ctx context.Context, scene conformance.Scene) {
			leave(ctx, scene)
			scene.Later(func(context.Context) error { undone = true; return errors.New("no way") })
			scene.Notef("a note")
			scene.Errorf("goes on")
			scene.Fatalf("ends \x1b[31m here")
			scene.Errorf("never")
		}),
		conformance.CaseOf("test/panics", disk, func(ctx context.Context, scene conformance.Scene) {
			leave(ctx, scene)
			var nothing *conformance.Env
			_ = nothing.Host
		}),
		conformance.CaseOf("test/last", nil, func(context.Context, conformance.Scene) {}),
	)
	if err != nil {
		t.Error(err)
	}
	want := []conformance.Outcome{conformance.Passed, conformance.Failed, conformance.Failed, conformance.Passed}
	for i, r := range results {
		if r.Outcome != want[i] {
			t.Errorf("%s: %s, %q", r.Name, r.Outcome, r.Failures)
		}
	}
	if got := results[1].Failures; !slices.Equal(got, []string{"goes on", "ends ?[31m here", "clean up: no way"}) || !undone {
		t.Errorf("the failures are %q", got)
	}
	if got := results[1].Notes; !slices.Equal(got, []string{"a note"}) {
		t.Errorf("the notes are %q", got)
	}
	if got := results[2].Failures; len(got) != 1 || !strings.Contains(got[0], "run_test.go") {
		t.Errorf("the panic is told as %q", got)
	}
	isClean(t, s)
}

// A host that is not there is one error, and nothing is made for it.
func TestHostIsNotThere(t *testing.T) {
	t.Parallel()
	s, env := newBed(t)
	env.Host = nobody{s.Agent}
	results, err := conformance.Run(t.Context(), env, conformance.Options{})
	if len(results) > 0 || !host.IsKind(err, host.KindUnavailable) {
		t.Errorf("%d results, %v", len(results), err)
	}
	isClean(t, s)
}

// nobody is a host that nothing answers for.
type nobody struct{ host.Host }

func (nobody) ListDiskIDs(context.Context) (map[uint32]host.DiskIDs, error) {
	return nil, &host.Error{Op: "ListDiskIDs", Kind: host.KindUnavailable}
}

// Folders above the working folder that were missing are missing again afterwards.
func TestMissingFoldersGo(t *testing.T) {
	t.Parallel()
	s, env := newBed(t)
	env.Host, env.WorkingDir, env.OutsideDir = s.Agent, `C:\k\missing\a\b`, `C:\elsewhere`
	results, err := conformance.Run(t.Context(), env, conformance.Options{Run: regexp.MustCompile("^filesystem/rmdir$")})
	mustPass(t, results, err)
	isClean(t, s)
}

// A canceled run cleans up after its case, says that the others were not run, and
// is an error.
func TestCancel(t *testing.T) {
	t.Parallel()
	s, env := newBed(t)
	env.Host = s.Agent
	ctx, cancel := context.WithCancel(t.Context())
	var observed []string
	options := conformance.Options{Observe: func(r conformance.Result) { observed = append(observed, r.Name) }}
	results, err := conformance.RunCases(ctx, env, options,
		conformance.CaseOf("test/first", disk, func(ctx context.Context, scene conformance.Scene) {
			scene.Mounted(ctx, scene.Folder()+`\m`)
			cancel()
			if _, err := scene.Host().ListDiskIDs(ctx); err == nil {
				scene.Errorf("the call went on")
			}
		}),
		conformance.CaseOf("test/second", nil, func(context.Context, conformance.Scene) { t.Error("the second case was run") }),
	)
	if !errors.Is(err, context.Canceled) || len(results) != 2 || results[1].Outcome != conformance.NotRun {
		t.Errorf("%+v, %v", results, err)
	}
	if !slices.Equal(observed, []string{"test/first", "test/second"}) {
		t.Errorf("observed were %q", observed)
	}
	isClean(t, s)
}

// A case that takes too long fails; one that never ends stops the run, which still
// cleans up.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	s, env := newBed(t)
	env.Host = s.Agent
	release := make(chan struct{})
	options := conformance.Options{CaseTimeout: 2 * time.Second, CleanupTimeout: 5 * time.Second}
	results, err := conformance.RunCases(t.Context(), env, options,
		conformance.CaseOf("test/slow", nil, func(ctx context.Context, _ conformance.Scene) { <-ctx.Done() }),
		conformance.CaseOf("test/hangs", nil, func(_ context.Context, scene conformance.Scene) {
			s.WriteFile(scene.Folder()+`\a\b`, "x")
			<-release
		}),
		conformance.CaseOf("test/last", nil, func(context.Context, conformance.Scene) { t.Error("the last case was run") }),
	)
	close(release)
	if err == nil || !strings.Contains(err.Error(), "test/hangs") {
		t.Errorf("the error is %v", err)
	}
	for i, want := range []conformance.Outcome{conformance.Failed, conformance.Failed, conformance.NotRun} {
		if results[i].Outcome != want {
			t.Errorf("%+v, want %s", results[i], want)
		}
	}
	isClean(t, s)
}

// What an environment lacks is said, and cases that need it are not run.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	s, full := newBed(t)
	full.Host = s.Agent
	for what, change := range map[string]func(*conformance.Env){
		"no host":                   func(e *conformance.Env) { e.Host = nil },
		"no files":                  func(e *conformance.Env) { e.Files = nil },
		"no working folder":         func(e *conformance.Env) { e.WorkingDir = "" },
		"a drive as working folder": func(e *conformance.Env) { e.WorkingDir = `C:\` },
		"a relative working folder": func(e *conformance.Env) { e.WorkingDir = `k\kubelet` },
	} {
		env := full
		change(&env)
		if _, err := conformance.Run(t.Context(), env, conformance.Options{}); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := conformance.Run(t.Context(), full, conformance.Options{Run: regexp.MustCompile("^nothing$")}); err == nil {
		t.Error("no case: no error")
	}
	bare := conformance.Env{Host: s.Agent, Files: s.Node, WorkingDir: full.WorkingDir}
	results, err := conformance.Run(t.Context(), bare, conformance.Options{})
	if err != nil {
		t.Error(err)
	}
	for i, c := range conformance.Cases() {
		r, want := results[i], conformance.Passed
		if len(c.Needs) > 0 {
			want = conformance.NotRun
		}
		if r.Outcome != want || want == conformance.NotRun && (len(r.Notes) != 1 || !strings.Contains(r.Notes[0], string(c.Needs[0]))) {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	isClean(t, s)
}

// Additions to the contract may be missing, which is noted; nothing else may.
func TestAdditionsMayBeMissing(t *testing.T) {
	t.Parallel()
	s, env := newBed(t)
	env.Host = foreign{s.Agent}
	results, err := conformance.Run(t.Context(), env, conformance.Options{})
	mustPass(t, results, err)
	noted := map[string]bool{}
	for _, r := range results {
		for _, note := range r.Notes {
			noted[strings.TrimPrefix(note, "the host has no ")] = true
		}
	}
	for _, addition := range []string{"ListDisks", "SetDiskReadOnly", "ListVolumes", "GetVolume", "FormatVolumeWith", "ListMounts", "GetLink", "GetPathStats", "ListSmbGlobalMappings", "ListTargets", "persistent login"} {
		if !noted[addition] {
			t.Errorf("that %s is missing was not noted", addition)
		}
	}
	isClean(t, s)
}

// foreign is a host without the additions.
type foreign struct{ host.Host }

func lacks(op string) error { return &host.Error{Op: op, Kind: host.KindUnsupported} }

func (foreign) ListDisks(context.Context) ([]host.DiskInfo, error) { return nil, lacks("ListDisks") }
func (foreign) SetDiskReadOnly(context.Context, uint32, bool) error {
	return lacks("SetDiskReadOnly")
}
func (foreign) ListVolumes(context.Context) ([]host.VolumeInfo, error) {
	return nil, lacks("ListVolumes")
}
func (foreign) GetVolume(context.Context, string) (host.VolumeInfo, error) {
	return host.VolumeInfo{}, lacks("GetVolume")
}
func (foreign) FormatVolumeWith(context.Context, string, host.FormatOptions) error {
	return lacks("FormatVolumeWith")
}
func (foreign) ListMounts(context.Context) ([]host.Mount, error) { return nil, lacks("ListMounts") }
func (foreign) GetLink(context.Context, string) (host.LinkInfo, error) {
	return host.LinkInfo{}, lacks("GetLink")
}
func (foreign) GetPathStats(context.Context, string) (host.VolumeStats, error) {
	return host.VolumeStats{}, lacks("GetPathStats")
}
func (foreign) ListSmbGlobalMappings(context.Context) ([]host.SmbMapping, error) {
	return nil, lacks("ListSmbGlobalMappings")
}
func (f foreign) ConnectTarget(ctx context.Context, portal host.TargetPortal, iqn string, options host.ConnectOptions) error {
	if options.Persistent {
		return lacks("ConnectTarget")
	}
	return f.Host.ConnectTarget(ctx, portal, iqn, options)
}
func (foreign) ListTargets(context.Context) ([]host.TargetInfo, error) {
	return nil, lacks("ListTargets")
}
