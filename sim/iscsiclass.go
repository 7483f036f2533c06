package sim

import (
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/sim/wql"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// The Microsoft software initiator's instance name.
const initiatorInstance = `ROOT\ISCSIPRT\0000_0`

// withInitiator wraps a method: every one fails while the MSiSCSI service does
// not run. Source: ISDSC_SERVICE_NOT_RUNNING.
func withInitiator[T any](run func(*Node, T, args) (uint32, cim.Values)) func(*Node, T, args) (cim.Result, error) {
	return func(n *Node, row T, in args) (cim.Result, error) {
		if !n.runningLocked(serviceISCSI) {
			return returns(isdscServiceNotRunning)
		}
		code, out := run(n, row, in)
		return cim.Result{ReturnValue: code, Out: out}, nil
	}
}

// withInitiatorStatic is withInitiator for static methods.
func withInitiatorStatic(run func(*Node, args) (uint32, cim.Values)) func(*Node, args) (cim.Result, error) {
	wrapped := withInitiator(func(n *Node, _ struct{}, in args) (uint32, cim.Values) { return run(n, in) })
	return func(n *Node, in args) (cim.Result, error) { return wrapped(n, struct{}{}, in) }
}

// iscsiTargetClass is MSFT_iSCSITarget. Connect works on the class and on an instance.
func iscsiTargetClass() *class {
	c := newClass(cim.NamespaceStorage, "MSFT_iSCSITarget", func(n *Node) []*iscsiFound { return n.state.ISCSI.Found },
		func(f *iscsiFound) string {
			return wql.FormatPath("MSFT_iSCSITarget", wql.Key{Name: "NodeAddress", Value: f.IQN})
		}).
		key("NodeAddress", func(f *iscsiFound) any { return f.IQN }).
		nodeProp("IsConnected", func(n *Node, f *iscsiFound) any { return n.connectedLocked(f.IQN) }).
		static("Connect", "NodeAddress:s TargetPortalAddress:s TargetPortalPortNumber:u16 InitiatorPortalAddress:s"+
			" IsDataDigest:b IsHeaderDigest:b ReportToPnP:b AuthenticationType:s ChapUsername:s ChapSecret:s"+
			" IsMultipathEnabled:b IsPersistent:b InitiatorInstanceName:s", withInitiatorStatic(connectTarget)).
		static("Update", "", withInitiatorStatic(updateTargets)).
		method("Disconnect", "SessionIdentifier:s", withInitiator(disconnectTarget)).class
	c.service = serviceISCSI
	return c
}

// connectTarget is MSFT_iSCSITarget.Connect. IsPersistent is taken as TRUE when
// left out: dumps of both defaults exist, and this is the one that hurts.
func connectTarget(n *Node, in args) (uint32, cim.Values) {
	s, code := n.loginLocked(iscsiLogin{
		IQN: in.text("NodeAddress"), Address: in.text("TargetPortalAddress"), Port: in.u16("TargetPortalPortNumber"),
		AuthType: in.text("AuthenticationType"), User: in.text("ChapUsername"), Secret: in.text("ChapSecret"),
		Multipath: in.flag("IsMultipathEnabled"), Persistent: in.flagOr("IsPersistent", true),
		HeaderDigest: in.flag("IsHeaderDigest"), DataDigest: in.flag("IsDataDigest"),
	})
	if code != 0 {
		return code, nil
	}
	return 0, cim.Values{"CreatediSCSISession": n.schema.class(cim.NamespaceStorage, "MSFT_iSCSISession").instance(n, s, nil)}
}

// updateTargets is MSFT_iSCSITarget.Update: discovery at every portal.
func updateTargets(n *Node, _ args) (uint32, cim.Values) {
	for _, p := range n.state.ISCSI.Portals {
		if code := n.discoverLocked(p); code != 0 {
			return code, nil
		}
	}
	return 0, nil
}

// disconnectTarget is MSFT_iSCSITarget.Disconnect: one session, or all of the target.
func disconnectTarget(n *Node, f *iscsiFound, in args) (uint32, cim.Values) {
	id := in.text("SessionIdentifier")
	ended := false
	for _, s := range slices.Clone(n.state.ISCSI.Sessions) {
		if !strings.EqualFold(s.IQN, f.IQN) || id != "" && !strings.EqualFold(s.ID, id) {
			continue
		}
		if code := n.logoutLocked(s); code != 0 {
			return code, nil
		}
		ended = true
	}
	if !ended && id != "" {
		return isdscInvalidSessionID, nil
	}
	return 0, nil
}

// iscsiPortalClass is MSFT_iSCSITargetPortal.
func iscsiPortalClass() *class {
	const place = "TargetPortalAddress:s TargetPortalPortNumber:u16 InitiatorInstanceName:s InitiatorPortalAddress:s"
	c := newClass(cim.NamespaceStorage, "MSFT_iSCSITargetPortal", func(n *Node) []*iscsiPortal { return n.state.ISCSI.Portals },
		func(p *iscsiPortal) string {
			return wql.FormatPath("MSFT_iSCSITargetPortal", wql.Key{Name: "TargetPortalAddress", Value: p.Address},
				wql.Key{Name: "TargetPortalPortNumber", Value: p.Port})
		}).
		key("TargetPortalAddress", func(p *iscsiPortal) any { return p.Address }).
		key("TargetPortalPortNumber", func(p *iscsiPortal) any { return p.Port }).
		prop("InitiatorInstanceName", func(p *iscsiPortal) any { return textOrNull(p.InitiatorInstance) }).
		prop("InitiatorPortalAddress", func(p *iscsiPortal) any { return textOrNull(p.InitiatorAddress) }).
		prop("IsHeaderDigest", func(p *iscsiPortal) any { return p.HeaderDigest }).
		prop("IsDataDigest", func(p *iscsiPortal) any { return p.DataDigest }).
		static("New", place+" AuthenticationType:s ChapUsername:s ChapSecret:s IsHeaderDigest:b IsDataDigest:b",
			withInitiatorStatic(newPortal)).
		method("Remove", place, withInitiator(removePortal)).
		method("Update", place, withInitiator(func(n *Node, p *iscsiPortal, _ args) (uint32, cim.Values) {
			return n.discoverLocked(p), nil
		})).class
	c.service = serviceISCSI
	return c
}

// newPortal is MSFT_iSCSITargetPortal.New: discovery first, so that an
// unreachable portal is not kept. Source: New-IscsiTargetPortal.
func newPortal(n *Node, in args) (uint32, cim.Values) {
	p := &iscsiPortal{
		Address: in.text("TargetPortalAddress"), Port: in.u16("TargetPortalPortNumber"),
		InitiatorInstance: in.text("InitiatorInstanceName"), InitiatorAddress: in.text("InitiatorPortalAddress"),
		HeaderDigest: in.flag("IsHeaderDigest"), DataDigest: in.flag("IsDataDigest"),
	}
	if p.Address == "" {
		return isdscInvalidParameter, nil
	}
	if p.Port == 0 {
		p.Port = iscsiDefaultPort
	}
	for _, known := range n.state.ISCSI.Portals {
		if strings.EqualFold(known.endpoint(), p.endpoint()) {
			return isdscPortalAlreadyExists, nil
		}
	}
	if code := n.discoverLocked(p); code != 0 {
		return code, nil
	}
	n.state.ISCSI.Portals = append(n.state.ISCSI.Portals, p)
	return 0, cim.Values{"CreatedTargetPortal": n.schema.class(cim.NamespaceStorage, "MSFT_iSCSITargetPortal").instance(n, p, nil)}
}

// removePortal is MSFT_iSCSITargetPortal.Remove; a portal other than the
// instance's may be named in the parameters.
func removePortal(n *Node, p *iscsiPortal, in args) (uint32, cim.Values) {
	at := p.endpoint()
	if in.has("TargetPortalAddress") {
		at = endpoint(in.text("TargetPortalAddress"), in.u16("TargetPortalPortNumber"))
	}
	portals := n.state.ISCSI.Portals
	i := slices.IndexFunc(portals, func(known *iscsiPortal) bool { return known.endpoint() == at })
	if i < 0 {
		return isdscPortalNotFound, nil
	}
	n.state.ISCSI.Portals = slices.Delete(portals, i, i+1)
	n.forgetPortalLocked(at)
	n.dropUnknownTargetsLocked()
	return 0, nil
}

// iscsiSessionClass is MSFT_iSCSISession.
func iscsiSessionClass() *class {
	c := newClass(cim.NamespaceStorage, "MSFT_iSCSISession", func(n *Node) []*iscsiSession { return n.state.ISCSI.Sessions },
		func(s *iscsiSession) string { return `MSFT_iSCSISession.SessionIdentifier="` + s.ID + `"` }).
		key("SessionIdentifier", func(s *iscsiSession) any { return s.ID }).
		prop("TargetNodeAddress", func(s *iscsiSession) any { return s.IQN }).
		nodeProp("InitiatorNodeAddress", func(n *Node, _ *iscsiSession) any { return n.state.ISCSI.NodeName }).
		prop("InitiatorInstanceName", func(*iscsiSession) any { return initiatorInstance }).
		prop("InitiatorPortalAddress", func(*iscsiSession) any { return "0.0.0.0" }).
		prop("InitiatorSideIdentifier", func(s *iscsiSession) any { return s.Side }).
		prop("TargetSideIdentifier", func(*iscsiSession) any { return "0100" }).
		prop("AuthenticationType", func(s *iscsiSession) any { return s.AuthType }).
		prop("NumberOfConnections", func(*iscsiSession) any { return uint32(1) }).
		nodeProp("IsConnected", func(n *Node, s *iscsiSession) any {
			t := n.targetLocked(s.IQN)
			return t != nil && !t.Unreachable
		}).
		prop("IsPersistent", func(s *iscsiSession) any { return s.Persistent }).
		prop("IsDiscovered", func(*iscsiSession) any { return true }).
		prop("IsHeaderDigest", func(s *iscsiSession) any { return s.HeaderDigest }).
		prop("IsDataDigest", func(s *iscsiSession) any { return s.DataDigest }).
		method("Register", "IsMultipathEnabled:b ChapUsername:s ChapSecret:s", withInitiator(registerSession)).
		method("Unregister", "", withInitiator(func(n *Node, s *iscsiSession, _ args) (uint32, cim.Values) {
			s.Persistent = false
			n.forgetLoginLocked(s.IQN)
			return 0, nil
		})).
		static("SetCHAPSecret", "ChapSecret:s", withInitiatorStatic(setInitiatorSecret)).class
	c.service = serviceISCSI
	return c
}

// registerSession is MSFT_iSCSISession.Register: the session becomes persistent.
func registerSession(n *Node, s *iscsiSession, in args) (uint32, cim.Values) {
	l := s.iscsiLogin
	l.Multipath = in.flagOr("IsMultipathEnabled", l.Multipath)
	if in.has("ChapSecret") {
		l.User, l.Secret = in.text("ChapUsername"), in.text("ChapSecret")
	}
	s.Persistent = true
	n.rememberLoginLocked(l)
	return 0, nil
}

// setInitiatorSecret is MSFT_iSCSISession.SetCHAPSecret. Source:
// SetIScsiInitiatorCHAPSharedSecret.
func setInitiatorSecret(n *Node, in args) (uint32, cim.Values) {
	secret := in.text("ChapSecret")
	switch {
	case len(secret) < chapSecretMin:
		return isdscShortChapSecret, nil
	case len(secret) > chapSecretMax:
		return isdscInvalidInitiatorSecret, nil
	}
	n.state.ISCSI.Secret = secret
	return 0, nil
}

// iscsiConnection is the row type of MSFT_iSCSIConnection.
type iscsiConnection struct{ session *iscsiSession }

// iscsiConnectionClass is MSFT_iSCSIConnection.
func iscsiConnectionClass() *class {
	c := newClass(cim.NamespaceStorage, "MSFT_iSCSIConnection", (*Node).connectionsRows,
		func(c iscsiConnection) string {
			return `MSFT_iSCSIConnection.ConnectionIdentifier="` + c.session.ConnectionID + `"`
		}).
		key("ConnectionIdentifier", func(c iscsiConnection) any { return c.session.ConnectionID }).
		prop("InitiatorAddress", func(iscsiConnection) any { return "0.0.0.0" }).
		prop("TargetAddress", func(c iscsiConnection) any { return c.session.Address }).
		prop("InitiatorPortNumber", func(iscsiConnection) any { return uint32(49667) }).
		prop("TargetPortNumber", func(c iscsiConnection) any { return uint32(c.session.Port) }).class
	c.service = serviceISCSI
	return c
}

func (n *Node) connectionsRows() []iscsiConnection {
	out := make([]iscsiConnection, len(n.state.ISCSI.Sessions))
	for i, s := range n.state.ISCSI.Sessions {
		out[i] = iscsiConnection{s}
	}
	return out
}
