package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// ISDSC codes, which the iSCSI methods return. Source: iscsierr.h.
const (
	isdscConnectionFailed       = 0xEFFF0003
	isdscAuthenticationFailure  = 0xEFFF0009
	isdscAuthorizationFailure   = 0xEFFF000A
	isdscInvalidSessionID       = 0xEFFF001C
	isdscTargetNotFound         = 0xEFFF0029
	isdscPortalAlreadyExists    = 0xEFFF0032
	isdscServiceNotRunning      = 0xEFFF003E
	isdscTargetAlreadyLoggedIn  = 0xEFFF003F
	isdscDeviceBusyOnSession    = 0xEFFF0040
	isdscPortalNotFound         = 0xEFFF0043
	isdscShortChapSecret        = 0xEFFF0048
	isdscInvalidTargetSecret    = 0xEFFF004B
	isdscInvalidInitiatorSecret = 0xEFFF004C
	isdscInvalidLogonAuthType   = 0xEFFF004E
	isdscInvalidParameter       = 0xEFFF0056
	isdscDNSNameUnresolved      = 0xEFFF005F
)

// CHAP secrets have 12 to 16 bytes without IPsec. Source: iscsierr.h, texts of
// the CHAP secret errors.
const (
	chapSecretMin = 12
	chapSecretMax = 16
)

const iscsiDefaultPort = 3260

// iscsiState is the initiator's memory.
type iscsiState struct {
	NodeName string          `json:"nodeName"`
	Secret   string          `json:"secret,omitempty"` // the initiator's own, for mutual CHAP
	Portals  []*iscsiPortal  `json:"portals,omitempty"`
	Found    []*iscsiFound   `json:"found,omitempty"`
	Sessions []*iscsiSession `json:"sessions,omitempty"`
	Logins   []*iscsiLogin   `json:"logins,omitempty"` // persistent
	Counter  uint32          `json:"counter,omitempty"`
}

// iscsiPortal is a target portal the initiator was told of.
type iscsiPortal struct {
	Address           string `json:"address"`
	Port              uint16 `json:"port"`
	InitiatorInstance string `json:"initiatorInstance,omitempty"`
	InitiatorAddress  string `json:"initiatorAddress,omitempty"`
	HeaderDigest      bool   `json:"headerDigest,omitempty"`
	DataDigest        bool   `json:"dataDigest,omitempty"`
}

func (p *iscsiPortal) endpoint() string { return endpoint(p.Address, p.Port) }

// iscsiFound is a discovered target and the portals that told of it.
type iscsiFound struct {
	IQN     string   `json:"iqn"`
	Portals []string `json:"portals"`
}

// iscsiLogin is what a login needs, kept for persistent ones.
type iscsiLogin struct {
	IQN        string `json:"iqn"`
	Address    string `json:"address,omitempty"`
	Port       uint16 `json:"port,omitempty"`
	AuthType   string `json:"authType"`
	User       string `json:"user,omitempty"`
	Secret     string `json:"secret,omitempty"`
	Multipath  bool   `json:"multipath,omitempty"`
	Persistent bool   `json:"persistent,omitempty"`

	HeaderDigest bool `json:"headerDigest,omitempty"`
	DataDigest   bool `json:"dataDigest,omitempty"`
}

// iscsiSession is a session with its one connection.
type iscsiSession struct {
	ID           string `json:"id"`
	ConnectionID string `json:"connectionID"`
	Side         string `json:"side"` // initiator side identifier
	iscsiLogin
}

func endpoint(address string, port uint16) string {
	if port == 0 {
		port = iscsiDefaultPort
	}
	return net.JoinHostPort(address, strconv.Itoa(int(port)))
}

// splitEndpoint is the inverse of endpoint.
func splitEndpoint(s string) (string, uint16) {
	host, port, _ := net.SplitHostPort(s)
	number, _ := strconv.ParseUint(port, 10, 16)
	return host, uint16(number)
}

