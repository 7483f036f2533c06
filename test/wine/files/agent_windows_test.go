package files

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// agent is the product's agent over the calls of Windows; its only working folder is
// root below the test's folder. WMI, which paths do not need, is asked past Wine.
func (l *lab) agent() *agent.Agent {
	l.Helper()
	l.OK(l.Control.MakeDir(l.Context(), l.below("root")))
	a, err := agent.New(winos.New(l.node, l.api, winos.Options{}), agent.Policy{Roots: []string{l.below("root")}})
	l.OK(err)
	return a
}

func (l *lab) wantKind(kind host.Kind, err error) {
	l.Helper()
	if !host.IsKind(err, kind) {
		l.Errorf("error %v, want kind %q", err, kind)
	}
}

// exists asks the agent and the node whether something is at a path.
func (l *lab) exists(a *agent.Agent, path string, want bool) {
	l.Helper()
	got, err := a.PathExists(l.Context(), path)
	_, nodeErr := with(l, l.node, `\\?\`+path, lookAccess, func(win32.Handle) (any, error) { return nil, nil })
	if err != nil || got != want || (nodeErr == nil) != want {
		l.Errorf("PathExists(%.80s) = %v, %v; want %v; the node says %v", path, got, err, want, nodeErr)
	}
}

func TestC023_AgentOnLongPaths(t *testing.T) {
	l := open(t)
	a := l.agent()
	for _, length := range []int{259, 260, 300, 1024, 31900} {
		path := l.below("root")
		for length-len(path) > 101 {
			path += `\` + strings.Repeat("d", 99)
		}
		path += `\` + strings.Repeat("e", length-len(path)-1)
		l.OK(a.Mkdir(t.Context(), path))
		l.exists(a, path, true)
		err := a.CreateSymlink(t.Context(), path, l.below("root", "link"))
		if length > 1024 { // a link has its target twice, in 16 KiB
			l.wantKind(host.KindInvalid, err)
			l.exists(a, l.below("root", "link"), false)
		} else if link, linkErr := a.GetLink(t.Context(), l.below("root", "link")); err != nil || linkErr != nil || link.Target != path {
			t.Errorf("the link leads to %.80s, %v, %v", link.Target, err, linkErr)
		}
		l.OK(a.Rmdir(t.Context(), l.below("root", "link"), false))
		l.OK(a.Rmdir(t.Context(), path, false))
		l.exists(a, path, false)
		l.OK(a.Rmdir(t.Context(), l.below("root", strings.Repeat("d", 99)), true))
	}
	tooLong := l.below("root") + strings.Repeat(`\aaaaaaaaaaaaaaaaaaa`, 1600)
	l.wantKind(host.KindInvalid, a.Mkdir(t.Context(), tooLong))
	l.wantKind(host.KindInvalid, a.Rmdir(t.Context(), tooLong, true))
}

func TestC029_AgentOnShortNames(t *testing.T) {
	l := open(t)
	a := l.agent()
	l.OK(a.Mkdir(t.Context(), l.below("root", "some folder")))
	l.OK(a.Mkdir(t.Context(), l.below("root", "SOMEFO~1", "below")))
	l.exists(a, l.below("root", "some folder", "below"), true)
	l.OK(a.CreateSymlink(t.Context(), l.below("root", "somefo~1", "below"), l.below("root", "link")))
	link, err := a.GetLink(t.Context(), l.below("root", "link"))
	if err != nil || link.Target != l.below("root", "some folder", "below") {
		t.Errorf("the link leads to %+v, %v", link, err)
	}
	l.OK(a.Mkdir(t.Context(), l.below("root", "new~1"))) // nobody's short name
	if list, err := l.list(l.path("root")); err != nil || !slices.Equal(list, []string{"link", "new~1", "some folder"}) {
		t.Errorf("names %q, %v", list, err)
	}
	l.OK(l.mkdir(l.path("elsewhere as well")))
	l.wantKind(host.KindInvalid, second(a.PathExists(t.Context(), l.below("ELSEWH~1"))))
}

// C091: the agent tells the five kinds apart, and makes a folder where one is already,
// even behind a mount point.
func TestC091_AgentOnKinds(t *testing.T) {
	l := open(t)
	a := l.agent()
	_, id := l.volume("")
	gone, missing := l.volume("")
	l.OK(a.Mkdir(t.Context(), l.below("root", "pod", "dir")))
	l.write(l.below("root", "pod", "file"), "x")
	l.OK(a.CreateSymlink(t.Context(), l.below("root", "pod", "dir"), l.below("root", "pod", "symlink")))
	for name, volume := range map[string]string{"mount": id, "dangling": missing} {
		l.mount(`root\pod\`+name, volume)
	}
	l.OK(l.Control.DetachDisk(t.Context(), gone))
	for name, want := range map[string]host.LinkInfo{
		"dir": {}, "file": {},
		"symlink":  {Kind: host.LinkSymlink, Target: l.below("root", "pod", "dir")},
		"mount":    {Kind: host.LinkMountPoint, Target: id},
		"dangling": {Kind: host.LinkMountPoint, Target: missing},
	} {
		path := l.below("root", "pod", name)
		got, err := a.GetLink(t.Context(), path)
		if err != nil || got != want {
			t.Errorf("%s is %+v, %v; want %+v", name, got, err, want)
		}
		is, err := a.IsSymlink(t.Context(), path)
		if err != nil || is != (want.Kind != host.NotALink) {
			t.Errorf("IsSymlink(%s) = %v, %v", name, is, err)
		}
		l.exists(a, path, true)
	}
	l.OK(a.Mkdir(t.Context(), l.below("root", "pod", "mount")))
	l.OK(a.Mkdir(t.Context(), l.below("root", "pod", "mount", "on the volume")))
	l.exists(a, l.below("root", "pod", "mount", "on the volume"), true)
	if list, err := l.list(id); err != nil || !slices.Contains(list, "on the volume") {
		t.Errorf("the volume holds %q, %v", list, err)
	}
	// Everything goes, and the volume keeps what is on it.
	l.write(id+"file", "on the volume")
	l.OK(a.RmdirContents(t.Context(), l.below("root", "pod")))
	if list, err := l.list(l.path("root", "pod")); err != nil || len(list) != 0 {
		t.Errorf("left: %q, %v", list, err)
	}
	l.holds(id+"file", "on the volume")
	l.mounts(id)
}

// look describes a tree of the node: every name, what it is, and what it holds.
func (l *lab) look(path string) string {
	l.Helper()
	var all []string
	l.visit(path, func(line string) { all = append(all, line) })
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func (l *lab) visit(path string, tell func(string)) {
	l.Helper()
	ctx := context.Background()
	info, err := with(l, l.node, path, lookAccess, func(h win32.Handle) (win32.FileInfo, error) { return l.node.Info(ctx, h) })
	l.OK(err)
	tell(fmt.Sprintf("%s %X %X %d %x", path, info.Attributes, info.ReparseTag, info.SizeBytes, info.FileID))
	if info.Attributes&(win32.AttrDirectory|win32.AttrReparse) != win32.AttrDirectory {
		return
	}
	list, err := names(l, l.node, path)
	l.OK(err)
	for _, name := range list {
		l.visit(path+`\`+name, tell)
	}
}
