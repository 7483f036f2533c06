package agent_test

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

// Invariant 2, with C027: a tree with every kind of link in it.
func TestInvariant2_C027_RemovalFollowsNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	folder := l.share()
	writeFile(t, filepath.Join(folder, "remote"), []byte("remote"))
	l.ok(l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, "", "u", "pw"))
	id := l.mounted(root + `\elsewhere`)
	l.write(root+`\elsewhere\file`, "volume")
	l.write(root+`\d\file`, "inside")
	l.write(`C:\outside\file`, "outside")

	build := func(top string) {
		l.write(top+`\file`, "x")
		l.write(top+`\sub\deep\file`, "x")
		l.ok(l.agent.CreateSymlink(l.ctx, root+`\d`, top+`\link`))
		l.ok(l.agent.CreateSymlink(l.ctx, root+`\d`, top+`\sub\link`))
		l.ok(l.agent.CreateSymlink(l.ctx, root+`\d\file`, top+`\filelink`))
		l.ok(l.agent.MountVolume(l.ctx, id, top+`\sub\mount`))
		l.ok(l.node.MakeLink(l.ctx, top+`\out`, `C:\outside`))
		l.junction(top+`\sub\junction`, `C:\outside`)
		l.junction(top+`\sub\volume`, id)
		l.ok(l.node.MakeLink(l.ctx, top+`\share`, `\\srv\share`))
		l.ok(l.node.MakeLink(l.ctx, top+`\dead`, `C:\nowhere`))
	}
	intact := func() {
		t.Helper()
		l.holds(root+`\elsewhere\file`, "volume")
		l.holds(root+`\d\file`, "inside")
		l.holds(`C:\outside\file`, "outside")
		l.holds(`\\srv\share\remote`, "remote")
	}
	top := root + `\t`
	build(top)
	l.want(host.KindPrecondition, l.agent.Rmdir(l.ctx, top, false))
	l.holds(top+`\sub\deep\file`, "x")
	l.ok(l.agent.Rmdir(l.ctx, top, true))
	l.exists(top, false)
	intact()
	build(top)
	l.ok(l.agent.RmdirContents(l.ctx, top))
	if names, err := l.node.ListDir(l.ctx, top); err != nil || len(names) != 0 {
		t.Errorf("left in the folder: %q, %v", names, err)
	}
	intact()
	build(top)
	for _, name := range []string{`\link`, `\filelink`, `\sub\mount`, `\out`, `\sub\junction`, `\sub\volume`, `\share`, `\dead`} {
		l.want(host.KindPrecondition, l.agent.RmdirContents(l.ctx, top+name))
		for _, force := range []bool{false, true} {
			if err := l.agent.Rmdir(l.ctx, top+name, force); err != nil {
				t.Errorf("Rmdir(%s, %v): %v", name, force, err)
			}
			intact()
		}
		l.exists(top+name, false)
	}
	l.noHandles()
}

