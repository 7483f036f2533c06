package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/test/upstream"
)

// iscsiVersions are all versions of the iscsi group.
func iscsiVersions() []string { return []string{"v1alpha1", "v1alpha2"} }

// A request without a portal is refused; in csi-proxy it ends the process. The server
// goes on, in every method of both versions.
func TestNilPortal(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	targets(s)
	methods := 0
	eachCase("AddTargetPortal DiscoverTargetPortal RemoveTargetPortal ConnectTarget DisconnectTarget GetTargetDisks", func(c upstream.Case) {
		methods++
		for _, request := range []string{`{}`, `{"target_portal":{}}`, `{"target_portal":{"target_port":3260}}`} {
			s.Refused(codes.InvalidArgument, c.Group, c.Version, c.Method, request)
		}
		s.Must("iscsi", c.Version, "ListTargetPortals", `{}`)
	})
	if methods != 12 {
		t.Errorf("%d methods were looked at", methods)
	}
}

// Port 0 is 3260. A port beyond 16 bits is refused: cut, 68796 would be 3260 too.
func TestPortsAreNeverCut(t *testing.T) {
	t.Parallel()
	for _, version := range iscsiVersions() {
		s := stack.New(t)
		targets(s)
		s.OK(s.Node.SetISCSITarget(context.Background(), sim.ISCSITarget{IQN: otherIQN, Portals: []string{"10.0.0.1:3260"}}))
		for _, port := range []uint32{65536, 65536 + 3260, 65536 + 3261, 4294967295} {
			s.Refused(codes.InvalidArgument, "iscsi", version, "AddTargetPortal", fmt.Sprintf(`{"target_portal":{"target_address":"10.0.0.1","target_port":%d}}`, port))
		}
		s.Must("iscsi", version, "AddTargetPortal", `{"target_portal":{"target_address":"10.0.0.1"}}`)
		portals(s, "10.0.0.1:3260")()
		s.Must("iscsi", version, "RemoveTargetPortal", `{"target_portal":{"target_address":"10.0.0.1","target_port":3260}}`)
		portals(s)()
	}
}

// connect is the request to log in to the target of the table.
func connect(auth, user, secret string) string {
	return fmt.Sprintf(`{"target_portal":{"target_address":"10.0.0.1","target_port":3261},"iqn":%q,"auth_type":%s,"chap_username":%q,"chap_secret":%q}`, tableIQN, auth, user, secret)
}

// C049: the rules of CHAP, refused before the node is asked anything; a repeat of
// every call is success; no secret is in any log.
func TestC049_ISCSIOverTheWire(t *testing.T) {
	t.Parallel()
	for _, version := range iscsiVersions() {
		s := stack.New(t)
		knownPortal(s)
		for _, bad := range []string{
			connect(`"NONE"`, "u", tableSecret), connect(`"ONE_WAY_CHAP"`, "u", ""), connect(`"MUTUAL_CHAP"`, "u", ""), connect(`3`, "u", tableSecret), connect(`-1`, "u", tableSecret),
			connect(`"ONE_WAY_CHAP"`, "u", "SECRET-11xx"), connect(`"ONE_WAY_CHAP"`, "u", "SECRET-17xxxxxxxx"), connect(`"MUTUAL_CHAP"`, "u", "SECRET-11xx"),
		} {
			calls := s.Calls(func() {
				if text := s.Refused(codes.InvalidArgument, "iscsi", version, "ConnectTarget", bad); strings.Contains(text, "SECRET") {
					t.Errorf("a secret is in %q", text)
				}
			})
			if len(calls) > 0 {
				t.Errorf("%s: the node was asked %q", bad, calls)
			}
		}
		for secret, want := range map[string]codes.Code{
			"": codes.InvalidArgument, "SECRET-11xx": codes.InvalidArgument, "SECRET-17xxxxxxxx": codes.InvalidArgument,
			"SECRET-12xxx": codes.OK, "SECRET-16xxxxxxx": codes.OK,
		} {
			if _, err := s.Call("iscsi", "v1alpha2", "SetMutualChapSecret", fmt.Sprintf(`{"MutualChapSecret":%q}`, secret)); status.Code(err) != want {
				t.Errorf("a mutual secret of %d bytes: %v, want %v", len(secret), err, want)
			}
		}
		s.Restart() // forgets that a secret was set
		mutual := connect(`"MUTUAL_CHAP"`, "u", tableSecret)
		s.Refused(codes.FailedPrecondition, "iscsi", version, "ConnectTarget", mutual)
		s.Must("iscsi", "v1alpha2", "SetMutualChapSecret", fmt.Sprintf(`{"MutualChapSecret":%q}`, tableSecret))
		s.Refused(codes.Unauthenticated, "iscsi", version, "ConnectTarget", connect(`"MUTUAL_CHAP"`, "u", "SECRET-wrong"))
		for range 2 {
			s.Must("iscsi", version, "ConnectTarget", mutual)
			mustHaveSessions(s, tableIQN)
		}
		for range 2 {
			s.Must("iscsi", version, "DisconnectTarget", mutualTarget())
			mustHaveSessions(s)
		}
		if log := s.Log.String(); strings.Contains(log, "SECRET") || strings.Contains(log, tableSecret) {
			t.Error("a secret is in the log")
		}
	}
}

