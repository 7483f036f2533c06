package sim

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

const (
	iqn    = "iqn.2024-01.test:a"
	secret = "twelve-chars"
)

// iscsiNode is a node with one target at 10.0.0.1:3260 and the service running.
func iscsiNode(t *testing.T, change func(*ISCSITarget)) *Node {
	t.Helper()
	n := instant(t)
	target := ISCSITarget{IQN: iqn, Portals: []string{"10.0.0.1:3260"}, LUNs: []DiskSpec{{Image: filepath.Join(t.TempDir(), "lun"), SizeBytes: gib, Serial: "L"}}}
	if change != nil {
		change(&target)
	}
	if err := n.SetISCSITarget(context.Background(), target); err != nil {
		t.Fatal(err)
	}
	if err := n.StartService(context.Background(), serviceISCSI); err != nil {
		t.Fatal(err)
	}
	return n
}

func discover(t *testing.T, n *Node) {
	t.Helper()
	code(t, n, "MSFT_iSCSITargetPortal", "New", cim.Values{"TargetPortalAddress": "10.0.0.1", "TargetPortalPortNumber": uint16(3260)}, 0)
}

func connect(t *testing.T, n *Node, want uint32, more ...any) cim.Result {
	t.Helper()
	in := cim.Values{"NodeAddress": iqn, "TargetPortalAddress": "10.0.0.1", "IsPersistent": false}
	for i := 0; i < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	return code(t, n, "MSFT_iSCSITarget", "Connect", in, want)
}

func TestISCSIService(t *testing.T) {
	t.Parallel()
	n := instant(t)
	code(t, n, "MSFT_iSCSITargetPortal", "New", cim.Values{"TargetPortalAddress": "10.0.0.1"}, isdscServiceNotRunning)
	_, err := n.Query(context.Background(), cim.NamespaceStorage, "SELECT * FROM MSFT_iSCSISession")
	var e *cim.Error
	if !errors.As(err, &e) || e.HRESULT != isdscServiceNotRunning {
		t.Fatalf("query without the service: %v", err)
	}
}

func TestISCSIPortals(t *testing.T) {
	t.Parallel()
	n := iscsiNode(t, nil)
	for _, c := range []struct {
		address string
		want    uint32
	}{
		{"", isdscInvalidParameter},
		{"nowhere.example", isdscDNSNameUnresolved},
		{"10.0.0.9", isdscConnectionFailed},
		{"10.0.0.1", 0},
		{"10.0.0.1", isdscPortalAlreadyExists},
	} {
		code(t, n, "MSFT_iSCSITargetPortal", "New", cim.Values{"TargetPortalAddress": c.address}, c.want)
	}
	p := one(t, n, "SELECT * FROM MSFT_iSCSITargetPortal")
	if p.Props["TargetPortalPortNumber"] != uint16(3260) {
		t.Fatal(p.Props)
	}
	targets := query(t, n, "ASSOCIATORS OF {%s} WHERE AssocClass = MSFT_iSCSITargetToiSCSITargetPortal", p.Path)
	if len(targets) != 1 || targets[0].Props["NodeAddress"] != iqn || targets[0].Props["IsConnected"] != false {
		t.Fatalf("targets %v", targets)
	}
	if err := n.SetISCSITarget(context.Background(), ISCSITarget{IQN: iqn + "2", Portals: []string{"10.0.0.1:3260"}}); err != nil {
		t.Fatal(err)
	}
	if rows := query(t, n, "SELECT * FROM MSFT_iSCSITarget"); len(rows) != 1 {
		t.Fatal("a new target shows without discovery")
	}
	code(t, n, p.Path, "Update", nil, 0)
	if rows := query(t, n, "SELECT * FROM MSFT_iSCSITarget"); len(rows) != 2 {
		t.Fatal("Update does not discover")
	}
	code(t, n, p.Path, "Remove", cim.Values{"TargetPortalAddress": "10.0.0.7", "TargetPortalPortNumber": uint16(3260)}, isdscPortalNotFound)
	code(t, n, p.Path, "Remove", nil, 0)
	if rows := query(t, n, "SELECT * FROM MSFT_iSCSITarget"); len(rows) != 0 {
		t.Fatal("targets outlive their portal")
	}
}