func (n *Node) targetLocked(iqn string) *ISCSITarget {
	for _, t := range n.state.Targets {
		if strings.EqualFold(t.IQN, iqn) {
			return t
		}
	}
	return nil
}

// serves reports whether a portal of the target answers at an endpoint.
func (t *ISCSITarget) serves(endpoint string) bool {
	return !t.Unreachable && slices.Contains(t.Portals, endpoint)
}

// discoverLocked is SendTargets at a portal; it replaces what the portal told before.
func (n *Node) discoverLocked(p *iscsiPortal) uint32 {
	at, known := p.endpoint(), false
	var names []string
	for _, t := range n.state.Targets {
		known = known || slices.Contains(t.Portals, at)
		if t.serves(at) && !t.Denied {
			names = append(names, t.IQN)
		}
	}
	if !known && net.ParseIP(p.Address) == nil {
		return isdscDNSNameUnresolved
	}
	if !slices.ContainsFunc(n.state.Targets, func(t *ISCSITarget) bool { return t.serves(at) }) {
		return isdscConnectionFailed
	}
	n.forgetPortalLocked(at)
	for _, name := range names {
		f := n.foundLocked(name)
		if f == nil {
			f = &iscsiFound{IQN: name}
			n.state.ISCSI.Found = append(n.state.ISCSI.Found, f)
		}
		f.Portals = append(f.Portals, at)
	}
	n.dropUnknownTargetsLocked()
	return 0
}

func (n *Node) foundLocked(iqn string) *iscsiFound {
	for _, f := range n.state.ISCSI.Found {
		if strings.EqualFold(f.IQN, iqn) {
			return f
		}
	}
	return nil
}

func (n *Node) forgetPortalLocked(endpoint string) {
	for _, f := range n.state.ISCSI.Found {
		f.Portals = slices.DeleteFunc(f.Portals, func(p string) bool { return p == endpoint })
	}
}

// dropUnknownTargetsLocked forgets targets that no portal tells of any more,
// unless there is a session to them.
func (n *Node) dropUnknownTargetsLocked() {
	n.state.ISCSI.Found = slices.DeleteFunc(n.state.ISCSI.Found, func(f *iscsiFound) bool {
		return len(f.Portals) == 0 && !n.connectedLocked(f.IQN)
	})
}

func (n *Node) connectedLocked(iqn string) bool {
	return slices.ContainsFunc(n.state.ISCSI.Sessions, func(s *iscsiSession) bool { return strings.EqualFold(s.IQN, iqn) })
}

// SetISCSITarget implements NetworkController. Sessions stay as they are.
func (n *Node) SetISCSITarget(_ context.Context, target ISCSITarget) error {
	if target.IQN == "" || len(target.Portals) == 0 {
		return errors.New("set iSCSI target: IQN and portals are needed")
	}
	endpoints := target.Portals
	if target.Redirect != "" {
		endpoints = append(slices.Clone(endpoints), target.Redirect)
	}
	for _, portal := range endpoints {
		if _, _, err := net.SplitHostPort(portal); err != nil {
			return fmt.Errorf("set iSCSI target: portal %q: %w", portal, err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.targetLocked(target.IQN); t != nil {
		*t = target
	} else {
		n.state.Targets = append(n.state.Targets, &target)
	}
	return n.saveLocked()
}

// RemoveISCSITarget implements NetworkController.
func (n *Node) RemoveISCSITarget(_ context.Context, iqn string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state.Targets = slices.DeleteFunc(n.state.Targets, func(t *ISCSITarget) bool { return strings.EqualFold(t.IQN, iqn) })
	for _, s := range slices.Clone(n.state.ISCSI.Sessions) {
		if strings.EqualFold(s.IQN, iqn) {
			n.dropSessionLocked(s, true)
		}
	}
	return n.saveLocked()
}
