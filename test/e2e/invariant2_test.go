package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// Invariants 2 and 3, C027 and C096: while trees are removed by force, somebody swaps
// folders in them for links to elsewhere and mounts a volume in them. What lies
// elsewhere stays.
func TestC027_C096_Invariant2_NoDeleteFollowsALink(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Canaries()
	outside := s.Outside()
	_, id := s.Formatted(64 * stack.MiB)
	s.WriteFile(id+`d\file`, "in the volume")
	s.WriteFile(stack.Root+`\kept\d\file`, "in the root")
	versions := []string{"v1alpha1", "v1beta1", "v1beta2", "v1", "v2alpha1"}
	for round := range 8 {
		tree := fmt.Sprintf(`%s\tree%d`, stack.Root, round)
		for i := range 6 {
			s.WriteFile(fmt.Sprintf(`%s\%d\d\file`, tree, i), "goes")
		}
		s.MakeDir(tree + `\mount`)
		s.OK(s.Node.SetVolumeMountPoint(context.Background(), tree+`\mount\`, id))
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				target := []string{`C:\outside`, stack.Root + `\kept`, tree + `\mount`}[i%3]
				// Whether the attacker is in time does not matter.
				_, _ = s.Node.SwapForLink(context.Background(), fmt.Sprintf(`%s\%d`, tree, i), target)
			})
		}
		for _, version := range versions {
			all.Go(func() {
				_, err := s.Call("filesystem", version, "Rmdir", fmt.Sprintf(`{"path":%q,"force":true}`, tree))
				if code := status.Code(err); code == codes.Unknown || code == codes.Internal || code == codes.DeadlineExceeded {
					t.Errorf("%s: %v", version, err)
				}
			})
		}
		all.Wait()
		s.Must("filesystem", "v1", "Rmdir", fmt.Sprintf(`{"path":%q,"force":true}`, tree))
		mustBeMounted(s, id)
	}
	mustHave(s, stack.Root, "kept")
	s.Holds(stack.Root+`\kept\d\file`, "in the root")
	s.Holds(id+`d\file`, "in the volume")
	if now := s.Outside(); now != outside {
		t.Errorf("outside the working folder there was\n%s\nand is\n%s", outside, now)
	}
}
