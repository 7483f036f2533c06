package conformance_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/conformance"
)

// Scratch disks on another node than the host's have the numbers of somebody's disks.
func TestScratchOfAnotherNode(t *testing.T) {
	t.Parallel()
	s, env := newBed(t)
	_, other := newBed(t)
	number := s.Attach(sim.DiskSpec{Image: t.TempDir() + "/somebodys.img", SizeBytes: 512 << 20})
	before := s.Disk(number)
	env.Host, env.Scratch = s.Agent, other.Scratch
	results, err := conformance.Run(t.Context(), env, conformance.Options{Run: regexp.MustCompile("^disk/(partition|read-only)$")})
	for _, r := range results {
		if len(r.Failures) == 0 || !strings.Contains(r.Failures[0], "on another node") {
			t.Errorf("%s %s: %q, %v", r.Outcome, r.Name, r.Failures, err)
		}
	}
	if after := s.Disk(number); after.Style != before.Style || after.Offline != before.Offline || after.ReadOnly != before.ReadOnly {
		t.Errorf("somebody's disk was %+v, and is %+v", before, after)
	}
}

// stubborn are files of which the links cannot be removed.
type stubborn struct{ conformance.Files }

func (f stubborn) RemoveFile(ctx context.Context, path string) error {
	if strings.HasSuffix(path, `\link`) {
		return errors.New("somebody has it open")
	}
	return f.Files.RemoveFile(ctx, path)
}

// knowing files tell folders from links by themselves.
type knowing struct{ stubborn }

func (knowing) IsFolder(path string) bool { return !strings.HasSuffix(path, `\link`) }

// linkBlind is a host that tells no link from a folder, or nothing at all.
type linkBlind struct {
	host.Host
	err error
}

func (h linkBlind) IsSymlink(context.Context, string) (bool, error) { return false, h.err }

// What a link leads to is kept when the link resists, whatever the host says of it.
func TestCleaningFollowsNoLink(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files func(conformance.Files) conformance.Files
		err   error
	}{
		"no answer": {func(f conformance.Files) conformance.Files { return stubborn{f} }, &host.Error{Op: "IsSymlink", Kind: host.KindUnavailable}},
		"a lie":     {func(f conformance.Files) conformance.Files { return knowing{stubborn{f}} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, env := newBed(t)
			s.WriteFile(`C:\somebody\file`, "kept")
			env.Host, env.Files = linkBlind{s.Agent, test.err}, test.files(env.Files)
			_, err := conformance.RunCases(t.Context(), env, conformance.Options{}, conformance.CaseOf("test/link", nil, func(ctx context.Context, scene conformance.Scene) {
				s.OK(s.Node.MakeLink(ctx, scene.Folder()+`\link`, `C:\somebody`))
			}))
			if err == nil {
				t.Error("nothing was left behind")
			}
			s.Holds(`C:\somebody\file`, "kept")
		})
	}
}

// unlistable are files with a folder that cannot be listed.
type unlistable struct {
	conformance.Files
	folder string
}

func (f unlistable) ListDir(ctx context.Context, path string) ([]string, error) {
	if path == f.folder {
		return nil, errors.New("access is denied")
	}
	return f.Files.ListDir(ctx, path)
}

// A working folder that is a link stays when the folder around it tells nothing.
func TestWorkingFolderStays(t *testing.T) {
	t.Parallel()
	s, env := newBed(t)
	s.MakeDir(`C:\k\data`)
	s.MakeDir(`C:\k\lib`)
	s.OK(s.Node.MakeLink(t.Context(), `C:\k\lib\kubelet`, `C:\k\data`))
	env.Host, env.Files, env.WorkingDir = s.Agent, unlistable{env.Files, `C:\k\lib`}, `C:\k\lib\kubelet`
	_, _ = conformance.RunCases(t.Context(), env, conformance.Options{}, conformance.CaseOf("test/nothing", nil, func(context.Context, conformance.Scene) {}))
	if names := s.Names(`C:\k\lib`); !slices.Equal(names, []string{"kubelet"}) {
		t.Errorf("the folder holds %q", names)
	}
}

// A portal that the initiator knew before the run is known afterwards.
func TestKnownPortalStays(t *testing.T) {
	t.Parallel()
	s, env := newBed(t)
	env.Host = s.Agent
	s.OK(s.Agent.StartService(t.Context(), "MSiSCSI"))
	s.OK(s.Agent.AddTargetPortal(t.Context(), env.ISCSI.Portal))
	results, err := conformance.Run(t.Context(), env, conformance.Options{Run: regexp.MustCompile("^iscsi/target$")})
	mustPass(t, results, err)
	portals, err := s.Agent.ListTargetPortals(t.Context())
	if err != nil || !slices.Equal(portals, []host.TargetPortal{env.ISCSI.Portal}) {
		t.Errorf("the initiator knows %v, %v", portals, err)
	}
}

// A share may be given in any spelling; its mapping goes.
func TestShareInAnySpelling(t *testing.T) {
	t.Parallel()
	for _, path := range []string{`//FILES/share`, `\\files\share\`} {
		s, env := newBed(t)
		env.Host, env.SMB.Path = s.Agent, path
		results, err := conformance.Run(t.Context(), env, conformance.Options{Run: regexp.MustCompile("^smb/mapping$")})
		mustPass(t, results, err)
		isClean(t, s)
	}
}
