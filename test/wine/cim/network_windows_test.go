package cim

import (
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const (
	share  = `\\srv\share`
	iqn    = "iqn.2026-01.io.example:a"
	secret = "0123456789ab"
)

type mappingRow struct {
	Path       string `cim:"__RELPATH"`
	RemotePath string `cim:"RemotePath"`
	Privacy    bool   `cim:"RequirePrivacy"`
	Status     uint32 `cim:"Status"`
}

var mappings = cim.NewTable[mappingRow](cim.NamespaceSMB, "MSFT_SmbGlobalMapping")

func TestSMBMapping(t *testing.T) {
	l := newLab(t)
	l.OK(l.Control.SetSMBServer(t.Context(), sim.SMBServer{Name: "srv", Users: map[string]string{`dom\u`: `p'w"d:\ é`},
		Shares: []sim.SMBShare{{Name: "share", Folder: "share"}}}))
	create := func(password string) error {
		_, err := cim.Call(t.Context(), l.session, cim.NamespaceSMB, "MSFT_SmbGlobalMapping", "MSFT_SmbGlobalMapping", "Create",
			cim.Values{"RemotePath": share, "RequirePrivacy": true, "Persistent": false, "Credential": `dom\\u:` + password})
		return err
	}
	const logonFailure = 1326
	failure := failed(t, create("wrong"), cim.Failed, "MSFT_SmbGlobalMapping.Create")
	if failure.Win32 != logonFailure {
		t.Errorf("error %v, want Windows error %d beside the HRESULT", failure, logonFailure)
	}
	if strings.Contains(failure.Error(), "wrong") {
		t.Errorf("the password is in %v", failure)
	}
	l.OK(create(`p'w"d:\ é`))
	rows, err := mappings.Rows(t.Context(), l.session, cim.Equal("RemotePath", strings.ToUpper(share)))
	l.OK(err)
	if len(rows) != 1 || rows[0].RemotePath != share || !rows[0].Privacy || rows[0].Status != 0 || rows[0].Path == "" {
		t.Fatalf("mappings %+v", rows)
	}
	l.call(cim.NamespaceSMB, "MSFT_SmbGlobalMapping", rows[0].Path, "Remove", cim.Values{"Force": true})
	if rows, err = mappings.Rows(t.Context(), l.session); err != nil || len(rows) != 0 {
		t.Errorf("after Remove: %+v, %v", rows, err)
	}
}

type targetRow struct {
	Path      string `cim:"__RELPATH"`
	IQN       string `cim:"NodeAddress"`
	Connected bool   `cim:"IsConnected"`
}

type sessionRow struct {
	ID         string `cim:"SessionIdentifier"`
	Persistent *bool  `cim:"IsPersistent"`
}

type portalRow struct {
	Path    string `cim:"__RELPATH"`
	Address string `cim:"TargetPortalAddress"`
	Port    uint16 `cim:"TargetPortalPortNumber"`
}

var (
	targets  = cim.NewTable[targetRow](cim.NamespaceStorage, "MSFT_iSCSITarget", "NodeAddress")
	sessions = cim.NewTable[sessionRow](cim.NamespaceStorage, "MSFT_iSCSISession", "SessionIdentifier")
	portals  = cim.NewTable[portalRow](cim.NamespaceStorage, "MSFT_iSCSITargetPortal")
)

// iscsi puts a target with one disk on the network and starts the initiator.
func (l *lab) iscsi() {
	l.Helper()
	l.OK(l.Control.SetISCSITarget(l.Context(), sim.ISCSITarget{IQN: iqn, Portals: []string{"10.0.0.1:3261"},
		ChapUser: "u", ChapSecret: secret, LUNs: []sim.DiskSpec{{Image: l.Name() + ".img", SizeBytes: gib}}}))
	const automatic, running = 2, 4
	l.OK(l.Control.SetService(l.Context(), sim.Service{Name: "MSiSCSI", StartType: automatic, State: running}))
}

func TestISCSIWithoutItsService(t *testing.T) {
	const serviceNotRunning = 0xEFFF003E
	l := newLab(t)
	// An earlier package may have left it running.
	const manual, stopped = 3, 1
	l.OK(l.Control.SetService(l.Context(), sim.Service{Name: "MSiSCSI", StartType: manual, State: stopped}))
	_, err := targets.Rows(t.Context(), l.session)
	failed(t, err, serviceNotRunning, "MSFT_iSCSITarget")
	_, err = cim.Call(t.Context(), l.session, cim.NamespaceStorage, "MSFT_iSCSITarget", "MSFT_iSCSITarget", "Update", nil)
	if code, _ := cim.ReturnCode(err); code != serviceNotRunning {
		t.Errorf("error %v, want return value 0x%X", err, uint32(serviceNotRunning))
	}
}

func TestISCSITarget(t *testing.T) {
	l := newLab(t)
	l.iscsi()
	portal := cim.Values{"TargetPortalAddress": "10.0.0.1", "TargetPortalPortNumber": uint16(3261)}
	l.call(cim.NamespaceStorage, "MSFT_iSCSITargetPortal", "MSFT_iSCSITargetPortal", "New", portal)
	known, err := portals.Rows(t.Context(), l.session)
	if err != nil || len(known) != 1 || known[0].Address != "10.0.0.1" || known[0].Port != 3261 {
		t.Fatalf("portals %+v, %v", known, err)
	}
	found, err := targets.Associated(t.Context(), l.session, known[0].Path, "MSFT_iSCSITargetToiSCSITargetPortal")
	if err != nil || len(found) != 1 || found[0].IQN != iqn || found[0].Connected {
		t.Fatalf("targets of the portal %+v, %v", found, err)
	}
	in := cim.Values{"NodeAddress": iqn, "IsPersistent": false, "AuthenticationType": "ONEWAYCHAP", "ChapUsername": "u", "ChapSecret": secret}
	for name, value := range portal {
		in[name] = value
	}
	l.call(cim.NamespaceStorage, "MSFT_iSCSITarget", "MSFT_iSCSITarget", "Connect", in)
	found, err = targets.Rows(t.Context(), l.session, cim.Equal("IsConnected", true))
	if err != nil || len(found) != 1 {
		t.Fatalf("connected targets %+v, %v", found, err)
	}
	logins, err := sessions.Associated(t.Context(), l.session, found[0].Path, "MSFT_iSCSITargetToiSCSISession")
	if err != nil || len(logins) != 1 || logins[0].Persistent == nil || *logins[0].Persistent {
		t.Fatalf("sessions %+v, %v", logins, err)
	}
	byBus, err := disks.Rows(t.Context(), l.session, cim.Equal("BusType", uint16(9)))
	if err != nil || len(byBus) != 1 || !slices.Equal(byBus[0].Status, []uint16{offlineStatus}) {
		t.Errorf("disks of the session %+v, %v", byBus, err)
	}
	l.call(cim.NamespaceStorage, "MSFT_iSCSITarget", found[0].Path, "Disconnect", cim.Values{"SessionIdentifier": logins[0].ID})
	if logins, err = sessions.Rows(t.Context(), l.session); err != nil || len(logins) != 0 {
		t.Errorf("after Disconnect: %+v, %v", logins, err)
	}
}

// The class is the node's; the rest of the namespace is Wine's own.
func TestClassesOfTwoProviders(t *testing.T) {
	l := newLab(t)
	rows, err := l.session.Query(t.Context(), cim.NamespaceCIMV2, "SELECT SerialNumber FROM Win32_BIOS")
	if err != nil || len(rows) != 1 || rows[0].Props["SerialNumber"] != "SIM-0000-0001" {
		t.Errorf("Win32_BIOS: %+v, %v", rows, err)
	}
	rows, err = l.session.Query(t.Context(), cim.NamespaceCIMV2, "SELECT * FROM Win32_OperatingSystem")
	if err != nil || len(rows) != 1 || rows[0].Class != "Win32_OperatingSystem" {
		t.Errorf("Win32_OperatingSystem: %+v, %v", rows, err)
	}
	const localMachine = uint32(0x80000002)
	result, err := l.session.Exec(t.Context(), cim.NamespaceCIMV2, "StdRegProv", "EnumKey",
		cim.Values{"hDefKey": localMachine, "sSubKeyName": "Software"})
	if names, _ := result.Out["sNames"].([]string); err != nil || len(names) == 0 {
		t.Errorf("StdRegProv.EnumKey: %+v, %v", result, err)
	}
	_, err = l.session.Query(t.Context(), `root\no\such\namespace`, "SELECT * FROM X")
	failed(t, err, cim.InvalidNamespace, `root\no\such\namespace`)
}
