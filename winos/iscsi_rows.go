package winos

import (
	"net/netip"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// portalRow is what is read of MSFT_iSCSITargetPortal. Its keys are not
// documented, so everything is selected.
type portalRow struct {
	Path    string `cim:"__RELPATH"`
	Address string `cim:"TargetPortalAddress"`
	Port    uint16 `cim:"TargetPortalPortNumber"`
}

// targetRow is what is read of MSFT_iSCSITarget.
type targetRow struct {
	IQN string `cim:"NodeAddress"`
}

// sessionRow is what is read of MSFT_iSCSISession.
type sessionRow struct {
	Path       string `cim:"__RELPATH"`
	ID         string `cim:"SessionIdentifier"`
	IQN        string `cim:"TargetNodeAddress"`
	Persistent bool   `cim:"IsPersistent"`
}

// connectionRow is what is read of MSFT_iSCSIConnection.
type connectionRow struct {
	Address string `cim:"TargetAddress"`
	Port    uint32 `cim:"TargetPortNumber"`
}

var (
	portalTable     = cim.NewTable[portalRow](cim.NamespaceStorage, "MSFT_iSCSITargetPortal")
	targetTable     = cim.NewTable[targetRow](cim.NamespaceStorage, "MSFT_iSCSITarget", "NodeAddress")
	sessionTable    = cim.NewTable[sessionRow](cim.NamespaceStorage, "MSFT_iSCSISession", "SessionIdentifier")
	connectionTable = cim.NewTable[connectionRow](cim.NamespaceStorage, "MSFT_iSCSIConnection", "ConnectionIdentifier")
)

// authenticationTypes are the words that Connect takes, in upper case only.
// Source: MSFT_iSCSITarget.Connect.
var authenticationTypes = map[host.AuthType]string{
	host.AuthNone: "NONE", host.AuthOneWayCHAP: "ONEWAYCHAP", host.AuthMutualCHAP: "MUTUALCHAP",
}

// portPlain is the port of a portal, the default one for 0.
func portPlain(portal host.TargetPortal) uint32 {
	if portal.Port == 0 {
		return host.DefaultISCSIPort
	}
	return portal.Port
}

// isPortal reports whether a row is the portal asked for. Windows keeps an
// address as it was typed, and IPv6 has many spellings of one.
func (r portalRow) isPortal(portal host.TargetPortal) bool {
	return uint32(r.Port) == portPlain(portal) &&
		(strings.EqualFold(r.Address, portal.Address) || isSameAddress(r.Address, portal.Address))
}

func isSameAddress(a, b string) bool {
	first, errA := netip.ParseAddr(a)
	second, errB := netip.ParseAddr(b)
	return errA == nil && errB == nil && first == second
}
