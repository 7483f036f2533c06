package winos_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
)

const (
	share  = `\\srv\share`
	secret = "p$ss'\\\":,; é"
)

func newShare(t *testing.T, node *sim.Node, server sim.SMBServer) {
	t.Helper()
	server.Name = "srv"
	server.Users = map[string]string{`DOM\user`: secret, "other": "x"}
	server.Shares = []sim.SMBShare{{Name: "share", Folder: t.TempDir()}}
	must(t, node.SetSMBServer(t.Context(), server))
}

func TestSMBMapping(t *testing.T) {
	t.Parallel()
	for _, asReturnValue := range []bool{false, true} {
		t.Run(fmt.Sprintf("errors as return values %v", asReturnValue), func(t *testing.T) {
			t.Parallel()
			node, os := newNode(t, sim.Config{SMBErrorsAsReturnValue: asReturnValue})
			newShare(t, node, sim.SMBServer{})
			request := agent.SMBRequest{Share: share, Username: `DOM\user`, Password: secret, RequirePrivacy: true}
			isTrue(t, os.ProbeRemote(t.Context(), share) != nil, "an unmapped share can be reached")
			must(t, os.CreateSMBMapping(t.Context(), request))
			must(t, os.ProbeRemote(t.Context(), share))
			mappings, err := os.SMBMappings(t.Context())
			want := []host.SmbMapping{{RemotePath: share, RequirePrivacy: true, Status: host.MappingOK}}
			isTrue(t, err == nil && slices.Equal(mappings, want), "mappings %+v, %v", mappings, err)

			request.Username, request.Password = "other", "x"
			wantKind(t, os.CreateSMBMapping(t.Context(), request), host.KindExists)
			must(t, os.RemoveSMBMapping(t.Context(), `\\SRV\share`))
			wantKind(t, os.RemoveSMBMapping(t.Context(), share), host.KindNotFound)
		})
	}
}

// C052 has the same rule for iSCSI: nothing we make comes back by itself.
func TestC032_MappingIsNotPersistent(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	newShare(t, node, sim.SMBServer{})
	must(t, os.CreateSMBMapping(t.Context(), agent.SMBRequest{Share: share, Username: `DOM\user`, Password: secret}))
	must(t, node.Reboot(t.Context()))
	mappings, err := os.SMBMappings(t.Context())
	isTrue(t, err == nil && len(mappings) == 0, "mappings after a restart %+v, %v", mappings, err)
}

func TestSMBRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		server  sim.SMBServer
		request agent.SMBRequest
		want    host.Kind
		hint    string
	}{
		{"C040 wrong password", sim.SMBServer{}, agent.SMBRequest{Share: share, Username: `DOM\user`, Password: "hunter2hunter2"}, host.KindUnauthenticated, "domain"},
		{"C040 user without domain", sim.SMBServer{}, agent.SMBRequest{Share: share, Username: "user", Password: secret}, host.KindUnauthenticated, "domain"},
		{"password expired", sim.SMBServer{WrongPasswordError: 1330}, agent.SMBRequest{Share: share, Username: "other", Password: "hunter2hunter2"}, host.KindUnauthenticated, ""},
		{"no such share", sim.SMBServer{}, agent.SMBRequest{Share: `\\srv\none`, Username: "other", Password: "x"}, host.KindNotFound, ""},
		{"no such server", sim.SMBServer{}, agent.SMBRequest{Share: `\\none\share`, Username: "other", Password: "x"}, host.KindUnavailable, ""},
		{"port filtered", sim.SMBServer{Failure: 121}, agent.SMBRequest{Share: share, Username: "other", Password: "x"}, host.KindUnavailable, ""},
		{"C044 no encryption", sim.SMBServer{NoEncryption: true}, agent.SMBRequest{Share: share, Username: "other", Password: "x", RequirePrivacy: true}, host.KindPrecondition, "-require-privacy"},
		{"malformed path", sim.SMBServer{}, agent.SMBRequest{Share: share + `\`, Username: "other", Password: "x"}, host.KindInvalid, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node, os := newNode(t, sim.Config{})
			newShare(t, node, tt.server)
			err := os.CreateSMBMapping(t.Context(), tt.request)
			wantKind(t, err, tt.want)
			isTrue(t, strings.Contains(err.Error(), tt.hint) && !strings.Contains(err.Error(), "hunter2"), "error %v", err)
		})
	}
}

func TestC036_MappingsRunOut(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{SMBMappingLimit: 1})
	newShare(t, node, sim.SMBServer{})
	request := agent.SMBRequest{Share: share, Username: "other", Password: "x"}
	must(t, os.CreateSMBMapping(t.Context(), request))
	wantKind(t, os.CreateSMBMapping(t.Context(), request), host.KindExhausted)
}

// The text of the provider may repeat what it was given.
func TestC039_SecretsStayOutOfErrors(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	newShare(t, node, sim.SMBServer{})
	addFault(t, node, sim.Fault{Call: "cim.Exec MSFT_SmbGlobalMapping.Create", CIM: cimText("cannot use user:hunter2hunter2")})
	err := os.CreateSMBMapping(t.Context(), agent.SMBRequest{Share: share, Username: "user", Password: "hunter2hunter2"})
	isTrue(t, err != nil && !strings.Contains(err.Error(), "hunter2"), "error %v", err)
}

const iqn = "iqn.2026-01.test:disk"

var portal = host.TargetPortal{Address: "10.0.0.1", Port: 3260}

func newTarget(t *testing.T, node *sim.Node, target sim.ISCSITarget) {
	t.Helper()
	target.IQN, target.Portals = iqn, []string{"10.0.0.1:3260"}
	target.LUNs = []sim.DiskSpec{{Image: t.TempDir() + "/lun.img", SizeBytes: gib}}
	must(t, node.SetISCSITarget(t.Context(), target))
	must(t, node.SetService(t.Context(), sim.Service{Name: "MSiSCSI", StartType: 3, State: 4}))
}

func TestC049_ISCSI(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{ArrivalPolls: -1})
	newTarget(t, node, sim.ISCSITarget{})
	wantKind(t, os.RefreshTargetPortal(t.Context(), portal), host.KindNotFound)
	wantKind(t, os.RemoveTargetPortal(t.Context(), portal), host.KindNotFound)
	_, err := os.Targets(t.Context(), portal)
	wantKind(t, err, host.KindNotFound)
	must(t, os.AddTargetPortal(t.Context(), host.TargetPortal{Address: portal.Address})) // port 0 is the default
	wantKind(t, os.AddTargetPortal(t.Context(), portal), host.KindExists)
	must(t, os.RefreshTargetPortal(t.Context(), portal))
	portals, err := os.TargetPortals(t.Context())
	isTrue(t, err == nil && slices.Equal(portals, []host.TargetPortal{portal}), "portals %v, %v", portals, err)
	for _, through := range []host.TargetPortal{portal, {}} {
		iqns, err := os.Targets(t.Context(), through)
		isTrue(t, err == nil && slices.Equal(iqns, []string{iqn}), "targets through %v: %q, %v", through, iqns, err)
	}

	must(t, os.Connect(t.Context(), portal, iqn, host.ConnectOptions{}))
	wantKind(t, os.Connect(t.Context(), portal, iqn, host.ConnectOptions{}), host.KindExists)
	sessions, err := os.Sessions(t.Context())
	isTrue(t, err == nil && len(sessions) == 1 && sessions[0].IQN == iqn && !sessions[0].Persistent &&
		slices.Equal(sessions[0].Portals, []host.TargetPortal{portal}), "sessions %+v, %v", sessions, err)
	disks, err := os.SessionDisks(t.Context(), sessions[0].ID)
	isTrue(t, err == nil && len(disks) == 1, "disks %v, %v", disks, err)
	disk, err := os.Disk(t.Context(), disks[0])
	isTrue(t, err == nil && disk.BusType == "iSCSI" && disk.SizeBytes == gib, "disk %+v, %v", disk, err)

	must(t, os.Disconnect(t.Context(), sessions[0].ID))
	wantKind(t, os.Disconnect(t.Context(), sessions[0].ID), host.KindNotFound)
	wantKind(t, os.UnregisterSession(t.Context(), sessions[0].ID), host.KindNotFound)
	_, err = os.SessionDisks(t.Context(), sessions[0].ID)
	wantKind(t, err, host.KindNotFound)
	must(t, os.RemoveTargetPortal(t.Context(), portal))
}

func TestC052_LoginIsNotPersistent(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	newTarget(t, node, sim.ISCSITarget{})
	must(t, os.AddTargetPortal(t.Context(), portal))
	must(t, os.Connect(t.Context(), portal, iqn, host.ConnectOptions{}))
	must(t, node.Reboot(t.Context()))
	must(t, node.SetService(t.Context(), sim.Service{Name: "MSiSCSI", StartType: 3, State: 4}))
	sessions, err := os.Sessions(t.Context())
	isTrue(t, err == nil && len(sessions) == 0, "sessions after a restart %+v, %v", sessions, err)
}

func TestC052_LoginIsPersistentWhenAsked(t *testing.T) {
	t.Parallel()
	const good = "targetsecret"
	node, os := newNode(t, sim.Config{ServicePolls: -1})
	newTarget(t, node, sim.ISCSITarget{ChapUser: "u", ChapSecret: good})
	must(t, os.AddTargetPortal(t.Context(), portal))
	options := host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u", ChapSecret: good}
	wantKind(t, os.RegisterSession(t.Context(), "no such session", options), host.KindNotFound)
	check := func(when string, count int, persistent bool) {
		t.Helper()
		sessions, err := os.Sessions(t.Context())
		isTrue(t, err == nil && len(sessions) == count && (count == 0 || sessions[0].Persistent == persistent), "sessions %s %+v, %v", when, sessions, err)
		for _, session := range sessions {
			must(t, os.RegisterSession(t.Context(), session.ID, options))
			must(t, os.UnregisterSession(t.Context(), session.ID))
			must(t, os.RegisterSession(t.Context(), session.ID, options))
		}
	}
	restart := func() {
		must(t, node.Reboot(t.Context()))
		must(t, node.StartService(t.Context(), "MSiSCSI")) // who brings back what is persistent
	}
	must(t, os.Connect(t.Context(), portal, iqn, options))
	check("after a login", 1, false)
	restart()
	check("after a restart", 1, true)
	sessions, err := os.Sessions(t.Context())
	must(t, err)
	must(t, os.UnregisterSession(t.Context(), sessions[0].ID))
	must(t, os.Disconnect(t.Context(), sessions[0].ID))
	options.Persistent = true
	must(t, os.Connect(t.Context(), portal, iqn, options))
	restart()
	check("after a persistent login and a restart", 1, true)
}

func TestC050_CHAP(t *testing.T) {
	t.Parallel()
	const good, initiator = "targetsecret", "initiatorsecret"
	for _, tt := range []struct {
		name    string
		options host.ConnectOptions
		want    host.Kind
		ok      bool
	}{
		{"one way", host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u", ChapSecret: good}, 0, true},
		{"mutual", host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapUsername: "u", ChapSecret: good}, 0, true},
		{"wrong secret", host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u", ChapSecret: "wrongsecret1"}, host.KindUnauthenticated, false},
		{"none", host.ConnectOptions{}, host.KindUnauthenticated, false},
		{"unknown kind", host.ConnectOptions{AuthType: 9}, host.KindInvalid, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node, os := newNode(t, sim.Config{})
			newTarget(t, node, sim.ISCSITarget{ChapUser: "u", ChapSecret: good, MutualSecret: initiator})
			must(t, os.AddTargetPortal(t.Context(), portal))
			must(t, os.SetInitiatorSecret(t.Context(), initiator))
			err := os.Connect(t.Context(), portal, iqn, tt.options)
			if tt.ok {
				must(t, err)
				return
			}
			wantKind(t, err, tt.want)
			isTrue(t, !strings.Contains(err.Error(), "wrongsecret"), "error %v", err)
		})
	}
}

func TestISCSIRefusals(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{})
	wantKind(t, os.Connect(t.Context(), portal, iqn, host.ConnectOptions{}), host.KindPrecondition) // service stopped
	_, err := os.TargetPortals(t.Context())
	isTrue(t, err != nil && strings.Contains(err.Error(), "MSiSCSI"), "error %v does not name the service", err)
	wantKind(t, err, host.KindPrecondition)
	newTarget(t, node, sim.ISCSITarget{Unreachable: true})
	wantKind(t, os.AddTargetPortal(t.Context(), portal), host.KindUnavailable)
	wantKind(t, os.AddTargetPortal(t.Context(), host.TargetPortal{Address: "a", Port: 65536}), host.KindInvalid)
	wantKind(t, os.RemoveTargetPortal(t.Context(), host.TargetPortal{Address: "a", Port: 65536}), host.KindInvalid)
	wantKind(t, os.Connect(t.Context(), portal, "iqn.none", host.ConnectOptions{}), host.KindNotFound)
}

func TestSessionsInUse(t *testing.T) {
	t.Parallel()
	node, os := newNode(t, sim.Config{ArrivalPolls: -1})
	newTarget(t, node, sim.ISCSITarget{})
	must(t, os.AddTargetPortal(t.Context(), portal))
	must(t, os.Connect(t.Context(), portal, iqn, host.ConnectOptions{}))
	sessions, err := os.Sessions(t.Context())
	must(t, err)
	must(t, os.UnregisterSession(t.Context(), sessions[0].ID))
	addFault(t, node, sim.Fault{Call: "cim.Exec MSFT_iSCSITarget.Disconnect", ReturnValue: 0xEFFF0040})
	wantKind(t, os.Disconnect(t.Context(), sessions[0].ID), host.KindBusy)
	addFault(t, node, sim.Fault{Call: "cim.Exec MSFT_iSCSISession.SetCHAPSecret", ReturnValue: 0xAFFF0048})
	must(t, os.SetInitiatorSecret(t.Context(), "short")) // a warning: it took effect
}