func TestISCSILogin(t *testing.T) {
	t.Parallel()
	chap := func(target *ISCSITarget) { target.ChapUser, target.ChapSecret = "user", secret }
	mutual := func(target *ISCSITarget) { chap(target); target.MutualSecret = "initiators-one" }
	with := func(kind, user, secret string) []any {
		return []any{"AuthenticationType", kind, "ChapUsername", user, "ChapSecret", secret}
	}
	for _, c := range []struct {
		name      string
		target    func(*ISCSITarget)
		initiator string
		in        []any
		want      uint32
	}{
		{"none", nil, "", nil, 0},
		{"one way", chap, "", with("ONEWAYCHAP", "user", secret), 0},
		{"lower case", chap, "", with("onewaychap", "user", secret), isdscInvalidLogonAuthType},
		{"CHAP wanted", chap, "", nil, isdscAuthenticationFailure},
		{"CHAP not wanted", nil, "", with("ONEWAYCHAP", "user", secret), isdscAuthenticationFailure},
		{"wrong secret", chap, "", with("ONEWAYCHAP", "user", "twelve-wrong"), isdscAuthenticationFailure},
		{"wrong user", chap, "", with("ONEWAYCHAP", "x", secret), isdscAuthenticationFailure},
		{"short secret", chap, "", with("ONEWAYCHAP", "user", "short"), isdscShortChapSecret},
		{"long secret", chap, "", with("ONEWAYCHAP", "user", "seventeen-chars-x"), isdscInvalidTargetSecret},
		{"mutual", mutual, "initiators-one", with("MUTUALCHAP", "user", secret), 0},
		{"mutual without own secret", mutual, "", with("MUTUALCHAP", "user", secret), isdscInvalidInitiatorSecret},
		{"mutual with a wrong one", mutual, "initiators-two", with("MUTUALCHAP", "user", secret), isdscAuthenticationFailure},
		{"unknown target", nil, "", []any{"NodeAddress", iqn + "x"}, isdscTargetNotFound},
		{"wrong portal", nil, "", []any{"TargetPortalAddress", "10.0.0.2"}, isdscConnectionFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := iscsiNode(t, c.target)
			discover(t, n)
			if c.initiator != "" {
				code(t, n, "MSFT_iSCSISession", "SetCHAPSecret", cim.Values{"ChapSecret": c.initiator}, 0)
			}
			connect(t, n, c.want, c.in...)
		})
	}
}

func TestISCSISecretLength(t *testing.T) {
	t.Parallel()
	n := iscsiNode(t, nil)
	code(t, n, "MSFT_iSCSISession", "SetCHAPSecret", cim.Values{"ChapSecret": "eleven-char"}, isdscShortChapSecret)
	code(t, n, "MSFT_iSCSISession", "SetCHAPSecret", cim.Values{"ChapSecret": "seventeen-chars-x"}, isdscInvalidInitiatorSecret)
}

func TestISCSIDenied(t *testing.T) {
	t.Parallel()
	n := iscsiNode(t, nil)
	discover(t, n)
	target := ISCSITarget{IQN: iqn, Portals: []string{"10.0.0.1:3260"}, Denied: true}
	if err := n.SetISCSITarget(context.Background(), target); err != nil {
		t.Fatal(err)
	}
	connect(t, n, isdscAuthorizationFailure)
	target.Unreachable = true
	if err := n.SetISCSITarget(context.Background(), target); err != nil {
		t.Fatal(err)
	}
	connect(t, n, isdscConnectionFailed)
}

