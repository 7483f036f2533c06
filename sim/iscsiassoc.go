package sim

import (
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/winos/cim"
)

// initiatorPort is the row type of MSFT_InitiatorPort: the software initiator.
type initiatorPort struct{ host string }

// initiatorPortClass is MSFT_InitiatorPort.
func initiatorPortClass() *class {
	return newClass(cim.NamespaceStorage, "MSFT_InitiatorPort", func(n *Node) []initiatorPort { return []initiatorPort{{n.state.HostName}} },
		func(p initiatorPort) string { return objectPath("MSFT_InitiatorPort", p.objectID()) }).
		key("ObjectId", func(p initiatorPort) any { return p.objectID() }).
		nodeProp("NodeAddress", func(n *Node, _ initiatorPort) any { return n.state.ISCSI.NodeName }).
		prop("PortAddress", func(initiatorPort) any { return "ISCSI ANY PORT" }).
		prop("InstanceName", func(initiatorPort) any { return initiatorInstance }).
		prop("ConnectionType", func(initiatorPort) any { return uint16(2) }).
		prop("OperationalStatus", func(initiatorPort) any { return []uint16{2} }).class
}

func (p initiatorPort) objectID() string {
	return `{1}\\` + p.host + `\root/Microsoft/Windows/Storage/Providers_v2\WSP_InitiatorPort.ObjectId="` + initiatorInstance + `"`
}

// iscsiAssocs are the associations of the iSCSI classes.
func iscsiAssocs() []*assoc {
	const target, portal, session, connection = "MSFT_iSCSITarget", "MSFT_iSCSITargetPortal", "MSFT_iSCSISession", "MSFT_iSCSIConnection"
	role := func(class string) string { return strings.TrimPrefix(class, "MSFT_") }
	between := func(left, right string, links func(n *Node) []pair) *assoc {
		return &assoc{
			name: left + "To" + role(right), leftRole: role(left), rightRole: role(right),
			leftClass: left, rightClass: right, links: links,
		}
	}
	return []*assoc{
		between(target, portal, func(n *Node) []pair { return targetPortals(n) }),
		between(target, session, func(n *Node) []pair { return sessionPairs(n, foundOf, sessionOf) }),
		between(target, connection, func(n *Node) []pair { return sessionPairs(n, foundOf, connectionOf) }),
		between(session, connection, func(n *Node) []pair { return sessionPairs(n, sessionOf, connectionOf) }),
		between(session, portal, func(n *Node) []pair { return sessionPairs(n, sessionOf, portalOf) }),
		between(connection, portal, func(n *Node) []pair { return sessionPairs(n, connectionOf, portalOf) }),
		between(session, "MSFT_Disk", func(n *Node) []pair { return sessionDisks(n, sessionOf) }),
		between(connection, "MSFT_Disk", func(n *Node) []pair { return sessionDisks(n, connectionOf) }),
	}
}

func foundOf(n *Node, s *iscsiSession) any {
	if f := n.foundLocked(s.IQN); f != nil {
		return f
	}
	return nil
}

func sessionOf(_ *Node, s *iscsiSession) any    { return s }
func connectionOf(_ *Node, s *iscsiSession) any { return iscsiConnection{s} }

func portalOf(n *Node, s *iscsiSession) any {
	at := endpoint(s.Address, s.Port)
	i := slices.IndexFunc(n.state.ISCSI.Portals, func(p *iscsiPortal) bool { return p.endpoint() == at })
	if i < 0 {
		return nil
	}
	return n.state.ISCSI.Portals[i]
}

// sessionPairs links what belongs to each session; a side that is missing makes no pair.
func sessionPairs(n *Node, left, right func(*Node, *iscsiSession) any) []pair {
	var out []pair
	for _, s := range n.state.ISCSI.Sessions {
		if l, r := left(n, s), right(n, s); l != nil && r != nil {
			out = append(out, pair{l, r})
		}
	}
	return out
}

func targetPortals(n *Node) []pair {
	var out []pair
	for _, f := range n.state.ISCSI.Found {
		for _, p := range n.state.ISCSI.Portals {
			if slices.Contains(f.Portals, p.endpoint()) {
				out = append(out, pair{f, p})
			}
		}
	}
	return out
}

func sessionDisks(n *Node, of func(*Node, *iscsiSession) any) []pair {
	var out []pair
	for _, s := range n.state.ISCSI.Sessions {
		for _, d := range n.targetDisksLocked(s.IQN) {
			if d.arrived() {
				out = append(out, pair{of(n, s), d})
			}
		}
	}
	return out
}