// Invariant 3, text and links: nothing outside the working folder is seen or changed.
func TestInvariant3_NothingOutside(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.write(`C:\outside\file`, "outside")
	l.write(`C:\var\lib\kubelet2\file`, "outside")
	for _, link := range []struct{ name, target string }{
		{`\abs`, `C:\outside`}, {`\rel`, `..\..\..\outside`}, {`\rooted`, `\outside`}, {`\drive`, `C:\`}, {`\sibling`, `..\kubelet2`},
		{`\chain`, root + `\abs`}, {`\byid`, l.systemVolume() + `outside`}, {`\dots`, root + `\x\..\..\..\..\outside`},
	} {
		l.ok(l.node.MakeLink(l.ctx, root+link.name, link.target))
	}
	l.junction(root+`\junction`, `C:\outside`)
	l.junction(root+`\volume`, l.systemVolume())
	paths := []string{
		`C:\outside`, `C:\outside\new`, `C:\var\lib\kubelet2`, `C:\`, `C:\var\lib`, `D:\x`, `\outside`,
		root + `\..\kubelet2`, root + `2`, root + `\a\..\..\x`, `\\.\C:\outside`, `\\?\GLOBALROOT\x`,
		root + `\rel\new`, root + `\abs\new`, root + `\abs\file`, root + `\rooted\file`, root + `\drive\outside\file`,
		root + `\sibling\file`, root + `\chain\file`, root + `\byid\file`, root + `\junction\file`, root + `\volume\outside\file`,
		root + `\dots\file`, root + `\abs\deep\er`,
	}
	l.ok(l.agent.Mkdir(l.ctx, root+`\source`))
	id := l.formatted(64 * mib)
	for _, path := range paths {
		for op, err := range map[string]error{
			"PathExists":    second(l.agent.PathExists(l.ctx, path)),
			"IsSymlink":     second(l.agent.IsSymlink(l.ctx, path)),
			"GetLink":       second(l.agent.GetLink(l.ctx, path)),
			"Mkdir":         l.agent.Mkdir(l.ctx, path),
			"Rmdir":         l.agent.Rmdir(l.ctx, path, true),
			"RmdirContents": l.agent.RmdirContents(l.ctx, path),
			"link from":     l.agent.CreateSymlink(l.ctx, path, root+`\newlink`),
			"link at":       l.agent.CreateSymlink(l.ctx, root+`\source`, path),
			"MountVolume":   l.agent.MountVolume(l.ctx, id, path),
			"UnmountVolume": l.agent.UnmountVolume(l.ctx, id, path),
			"NewSmb":        l.agent.NewSmbGlobalMapping(l.ctx, `\\srv\share`, path, "u", "pw"),
		} {
			if !host.IsKind(err, host.KindInvalid) {
				t.Errorf("%s %s: %v, want KindInvalid", op, path, err)
			}
		}
	}
	l.holds(`C:\outside\file`, "outside")
	l.holds(`C:\var\lib\kubelet2\file`, "outside")
	for folder, want := range map[string]int{`C:\outside`: 1, `C:\var\lib\kubelet2`: 1} {
		if names, err := l.node.ListDir(l.ctx, folder); err != nil || len(names) != want {
			t.Errorf("%s holds %q, %v", folder, names, err)
		}
	}
	l.noHandles()
}

// Invariant 3 with C096: somebody swaps a folder on the way for a link that
// leads outside, at every moment of every operation.
func TestInvariant3_C096_SwappedParent(t *testing.T) {
	t.Parallel()
	const parent = root + `\p`
	for name, do := range map[string]func(l *lab, id string) error{
		"Mkdir":         func(l *lab, _ string) error { return l.agent.Mkdir(l.ctx, parent+`\sub\new`) },
		"Rmdir":         func(l *lab, _ string) error { return l.agent.Rmdir(l.ctx, parent+`\sub`, true) },
		"RmdirContents": func(l *lab, _ string) error { return l.agent.RmdirContents(l.ctx, parent+`\sub`) },
		"CreateSymlink": func(l *lab, _ string) error { return l.agent.CreateSymlink(l.ctx, root+`\source`, parent+`\sub\link`) },
		"MountVolume":   func(l *lab, id string) error { return l.agent.MountVolume(l.ctx, id, parent+`\sub\mount`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			id := l.formatted(64 * mib)
			l.ok(l.agent.Mkdir(l.ctx, root+`\source`))
			for call := 1; ; call++ {
				reset(l, parent)
				seen, swapped := 0, false
				l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.*", Count: -1, Hook: func() {
					if seen++; seen == call {
						swapped = swap(l, parent, `C:\outside`)
					}
				}}))
				err := do(l, id)
				l.ok(l.node.ClearFaults(l.ctx))
				where := fmt.Sprintf("swap at call %d (done: %v), result %v", call, swapped, err)
				names, listErr := l.node.ListDir(l.ctx, `C:\outside\sub`)
				if listErr != nil || len(names) != 1 || names[0] != "canary" {
					t.Fatalf("%s: outside is %q, %v", where, names, listErr)
				}
				if paths, err := l.os.MountPaths(l.ctx, id); err != nil || strings.Contains(strings.ToLower(strings.Join(paths, " ")), "outside") {
					t.Fatalf("%s: the volume is mounted at %q, %v", where, paths, err)
				}
				if seen < call {
					break
				}
				l.ok(l.agent.Rmdir(l.ctx, parent, true))
			}
		})
	}
}

// reset makes the folders of TestInvariant3_C096_SwappedParent.
func reset(l *lab, parent string) {
	l.Helper()
	l.ok(l.node.MakeDir(l.ctx, parent+`\sub`))
	l.write(`C:\outside\sub\canary`, "outside")
}

// swap replaces a folder by a link, as far as the node lets it.
func swap(l *lab, folder, target string) bool {
	ctx := context.WithoutCancel(l.ctx)
	for _, name := range []string{`\sub\link`, `\sub\new`, `\sub`, ``} {
		if err := l.node.RemoveFile(ctx, folder+name); err != nil && name != `\sub\link` && name != `\sub\new` {
			return false
		}
	}
	return l.node.MakeLink(ctx, folder, target) == nil
}

// Invariant 5 for paths: two spellings of one place are one object.
func TestInvariant5_SpellingsOfOnePlace(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ok(l.node.MakeDir(l.ctx, root+`\long folder name`))
	l.ok(l.agent.CreateSymlink(l.ctx, root+`\long folder name`, root+`\alias`))
	first, second := l.formatted(64*mib), l.formatted(64*mib)
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.SetVolumeMountPoint", Count: -1, Hook: func() {
		once.Do(func() {
			close(entered)
			<-release
		})
	}}))
	done := make(chan error, 1)
	go func() { done <- l.agent.MountVolume(l.ctx, first, root+`\long folder name\m`) }()
	<-entered
	for _, path := range []string{root + `\LONGFO~1\m`, root + `\alias\m`, strings.ToUpper(root) + `\Long Folder Name\M`} {
		ctx, cancel := context.WithTimeout(l.ctx, 2*time.Second)
		l.want(host.KindBusy, l.agent.MountVolume(ctx, second, path))
		cancel()
	}
	if err := l.agent.Mkdir(l.ctx, root+`\another`); err != nil {
		t.Errorf("another path: %v", err)
	}
	close(release)
	l.ok(<-done)
	l.want(host.KindPrecondition, l.agent.MountVolume(l.ctx, second, root+`\alias\m`))
}

func TestConcurrentTreeChanges(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 15 {
				path := fmt.Sprintf(`%s\shared\w%d\%d`, root, worker%4, i)
				if err := l.agent.Mkdir(l.ctx, path); err != nil && !host.IsKind(err, host.KindBusy) && !host.IsKind(err, host.KindNotFound) {
					t.Errorf("Mkdir: %v", err)
				}
				_, _ = l.agent.PathExists(l.ctx, path)
				if err := l.agent.Rmdir(l.ctx, fmt.Sprintf(`%s\shared\w%d`, root, worker%4), true); err != nil &&
					!host.IsKind(err, host.KindBusy) && !host.IsKind(err, host.KindPrecondition) {
					t.Errorf("Rmdir: %v", err)
				}
			}
		})
	}
	all.Wait()
	l.ok(l.agent.Rmdir(l.ctx, root+`\shared`, true))
	l.noHandles()
}

// Invariant 6: no code of the agent or below can start a process.
func TestInvariant6_NoChildProcess(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".", "../winos", "../host"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range file.Imports {
				if spec.Path.Value == `"os/exec"` || spec.Path.Value == `"syscall"` && !strings.HasSuffix(path, "_windows.go") {
					t.Errorf("%s imports %s", path, spec.Path.Value)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// C095: names that a shell would take apart arrive as they are.
func TestC095_ShellTextIsData(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	source, target := root+`\a&calc`, root+"\\b %PATH% $(x) `y` ;'"
	l.ok(l.agent.Mkdir(l.ctx, source))
	calls := l.calls(func() { l.ok(l.agent.CreateSymlink(l.ctx, source, target)) })
	if n := count(calls, "win32.CreateSymlink"); n != 1 {
		t.Errorf("calls were %q", calls)
	}
	link, err := l.agent.GetLink(l.ctx, target)
	l.ok(err)
	if !strings.EqualFold(link.Target, source) {
		t.Errorf("the link leads to %q", link.Target)
	}
}

// Invariant 7 through the whole stack: a hung system call holds up nothing else.
func TestInvariant7_HungSystemCall(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(_ *sim.Config, p *agent.Policy) { p.HangGrace = time.Millisecond })
	id, other := l.formatted(64*mib), l.formatted(64*mib)
	l.ok(l.node.AddFault(l.ctx, sim.Fault{Call: "win32.FlushFileBuffers", Hang: true}))
	for _, kind := range []host.Kind{host.KindTimeout, host.KindBusy} {
		ctx, cancel := context.WithTimeout(l.ctx, 2*time.Second)
		l.want(kind, l.agent.WriteVolumeCache(ctx, id))
		cancel()
	}
	l.ok(l.agent.WriteVolumeCache(l.ctx, other))
	l.ok(l.agent.Mkdir(l.ctx, root+`\x`))
	l.ok(l.node.ClearFaults(l.ctx))
	for l.agent.HungCalls() > 0 {
		time.Sleep(time.Millisecond)
	}
	l.ok(l.agent.WriteVolumeCache(l.ctx, id))
}