func TestISCSISessionAndDisk(t *testing.T) {
	t.Parallel()
	n := iscsiNode(t, nil)
	discover(t, n)
	created := connect(t, n, 0).Out["CreatediSCSISession"].(cim.Instance)
	connect(t, n, isdscTargetAlreadyLoggedIn)
	s := one(t, n, "SELECT * FROM MSFT_iSCSISession")
	if s.Path != created.Path || s.Props["IsConnected"] != true || s.Props["IsPersistent"] != false || s.Props["TargetNodeAddress"] != iqn {
		t.Fatalf("session %v", s.Props)
	}
	d := one(t, n, "ASSOCIATORS OF {%s} WHERE AssocClass = MSFT_iSCSISessionToDisk", s.Path)
	if d.Props["BusType"] != uint16(9) || d.Props["IsOffline"] != true || d.Props["IsReadOnly"] != true {
		t.Fatalf("disk %v", d.Props)
	}
	target := one(t, n, "SELECT * FROM MSFT_iSCSITarget WHERE NodeAddress = '%s'", iqn)
	connection := one(t, n, "ASSOCIATORS OF {%s} WHERE AssocClass = MSFT_iSCSITargetToiSCSIConnection", target.Path)
	again := one(t, n, "ASSOCIATORS OF {%s} WHERE AssocClass = MSFT_iSCSIConnectionToDisk ResultClass = MSFT_Disk", connection.Path)
	if again.Path != d.Path {
		t.Fatal("the connection leads to another disk")
	}
	if p := one(t, n, "ASSOCIATORS OF {%s} WHERE AssocClass = MSFT_iSCSISessionToiSCSITargetPortal", s.Path); p.Props["TargetPortalAddress"] != "10.0.0.1" {
		t.Fatal(p.Props)
	}

	number := d.Props["Number"].(uint32)
	volume := formatted(t, n, number)
	h := open(t, n, volume[:len(volume)-1], win32.AccessNone)
	code(t, n, target.Path, "Disconnect", cim.Values{"SessionIdentifier": s.Props["SessionIdentifier"]}, isdscDeviceBusyOnSession)
	if err := n.CloseHandle(h); err != nil {
		t.Fatal(err)
	}
	code(t, n, target.Path, "Disconnect", cim.Values{"SessionIdentifier": "ffff-1"}, isdscInvalidSessionID)
	code(t, n, target.Path, "Disconnect", cim.Values{"SessionIdentifier": s.Props["SessionIdentifier"]}, 0)
	if rows := query(t, n, "SELECT * FROM MSFT_Disk WHERE BusType = 9"); len(rows) != 0 {
		t.Fatal("the disk outlives its session")
	}
}

func TestC052_PersistentSessions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(t *testing.T, n *Node)
		back int
	}{
		{"not persistent", func(t *testing.T, n *Node) { connect(t, n, 0) }, 0},
		{"persistent", func(t *testing.T, n *Node) { connect(t, n, 0, "IsPersistent", true) }, 1},
		{"by default", func(t *testing.T, n *Node) { connect(t, n, 0, "IsPersistent", nil) }, 1},
		{"registered", func(t *testing.T, n *Node) {
			connect(t, n, 0)
			code(t, n, one(t, n, "SELECT * FROM MSFT_iSCSISession").Path, "Register", nil, 0)
		}, 1},
		{"unregistered", func(t *testing.T, n *Node) {
			connect(t, n, 0, "IsPersistent", true)
			code(t, n, one(t, n, "SELECT * FROM MSFT_iSCSISession").Path, "Unregister", nil, 0)
		}, 0},
		{"logged out and still registered", func(t *testing.T, n *Node) {
			connect(t, n, 0, "IsPersistent", true)
			code(t, n, one(t, n, "SELECT * FROM MSFT_iSCSITarget").Path, "Disconnect", nil, 0)
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := iscsiNode(t, nil)
			discover(t, n)
			c.do(t, n)
			cutAndBoot(t, n)
			if err := n.StartService(context.Background(), serviceISCSI); err != nil {
				t.Fatal(err)
			}
			if rows := query(t, n, "SELECT * FROM MSFT_iSCSISession"); len(rows) != c.back {
				t.Errorf("%d sessions after the reboot, want %d", len(rows), c.back)
			}
			if rows := query(t, n, "SELECT * FROM MSFT_Disk WHERE BusType = 9"); len(rows) != c.back {
				t.Errorf("%d disks after the reboot, want %d", len(rows), c.back)
			}
		})
	}
}

func TestISCSIDiskArrivesLater(t *testing.T) {
	t.Parallel()
	n := iscsiNode(t, nil)
	n.config.ArrivalPolls = 2
	discover(t, n)
	connect(t, n, 0)
	for look, want := range []int{0, 1} {
		if rows := query(t, n, "SELECT * FROM MSFT_Disk WHERE BusType = 9"); len(rows) != want {
			t.Fatalf("look %d: %d disks, want %d", look+1, len(rows), want)
		}
	}
}

func TestRemovedTargetBreaksItsSessions(t *testing.T) {
	t.Parallel()
	n := iscsiNode(t, nil)
	discover(t, n)
	connect(t, n, 0)
	if err := n.RemoveISCSITarget(context.Background(), iqn); err != nil {
		t.Fatal(err)
	}
	if rows := query(t, n, "SELECT * FROM MSFT_iSCSISession"); len(rows) != 0 {
		t.Fatal("session stays")
	}
}
