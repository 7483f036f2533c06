package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// The target, portal and secret of the upstream table; its name there is no iSCSI
// name, so the cases get a real one.
const (
	tableIQN    = "iqn.2026-01.io.example:a"
	otherIQN    = "iqn.2026-01.io.example:b"
	tablePortal = "10.0.0.1:3261"
	tableSecret = "0123456789ab"
)

func networkWorlds() map[string]func(*stack.Stack) world {
	return map[string]func(*stack.Stack) world{
		"NewSmbGlobalMapping": func(s *stack.Stack) world {
			folder := s.Share(`dom\u`, `p'w"d`)
			s.RealFile("on the share", folder, "d", "file")
			return world{check: func() {
				if m := s.Mappings(); !slices.Equal(m, []string{`\\srv\share`}) {
					s.Errorf("mappings are %q", m)
				}
				s.Holds(linkPath+`\file`, "on the share")
			}}
		},
		"RemoveSmbGlobalMapping": func(s *stack.Stack) world {
			s.Share("u", "pw")
			s.OK(s.Agent.NewSmbGlobalMapping(context.Background(), `\\srv\share`, "", "u", "pw"))
			return world{check: func() {
				if m := s.Mappings(); len(m) != 0 {
					s.Errorf("mappings are %q", m)
				}
			}}
		},
		"AddTargetPortal":      func(s *stack.Stack) world { return world{targets(s), portals(s, tablePortal)} },
		"DiscoverTargetPortal": func(s *stack.Stack) world { return world{knownPortal(s), portals(s, tablePortal)} },
		"RemoveTargetPortal":   func(s *stack.Stack) world { return world{knownPortal(s), portals(s)} },
		"ListTargetPortals":    listedPortals,
		"ConnectTarget": func(s *stack.Stack) world {
			words := knownPortal(s)
			s.OK(s.Agent.SetMutualChapSecret(context.Background(), tableSecret))
			return world{words, func() { mustHaveSessions(s, tableIQN) }}
		},
		"DisconnectTarget": func(s *stack.Stack) world {
			return world{connected(s), func() { mustHaveSessions(s) }}
		},
		"GetTargetDisks": func(s *stack.Stack) world {
			s.Attach(sim.DiskSpec{}) // so that the numbers are not those of the units
			return world{append(connected(s), `["0","319"]`, `["2","3"]`), func() { mustHaveSessions(s, tableIQN) }}
		},
		"SetMutualChapSecret": func(s *stack.Stack) world {
			words := knownPortal(s)
			return world{words, func() {
				// The target accepts the initiator's secret now.
				s.OK(s.OS.Connect(context.Background(), portalOf(), tableIQN, mutual()))
			}}
		},
	}
}

func portalOf() host.TargetPortal { return host.TargetPortal{Address: "10.0.0.1", Port: 3261} }

func mutual() host.ConnectOptions {
	return host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapUsername: "u", ChapSecret: tableSecret}
}

// targets puts two targets on the network, the first with mutual CHAP and two units.
func targets(s *stack.Stack) (words []string) {
	s.Helper()
	ctx := context.Background()
	s.OK(s.Node.SetService(ctx, sim.Service{Name: "MSiSCSI", DisplayName: "Microsoft iSCSI Initiator Service", StartType: 2, State: 4}))
	unit := func() sim.DiskSpec {
		return sim.DiskSpec{Image: s.TempDir() + "/unit", SizeBytes: 64 * stack.MiB}
	}
	s.OK(s.Node.SetISCSITarget(ctx, sim.ISCSITarget{
		IQN: tableIQN, Portals: []string{tablePortal}, LUNs: []sim.DiskSpec{unit(), unit()},
		ChapUser: "u", ChapSecret: tableSecret, MutualSecret: tableSecret,
	}))
	s.OK(s.Node.SetISCSITarget(ctx, sim.ISCSITarget{IQN: otherIQN, Portals: []string{tablePortal}, LUNs: []sim.DiskSpec{unit()}}))
	return []string{"iqn.x", tableIQN}
}

// knownPortal is targets with the portal known to the initiator.
func knownPortal(s *stack.Stack) (words []string) {
	s.Helper()
	words = targets(s)
	s.OK(s.OS.AddTargetPortal(context.Background(), portalOf()))
	return words
}

// connected is knownPortal with a session to the first target.
func connected(s *stack.Stack) (words []string) {
	s.Helper()
	words = knownPortal(s)
	s.OK(s.OS.SetInitiatorSecret(context.Background(), tableSecret))
	s.OK(s.OS.Connect(context.Background(), portalOf(), tableIQN, mutual()))
	mustHaveSessions(s, tableIQN)
	return words
}

// portals returns a check that the initiator knows just these portals.
func portals(s *stack.Stack, want ...string) func() {
	return func() {
		s.Helper()
		known := []string{}
		for _, p := range s.Query(cim.NamespaceStorage, "SELECT * FROM MSFT_iSCSITargetPortal") {
			known = append(known, fmt.Sprint(p.Props["TargetPortalAddress"], ":", p.Props["TargetPortalPortNumber"]))
		}
		if slices.Sort(known); !slices.Equal(known, want) {
			s.Errorf("the initiator knows %q, want %q", known, want)
		}
	}
}

// listedPortals knows the two portals the table lists, whose ports are standard.
func listedPortals(s *stack.Stack) world {
	targets(s)
	ctx := context.Background()
	for _, address := range []string{"10.0.0.1", "fe80::1"} {
		s.OK(s.Node.SetISCSITarget(ctx, sim.ISCSITarget{IQN: otherIQN, Portals: []string{hostPort(address)}}))
		s.OK(s.OS.AddTargetPortal(ctx, host.TargetPortal{Address: address, Port: host.DefaultISCSIPort}))
	}
	return world{[]string{`"fe80::1"`, `"fe80::1","target_port":3260`}, func() {}}
}

func hostPort(address string) string {
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	return address + ":3260"
}

// mustHaveSessions fails the test unless the initiator has one session for each
// of these targets, and no other.
func mustHaveSessions(s *stack.Stack, iqns ...string) {
	s.Helper()
	have := []string{}
	for _, session := range s.Query(cim.NamespaceStorage, "SELECT * FROM MSFT_iSCSISession") {
		have = append(have, fmt.Sprint(session.Props["TargetNodeAddress"]))
	}
	if slices.Sort(have); !slices.Equal(have, iqns) {
		s.Errorf("sessions with %q, want %q", have, iqns)
	}
}
