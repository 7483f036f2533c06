package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// change is an operation below `C:\k\a\b` that a swap of a parent could lead astray.
type change struct {
	group, version, method, request string
}

// changes are the operations that change what is at a path.
func changes(volume string) []change {
	return []change{
		{"filesystem", "v1", "Mkdir", `{"path":"C:\\k\\a\\b\\new"}`},
		{"filesystem", "v1beta1", "Mkdir", `{"path":"C:\\k\\a\\b\\deep\\er\\new"}`},
		{"filesystem", "v1", "Rmdir", `{"path":"C:\\k\\a\\b\\empty"}`},
		{"filesystem", "v1alpha1", "Rmdir", `{"path":"C:\\k\\a\\b\\tree","force":true}`},
		{"filesystem", "v2alpha1", "RmdirContents", `{"path":"C:\\k\\a\\b\\tree"}`},
		{"filesystem", "v1beta1", "LinkPath", `{"source_path":"C:\\k\\source","target_path":"C:\\k\\a\\b\\link"}`},
		{"filesystem", "v1", "CreateSymlink", `{"source_path":"C:\\k\\a\\b\\tree","target_path":"C:\\k\\link"}`},
		{"volume", "v1", "MountVolume", fmt.Sprintf(`{"volume_id":%q,"target_path":"C:\\k\\a\\b\\mount"}`, volume)},
		{"volume", "v1beta1", "MountVolume", fmt.Sprintf(`{"volume_id":%q,"path":"C:\\k\\a\\b\\empty"}`, volume)},
		{"volume", "v1", "UnmountVolume", fmt.Sprintf(`{"volume_id":%q,"target_path":"C:\\k\\a\\b\\mount"}`, volume)},
		{"smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, `C:\k\a\b\share`, "u", "pw")},
	}
}

// twin makes the same tree inside and outside the working folder, so that a call that
// is led astray finds what it looks for.
func twin(s *stack.Stack, folder string) {
	s.Helper()
	s.MakeDir(folder + `\b\empty`)
	s.WriteFile(folder+`\b\tree\sub\file`, "inside or outside")
}

// Invariant 3 and C096: at every single call the operation makes, a folder on its path
// is swapped for a link to a tree of the same form outside. Nothing there changes.
func TestC096_Invariant3_SwapAtEveryCall(t *testing.T) {
	t.Parallel()
	for i, c := range changes("") {
		t.Run(fmt.Sprint(i, c.method), func(t *testing.T) {
			t.Parallel()
			swapAtEveryCall(t, i)
		})
	}
}

// swaps are the folders on the way, and what each is swapped for.
var swaps = [...]struct{ folder, target string }{
	{`C:\k\a`, `C:\outside\a`}, {`C:\k\a\b`, `C:\outside\a\b`},
}

func swapAtEveryCall(t *testing.T, i int) {
	s := stack.New(t)
	s.Share("u", "pw")
	s.Canaries()
	s.MakeDir(`C:\k\source`)
	twin(s, `C:\outside\a`)
	_, id := s.Formatted(64 * stack.MiB)
	c := changes(id)[i]
	outside := s.Outside()
	prepare := func() {
		s.OK(s.Agent.Rmdir(context.Background(), `C:\k\a`, true))
		s.OK(s.Agent.Rmdir(context.Background(), `C:\k\link`, false))
		twin(s, `C:\k\a`)
	}
	prepare()
	calls := s.Calls(func() { s.Must(c.group, c.version, c.method, c.request) })
	prepare()
	for nth := range calls {
		swap, moved := swaps[nth%len(swaps)], ""
		s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "*", Nth: nth + 1, Hook: func() {
			var err error
			if moved, err = s.Node.SwapForLink(context.Background(), swap.folder, swap.target); err != nil {
				t.Error(err)
			}
		}}))
		_, err := s.Call(c.group, c.version, c.method, c.request)
		s.OK(s.Node.ClearFaults(context.Background()))
		if now := s.Outside(); now != outside {
			t.Fatalf("swapped before call %d of %d (%s), the answer was %v; outside there was\n%s\nand is\n%s", nth+1, len(calls), calls[nth], err, outside, now)
		}
		for _, path := range s.MountPaths(id) {
			if !strings.HasPrefix(path, stack.Root+`\`) {
				t.Fatalf("swapped before call %d (%s), the volume is mounted at %s", nth+1, calls[nth], path)
			}
		}
		if moved != "" { // what was swapped away goes on under another name
			s.OK(s.Agent.Rmdir(context.Background(), parentOf(swap.folder)+`\`+moved, true))
		}
		prepare()
	}
}

func parentOf(path string) string { return path[:strings.LastIndexByte(path, '\\')] }