func mutualTarget() string {
	return fmt.Sprintf(`{"target_portal":{"target_address":"10.0.0.1","target_port":3261},"iqn":%q}`, tableIQN)
}

// C050: each volume has its own credentials, two with different secrets connect
// through one portal, and a wrong secret is told from a lost connection.
func TestC050_CredentialsOfEachTarget(t *testing.T) {
	t.Parallel()
	const first, second = "iqn.2026-01.io.example:one", "iqn.2026-01.io.example:two"
	s := stack.New(t)
	knownPortal(s)
	for iqn, secret := range map[string]string{first: "first-secret", second: "second-secret"} {
		s.OK(s.Node.SetISCSITarget(context.Background(), sim.ISCSITarget{IQN: iqn, Portals: []string{tablePortal}, ChapUser: iqn, ChapSecret: secret,
			LUNs: []sim.DiskSpec{{Image: s.TempDir() + "/unit", SizeBytes: 8 * stack.MiB}}}))
	}
	s.Must("iscsi", "v1alpha1", "DiscoverTargetPortal", `{"target_portal":{"target_address":"10.0.0.1","target_port":3261}}`)
	login := func(iqn, secret string) (string, error) {
		return s.Call("iscsi", "v1alpha1", "ConnectTarget", fmt.Sprintf(`{"target_portal":{"target_address":"10.0.0.1","target_port":3261},"iqn":%q,"auth_type":"ONE_WAY_CHAP","chap_username":%q,"chap_secret":%q}`, iqn, iqn, secret))
	}
	for _, wrong := range [][2]string{{first, "second-secret"}, {second, "first-secret"}, {first, "other-secret"}} {
		if _, err := login(wrong[0], wrong[1]); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s with the wrong secret: %v", wrong[0], err)
		}
	}
	mustHaveSessions(s)
	for _, right := range [][2]string{{first, "first-secret"}, {second, "second-secret"}} {
		_, err := login(right[0], right[1])
		s.OK(err)
	}
	mustHaveSessions(s, first, second)
	s.OK(s.Node.SetISCSITarget(context.Background(), sim.ISCSITarget{IQN: otherIQN, Portals: []string{tablePortal}, Unreachable: true}))
	s.Refused(codes.Unavailable, "iscsi", "v1alpha1", "ConnectTarget", fmt.Sprintf(`{"target_portal":{"target_address":"10.0.0.1","target_port":3261},"iqn":%q}`, otherIQN))
}

// C052: a login does not come back after a restart of the node, and an old one that
// would is removed with its entry.
func TestC052_LoginsEndWithTheNode(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	knownPortal(s)
	s.Must("iscsi", "v1alpha2", "SetMutualChapSecret", fmt.Sprintf(`{"MutualChapSecret":%q}`, tableSecret))
	s.Must("iscsi", "v1alpha1", "ConnectTarget", connect(`"MUTUAL_CHAP"`, "u", tableSecret))
	mustHaveSessions(s, tableIQN)
	s.OK(s.Node.Reboot(context.Background()))
	s.Restart()
	mustHaveSessions(s)
	s.Must("iscsi", "v1alpha1", "ConnectTarget", connect(`"MUTUAL_CHAP"`, "u", tableSecret))
	mustHaveSessions(s, tableIQN)
}
