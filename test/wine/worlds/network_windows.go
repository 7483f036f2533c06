package worlds

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

// The targets, the portal and the secret of the table of package upstream.
const (
	tableIQN    = "iqn.2026-01.io.example:a"
	otherIQN    = "iqn.2026-01.io.example:b"
	tableSecret = "0123456789ab"
	initiator   = "MSiSCSI"
)

var tablePortal = host.TargetPortal{Address: "10.0.0.1", Port: 3261}

func filesystemWorlds() map[string]func(*node) world {
	return map[string]func(*node) world{
		"PathExists": func(n *node) world {
			n.write(objectPath, "x")
			return world{check: nothing}
		},
		"Mkdir": func(n *node) world { return world{check: func() { n.has(root, "x") }} },
		"Rmdir": func(n *node) world {
			n.ok(n.Control.MakeDir(n.Context(), objectPath))
			return world{check: func() { n.has(root) }}
		},
		"Rmdir with force": func(n *node) world {
			n.write(objectPath+`\deep\file`, "x")
			return world{check: func() { n.has(root) }}
		},
		"RmdirContents": func(n *node) world {
			n.write(objectPath+`\deep\file`, "x")
			return world{check: func() { n.has(root, "x"); n.has(objectPath) }}
		},
		"CreateSymlink": func(n *node) world {
			n.write(objectPath+`\file`, "behind the link")
			return world{check: func() { n.holds(linkPath+`\file`, "behind the link") }}
		},
		"IsSymlink": func(n *node) world {
			n.ok(n.Control.MakeDir(n.Context(), root+`\real`))
			n.ok(n.Control.MakeLink(n.Context(), objectPath, root+`\real`))
			return world{check: func() { n.has(root, "real", "x") }}
		},
	}
}

func networkWorlds() map[string]func(*node) world {
	return map[string]func(*node) world{
		"NewSmbGlobalMapping": func(n *node) world {
			share(n, `dom\u`, `p'w"d`)
			return world{check: func() {
				mapped(n, `\\srv\share`)
				n.holds(linkPath+`\file`, "on the share")
			}}
		},
		"RemoveSmbGlobalMapping": func(n *node) world {
			share(n, "u", "pw")
			n.ok(n.Client.NewSmbGlobalMapping(n.Context(), `\\srv\share`, "", "u", "pw"))
			return world{check: func() { mapped(n) }}
		},
		"AddTargetPortal":      func(n *node) world { return world{targets(n), func() { n.portals(tablePortal) }} },
		"DiscoverTargetPortal": func(n *node) world { return world{knownPortal(n), func() { n.portals(tablePortal) }} },
		"RemoveTargetPortal":   func(n *node) world { return world{knownPortal(n), func() { n.portals() }} },
		"ListTargetPortals":    listedPortals,
		"ConnectTarget": func(n *node) world {
			words := knownPortal(n)
			n.ok(n.Client.SetMutualChapSecret(n.Context(), tableSecret))
			return world{words, func() { n.connectedTargets(tableIQN) }}
		},
		"DisconnectTarget": func(n *node) world { return world{connected(n), func() { n.connectedTargets() }} },
		"GetTargetDisks": func(n *node) world {
			n.attach(sim.DiskSpec{}) // so that the numbers are not those of the units
			return world{append(connected(n), `["0","319"]`, `["2","3"]`), func() { n.connectedTargets(tableIQN) }}
		},
		"SetMutualChapSecret": func(n *node) world {
			words := knownPortal(n)
			return world{words, func() { // the target accepts the initiator's secret now
				n.ok(n.Client.ConnectTarget(n.Context(), tablePortal, tableIQN, mutual()))
			}}
		},
	}
}

// share puts a file server with one share and a file on the network.
func share(n *node, user, password string) {
	n.Helper()
	folder := n.newFolder()
	n.ok(os.Mkdir(filepath.Join(folder, "d"), 0o755))
	n.ok(os.WriteFile(filepath.Join(folder, "d", "file"), []byte("on the share"), 0o644))
	n.ok(n.Control.SetSMBServer(n.Context(), sim.SMBServer{Name: "srv", Users: map[string]string{user: password},
		Shares: []sim.SMBShare{{Name: "share", Folder: n.NodePath(folder)}}}))
}

// mapped fails the test unless just these shares are mapped.
func mapped(n *node, want ...string) {
	n.Helper()
	list, err := n.Client.ListSmbGlobalMappings(n.Context())
	n.ok(err)
	have := []string{}
	for _, m := range list {
		have = append(have, m.RemotePath)
	}
	if !slices.Equal(have, want) {
		n.Errorf("%q are mapped, want %q", have, want)
	}
}

func mutual() host.ConnectOptions {
	return host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapUsername: "u", ChapSecret: tableSecret}
}

// targets puts two targets on the network, the first with mutual CHAP and two units.
func targets(n *node) (words []string) {
	n.Helper()
	unit := func() sim.DiskSpec {
		return sim.DiskSpec{Image: n.NodePath(filepath.Join(n.newFolder(), "unit")), SizeBytes: 64 << 20}
	}
	portals := []string{"10.0.0.1:3261"}
	n.Services.SetInitiator(n.T, true)
	n.ok(n.Control.SetISCSITarget(n.Context(), sim.ISCSITarget{IQN: tableIQN, Portals: portals, LUNs: []sim.DiskSpec{unit(), unit()},
		ChapUser: "u", ChapSecret: tableSecret, MutualSecret: tableSecret}))
	n.ok(n.Control.SetISCSITarget(n.Context(), sim.ISCSITarget{IQN: otherIQN, Portals: portals, LUNs: []sim.DiskSpec{unit()}}))
	return []string{"iqn.x", tableIQN}
}

// knownPortal is targets with the portal known to the initiator.
func knownPortal(n *node) (words []string) {
	n.Helper()
	words = targets(n)
	n.ok(n.Client.AddTargetPortal(n.Context(), tablePortal))
	return words
}

// connected is knownPortal with a session to the first target.
func connected(n *node) (words []string) {
	n.Helper()
	words = knownPortal(n)
	n.ok(n.Client.SetMutualChapSecret(n.Context(), tableSecret))
	n.ok(n.Client.ConnectTarget(n.Context(), tablePortal, tableIQN, mutual()))
	return words
}

// listedPortals knows the two portals the table lists, whose ports are standard.
func listedPortals(n *node) world {
	targets(n)
	n.ok(n.Control.SetISCSITarget(n.Context(), sim.ISCSITarget{IQN: otherIQN, Portals: []string{"10.0.0.1:3260", "[fe80::1]:3260"}}))
	for _, address := range []string{"10.0.0.1", "fe80::1"} {
		n.ok(n.Client.AddTargetPortal(n.Context(), host.TargetPortal{Address: address}))
	}
	return world{[]string{`"fe80::1"`, `"fe80::1","target_port":3260`}, nothing}
}

func systemWorlds() map[string]func(*node) world {
	return map[string]func(*node) world{
		"GetBIOSSerialNumber": func(*node) world { return world{[]string{"VMware-56 4d", "SIM-0000-0001"}, nothing} },
		"StartService":        func(n *node) world { return world{check: func() { n.inState(initiator, running) }} },
		"StopService": func(n *node) world {
			n.Services.SetInitiator(n.T, true)
			needs := n.Services.AddDependent(n.T)
			return world{check: func() { n.inState(initiator, stopped); n.inState(needs, stopped) }}
		},
		"GetService": func(n *node) world { return world{n.Services.AddDescribed(n.T), nothing} },
	}
}
