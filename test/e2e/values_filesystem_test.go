package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// filesystemOps are the operations on paths, that of a link included.
const filesystemOps = "PathExists Mkdir Rmdir RmdirContents CreateSymlink IsSymlink"

// Every path of the filesystem group is confined, in every version: the working
// folder is not a prefix of text, and IsSymlink is no exception.
func TestPathsAreConfined(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Canaries()
	s.MakeDir(objectPath)
	outside, methods := s.Outside(), 0
	eachField(s, nil, filesystemOps, func(f stringField, call func(string) error) {
		methods++
		for _, path := range outsidePaths() {
			if err := call(path); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s = %q: %v", f, path, err)
			}
		}
	})
	if methods != 31 {
		t.Errorf("%d methods were looked at", methods)
	}
	if s.Outside() != outside {
		t.Error("outside the working folder something has changed")
	}
	mustHave(s, stack.Root, "x")
}

// A working folder is a folder and not the beginning of a text: a folder beside it
// that begins like it is outside. C030 adds the spellings that are inside.
func TestC030_PrefixWithoutSeparator(t *testing.T) {
	t.Parallel()
	s := stack.New(t, func(cfg *stack.Config) {
		cfg.Policy.Roots = []string{`C:\var\lib\kubelet`, `C:\extra\`}
	})
	s.Canaries()
	for _, folder := range []string{`C:\var\lib\kubelet`, `C:\var\lib\kubelet-x`, `C:\var\lib\kubelet2`, `C:\extra`} {
		s.MakeDir(folder)
	}
	for path, want := range map[string]codes.Code{
		`C:\var\lib\kubelet-x\a`: codes.InvalidArgument, `C:\var\lib\kubelet2`: codes.InvalidArgument, `C:\var\lib\kubele`: codes.InvalidArgument,
		`C:\var\lib`: codes.InvalidArgument, `C:\extra2\a`: codes.InvalidArgument, `C:\var\lib\kubelet\..\kubelet-x\a`: codes.InvalidArgument,
		`C:\var\lib\kubelet\p1`: codes.OK, `c:\VAR\lib\KUBELET\p2`: codes.OK, `C:/var\lib/kubelet/p3`: codes.OK, `/var/lib/kubelet/p4`: codes.OK,
		`\var\lib\kubelet\p5`: codes.OK, `\\?\C:\var\lib\kubelet\p6`: codes.OK, `C:\var\\lib\kubelet\\p7\`: codes.OK, `C:\extra\p8`: codes.OK,
	} {
		for _, version := range []string{"v1alpha1", "v1beta1", "v1beta2", "v1", "v2alpha1"} {
			if _, err := s.Call("filesystem", version, "Mkdir", fmt.Sprintf(`{"path":%q}`, path)); status.Code(err) != want {
				t.Errorf("%s: Mkdir(%s): %v, want %v", version, path, err, want)
			}
		}
	}
	mustHave(s, `C:\var\lib\kubelet`, "p1", "p2", "p3", "p4", "p5", "p6", "p7")
	mustHave(s, `C:\extra`, "p8")
	mustHave(s, `C:\var\lib\kubelet-x`)
	mustHave(s, `C:\var\lib\kubelet2`)
}

// In the oldest versions a request has a context before force: POD is no force. Read
// as the newest message, a plain remove would become one of the whole tree.
func TestRmdirContextIsNotForce(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.WriteFile(objectPath+`\file`, "kept")
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, request := range []string{`{"path":%q,"context":"POD"}`, `{"path":%q,"context":"PLUGIN"}`, `{"path":%q}`} {
			s.Refused(codes.FailedPrecondition, "filesystem", version, "Rmdir", fmt.Sprintf(request, objectPath))
			s.Holds(objectPath+`\file`, "kept")
		}
	}
	for _, version := range []string{"v1beta2", "v1", "v2alpha1"} {
		s.Refused(codes.FailedPrecondition, "filesystem", version, "Rmdir", fmt.Sprintf(`{"path":%q,"force":false}`, objectPath))
		s.Holds(objectPath+`\file`, "kept")
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, kind := range []string{"PLUGIN", "POD"} {
			s.WriteFile(objectPath+`\file`, "goes")
			if answer := s.Must("filesystem", version, "Rmdir", fmt.Sprintf(`{"path":%q,"context":%q,"force":true}`, objectPath, kind)); answer != `{}` {
				t.Errorf("%s: Rmdir answers %s", version, answer)
			}
			mustHave(s, stack.Root)
		}
	}
}

// The truth is told in both directions and in both shapes of the answer.
func TestPathExistsAndIsSymlinkBothWays(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.MakeDir(objectPath)
	s.OK(s.Node.MakeLink(context.Background(), linkPath, objectPath))
	for _, m := range []struct{ versions, method, field, path, want string }{
		{"v1alpha1 v1beta1 v1beta2 v1 v2alpha1", "PathExists", "exists", objectPath, `{"exists":true}`},
		{"v1alpha1 v1beta1 v1beta2 v1 v2alpha1", "PathExists", "exists", stack.Root + `\none`, `{}`},
		{"v1alpha1 v1beta1", "IsMountPoint", "is_mount_point", linkPath, `{"isMountPoint":true}`},
		{"v1alpha1 v1beta1", "IsMountPoint", "is_mount_point", objectPath, `{}`},
		{"v1beta2 v1 v2alpha1", "IsSymlink", "is_symlink", linkPath, `{"isSymlink":true}`},
		{"v1beta2 v1 v2alpha1", "IsSymlink", "is_symlink", objectPath, `{}`},
	} {
		for _, version := range strings.Fields(m.versions) {
			if answer := s.Must("filesystem", version, m.method, fmt.Sprintf(`{"path":%q}`, m.path)); answer != m.want {
				t.Errorf("%s: %s(%s) = %s, want %s", version, m.method, m.path, answer, m.want)
			}
		}
	}
}

// C022: a link whose target is gone is a link all the same, and can be removed.
func TestC022_DanglingLinksOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	disk, _ := s.Mounted(mountPath)
	s.OK(s.Node.DetachDisk(context.Background(), disk))
	s.OK(s.Node.MakeLink(context.Background(), linkPath, stack.Root+`\gone`))
	s.Share("u", "pw")
	s.Must("smb", "v1", "NewSmbGlobalMapping", fmt.Sprintf(`{"remote_path":"\\\\srv\\share","local_path":%q,"username":"u","password":"pw"}`, stack.Root+`\s`))
	s.OK(s.Node.RemoveSMBServer(context.Background(), "srv"))
	for _, path := range []string{mountPath, linkPath, stack.Root + `\s`} {
		request := fmt.Sprintf(`{"path":%q}`, path)
		if answer := s.Must("filesystem", "v1", "IsSymlink", request); answer != `{"isSymlink":true}` {
			t.Errorf("IsSymlink(%s) = %s", path, answer)
		}
		if answer := s.Must("filesystem", "v1alpha1", "IsMountPoint", request); answer != `{"isMountPoint":true}` {
			t.Errorf("IsMountPoint(%s) = %s", path, answer)
		}
		s.Must("filesystem", "v1", "Rmdir", request)
		s.Must("filesystem", "v1", "Rmdir", request) // gone is gone
	}
	mustHave(s, stack.Root)
}

// C023 and C024: the length of a path is limited by Windows and by nothing else.
func TestC023_C024_LengthsOfPaths(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	ofLength := func(length int) string {
		path := stack.Root
		for length-len(path) > 100 {
			path += `\` + strings.Repeat("a", 98)
		}
		return path + `\` + strings.Repeat("b", length-len(path)-1)
	}
	for _, length := range []int{128, 131, 259, 260, 261, 300, 1024} {
		request := fmt.Sprintf(`{"path":%q}`, ofLength(length))
		for _, version := range []string{"v1alpha1", "v1", "v2alpha1"} {
			s.Must("filesystem", version, "Mkdir", request)
			if answer := s.Must("filesystem", version, "PathExists", request); answer != `{"exists":true}` {
				t.Errorf("%s: a path of %d characters: %s", version, length, answer)
			}
			s.Must("filesystem", version, "Rmdir", request)
		}
	}
	for _, length := range []int{32001, 32767, 33000} {
		text := s.Refused(codes.InvalidArgument, "filesystem", "v1", "Mkdir", fmt.Sprintf(`{"path":%q}`, ofLength(length)))
		if !strings.Contains(text, "path") || !strings.Contains(text, "32000") {
			t.Errorf("%.300q names neither field nor limit", text)
		}
	}
	text := s.Refused(codes.InvalidArgument, "filesystem", "v1", "Mkdir", fmt.Sprintf(`{"path":%q}`, stack.Root+`\`+strings.Repeat("n", 256)))
	if !strings.Contains(text, "255") {
		t.Errorf("%.600q does not name the limit of a name", text)
	}
}

// C027 over the wire: a forced removal never goes through what it finds in the tree.
func TestC027_ForcedRemovalStaysInTheTree(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1alpha1", "v1beta1", "v1beta2", "v1", "v2alpha1"} {
		s := stack.New(t)
		s.Canaries()
		outside := s.Outside()
		_, id := s.Mounted(objectPath + `\mount`)
		s.WriteFile(id+`dir\file`, "in the volume")
		s.WriteFile(stack.Root+`\d\file`, "in the folder")
		for path, target := range map[string]string{
			`\link`: stack.Root + `\d`, `\deep\er\link`: stack.Root + `\d`, `\deep\out`: `C:\outside`, `\relative`: `..\d`, `\up`: `..`,
			`\loop`: objectPath, `\intomount`: objectPath + `\mount`, `\gone`: `C:\nowhere`, `\remote`: `\\srv\share`, `\byid`: id,
		} {
			if strings.Count(path, `\`) > 1 {
				s.MakeDir(objectPath + path[:strings.LastIndex(path, `\`)])
			}
			s.OK(s.Node.MakeLink(context.Background(), objectPath+path, target))
		}
		s.WriteFile(objectPath+`\file`, "goes")
		s.Refused(codes.FailedPrecondition, "filesystem", version, "Rmdir", fmt.Sprintf(`{"path":%q}`, objectPath))
		s.Holds(objectPath+`\file`, "goes")
		s.Must("filesystem", version, "Rmdir", fmt.Sprintf(`{"path":%q,"force":true}`, objectPath))
		mustHave(s, stack.Root, "d")
		s.Holds(stack.Root+`\d\file`, "in the folder")
		s.Holds(id+`dir\file`, "in the volume")
		mustBeMounted(s, id)
		if s.Outside() != outside {
			t.Errorf("%s: outside the working folder something has changed", version)
		}
	}
}

// C027: the contents of a link or mount point are not those of the folder it is in.
func TestC027_RmdirContentsOfALink(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	_, id := s.Mounted(mountPath)
	s.WriteFile(mountPath+`\file`, "in the volume")
	s.WriteFile(stack.Root+`\d\file`, "in the folder")
	s.OK(s.Node.MakeLink(context.Background(), linkPath, stack.Root+`\d`))
	for _, path := range []string{mountPath, linkPath, stack.Root} {
		s.Refused(codes.FailedPrecondition, "filesystem", "v2alpha1", "RmdirContents", fmt.Sprintf(`{"path":%q}`, path))
	}
	s.Holds(id+"file", "in the volume")
	s.Holds(stack.Root+`\d\file`, "in the folder")
	s.Must("filesystem", "v2alpha1", "RmdirContents", fmt.Sprintf(`{"path":%q}`, stack.Root+`\d`))
	mustHave(s, stack.Root+`\d`)
	// A working folder is never removed, whatever it is called.
	for _, name := range []string{`C:\k`, `c:\K\`, `\\?\C:\k`, `/k`} {
		for _, force := range []bool{true, false} {
			s.Refused(codes.FailedPrecondition, "filesystem", "v1", "Rmdir", fmt.Sprintf(`{"path":%q,"force":%t}`, name, force))
		}
	}
	s.Holds(mountPath+`\file`, "in the volume")
}

// C095: what a shell would take for commands is the name of a link and nothing else.
func TestC095_NamesAreLiteral(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Canaries()
	outside := s.Outside()
	names := []string{`a&calc`, `b %PATH%`, "c`calc`", `d$(calc)`, `e;calc`, `f'calc'`, `g^calc`, `h!calc!`, `i,calc`, `j=calc`, `k(calc)`, `l{calc}`, `m@calc`, `n#calc`, `o~1`, `p calc`, `-q`, `ünïcödé`}
	for i, name := range names {
		source, link := stack.Root+`\`+name, fmt.Sprintf(`%s\%d %s`, stack.Root, i, name)
		s.Must("filesystem", "v1", "Mkdir", fmt.Sprintf(`{"path":"%s"}`, stack.Quoted(source)))
		if !s.Has(stack.Root, name) {
			t.Errorf("Mkdir has not made a folder %q but %q", name, s.Names(stack.Root))
		}
		calls := s.Calls(func() {
			s.Must("filesystem", "v1beta1", "LinkPath", fmt.Sprintf(`{"source_path":"%s","target_path":"%s"}`, stack.Quoted(source), stack.Quoted(link)))
		})
		if n := countPrefix(calls, fmt.Sprintf("win32.CreateSymlink %d %s", i, name)); n != 1 {
			t.Errorf("%d calls made the link %q: %q", n, link, calls)
		}
		s.WriteFile(source+`\file`, name)
		s.Holds(link+`\file`, name)
	}
	s.Refused(codes.InvalidArgument, "filesystem", "v1beta1", "LinkPath", `{"source_path":"C:\\outside","target_path":"C:\\k\\out"}`)
	if s.Has(stack.Root, "out") || s.Outside() != outside {
		t.Error("a link that leads outside was made, or something changed there")
	}
	stack.NoChildren(t)
}

// C029: a short name is its long name, in a path and on the way to a working folder.
func TestC029_ShortNamesOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t, func(cfg *stack.Config) {
		cfg.Policy = agent.Policy{Roots: []string{`C:\variable-root\lib\kubelet`}, Logger: cfg.Policy.Logger}
	})
	s.MakeDir(`C:\variable-root\lib\kubelet`)
	s.Must("filesystem", "v1", "Mkdir", `{"path":"C:\\VARIAB~1\\lib\\kubelet\\x"}`)
	mustHave(s, `C:\variable-root\lib\kubelet`, "x")
	s.MakeDir(`C:\variable-other\lib\kubelet`) // its short name ends with ~2
	s.Refused(codes.InvalidArgument, "filesystem", "v1", "Mkdir", `{"path":"C:\\VARIAB~2\\lib\\kubelet\\x"}`)
	s.Refused(codes.InvalidArgument, "filesystem", "v1", "Mkdir", `{"path":"C:\\VARIAB~9\\lib\\kubelet\\x"}`)
	s.Must("filesystem", "v1", "Mkdir", `{"path":"C:\\variable-root\\lib\\kubelet\\plain~1"}`)
	mustHave(s, `C:\variable-root\lib\kubelet`, "plain~1", "x")
	mustHave(s, `C:\variable-other\lib\kubelet`)
}

// Mkdir of what is there already: a folder and a live link to one are success, a
// file and a dangling link are in the way.
func TestMkdirOfWhatIsThere(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.MakeDir(stack.Root + `\folder`)
	s.WriteFile(stack.Root+`\file`, "x")
	s.Mounted(stack.Root + `\mount`)
	s.OK(s.Node.MakeLink(context.Background(), stack.Root+`\live`, stack.Root+`\folder`))
	s.OK(s.Node.MakeLink(context.Background(), stack.Root+`\dead`, stack.Root+`\nothing`))
	s.OK(s.Node.MakeLink(context.Background(), stack.Root+`\tofile`, stack.Root+`\file`))
	for name, want := range map[string]codes.Code{
		`folder`: codes.OK, `mount`: codes.OK, `live`: codes.OK, `new\deep\er`: codes.OK, `mount\new`: codes.OK,
		`file`: codes.AlreadyExists, `dead`: codes.AlreadyExists, `tofile`: codes.AlreadyExists, `file\below`: codes.AlreadyExists,
	} {
		for _, version := range []string{"v1alpha1", "v1"} {
			if _, err := s.Call("filesystem", version, "Mkdir", fmt.Sprintf(`{"path":%q}`, stack.Root+`\`+name)); status.Code(err) != want {
				t.Errorf("%s: Mkdir(%s): %v, want %v", version, name, err, want)
			}
		}
	}
}

// An error of the node becomes the code of its kind and never Unknown.
func TestNodeErrorsBecomeCodes(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	for code, want := range map[uint32]codes.Code{
		5: codes.PermissionDenied, 1314: codes.PermissionDenied, 112: codes.ResourceExhausted, 8: codes.ResourceExhausted, 1450: codes.ResourceExhausted,
		1117: codes.Internal, 21: codes.Unavailable,
	} {
		s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "win32.OpenAt", Object: "new", Count: -1, Win32: code}))
		text := s.Refused(want, "filesystem", "v1", "Mkdir", `{"path":"C:\\k\\new"}`)
		if !strings.Contains(text, fmt.Sprint(code)) || !strings.HasPrefix(text, `Mkdir C:\k\new: `) {
			t.Errorf("%q does not say what failed with Windows error %d", text, code)
		}
		s.OK(s.Node.ClearFaults(context.Background()))
	}
}
