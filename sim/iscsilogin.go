package sim

import (
	"fmt"
	"slices"
	"strings"
)

// loginLocked logs in to a target and brings its disks. Source: LoginIScsiTargetW;
// iscsierr.h for the codes.
func (n *Node) loginLocked(l iscsiLogin) (*iscsiSession, uint32) {
	found, target := n.foundLocked(l.IQN), n.targetLocked(l.IQN)
	if found == nil || target == nil {
		return nil, isdscTargetNotFound
	}
	if l.Address == "" {
		if len(found.Portals) == 0 {
			return nil, isdscTargetNotFound
		}
		l.Address, l.Port = splitEndpoint(found.Portals[0])
	}
	if l.Port == 0 {
		l.Port = iscsiDefaultPort
	}
	if code := n.checkLoginLocked(target, &l); code != 0 {
		return nil, code
	}
	l.IQN = target.IQN
	first := !n.connectedLocked(l.IQN)
	state := &n.state.ISCSI
	state.Counter++
	s := &iscsiSession{
		ID:           fmt.Sprintf("ffff990fafe34010-40000137%08x", state.Counter),
		ConnectionID: fmt.Sprintf("ffff990fafe34010-%x", state.Counter),
		Side:         fmt.Sprintf("40000137%04x", state.Counter&0xffff),
		iscsiLogin:   l,
	}
	if target.Redirect != "" {
		s.Address, s.Port = splitEndpoint(target.Redirect)
	}
	state.Sessions = append(state.Sessions, s)
	if l.Persistent {
		n.rememberLoginLocked(l)
	}
	if first {
		n.plugLUNsLocked(target)
	}
	return s, 0
}

// checkLoginLocked is the login phase: reachability, authorisation, CHAP.
func (n *Node) checkLoginLocked(target *ISCSITarget, l *iscsiLogin) uint32 {
	if l.AuthType == "" {
		l.AuthType = "NONE"
	}
	// The names are accepted in upper case only. Source: Connect-IscsiTarget.
	if !slices.Contains([]string{"NONE", "ONEWAYCHAP", "MUTUALCHAP"}, l.AuthType) {
		return isdscInvalidLogonAuthType
	}
	chap := l.AuthType != "NONE"
	switch {
	case n.connectedLocked(l.IQN) && !l.Multipath:
		return isdscTargetAlreadyLoggedIn
	case chap && len(l.Secret) < chapSecretMin:
		return isdscShortChapSecret
	case chap && len(l.Secret) > chapSecretMax:
		return isdscInvalidTargetSecret
	case l.AuthType == "MUTUALCHAP" && n.state.ISCSI.Secret == "":
		return isdscInvalidInitiatorSecret
	case !target.serves(endpoint(l.Address, l.Port)):
		return isdscConnectionFailed
	case target.Denied:
		return isdscAuthorizationFailure
	}
	user := l.User
	if user == "" {
		user = n.state.ISCSI.NodeName // Source: ISCSI_LOGIN_OPTIONS.Username
	}
	ok := chap == (target.ChapSecret != "") &&
		(!chap || user == target.ChapUser && l.Secret == target.ChapSecret) &&
		(l.AuthType != "MUTUALCHAP" || target.MutualSecret == n.state.ISCSI.Secret)
	if !ok {
		return isdscAuthenticationFailure
	}
	return 0
}

// plugLUNsLocked brings the target's disks; one that fails to open is missing,
// as a LUN that does not answer is.
func (n *Node) plugLUNsLocked(target *ISCSITarget) {
	for lun, spec := range target.LUNs {
		spec.Bus = "iSCSI"
		if _, err := n.attachLocked(spec, origin{IQN: target.IQN, LUN: uint8(lun)}); err != nil {
			n.log.Warn("iSCSI disk not attached", "iqn", target.IQN, "lun", lun, "error", err)
		}
	}
}

// logoutLocked ends a session; with the last one of a target its disks go.
// Source: LogoutIScsiTarget; a disk in use keeps the session.
func (n *Node) logoutLocked(s *iscsiSession) uint32 {
	last := n.sessionCountLocked(s.IQN) == 1
	if last && slices.ContainsFunc(n.targetDisksLocked(s.IQN), n.diskInUseLocked) {
		return isdscDeviceBusyOnSession
	}
	n.dropSessionLocked(s, false)
	return 0
}

// dropSessionLocked removes a session, and its disks when it was the target's
// last: orderly, or pulled.
func (n *Node) dropSessionLocked(s *iscsiSession, pulled bool) {
	state := &n.state.ISCSI
	state.Sessions = slices.DeleteFunc(state.Sessions, func(other *iscsiSession) bool { return other == s })
	if n.connectedLocked(s.IQN) {
		return
	}
	for _, d := range n.targetDisksLocked(s.IQN) {
		n.detachLocked(d, pulled)
	}
	n.dropUnknownTargetsLocked()
}

func (n *Node) sessionCountLocked(iqn string) int {
	count := 0
	for _, s := range n.state.ISCSI.Sessions {
		if strings.EqualFold(s.IQN, iqn) {
			count++
		}
	}
	return count
}

func (n *Node) targetDisksLocked(iqn string) []*disk {
	var out []*disk
	for _, d := range n.disks {
		if d.Origin.IQN != "" && strings.EqualFold(d.Origin.IQN, iqn) {
			out = append(out, d)
		}
	}
	return out
}

func (n *Node) rememberLoginLocked(l iscsiLogin) {
	n.forgetLoginLocked(l.IQN)
	l.Persistent = true
	n.state.ISCSI.Logins = append(n.state.ISCSI.Logins, &l)
}

func (n *Node) forgetLoginLocked(iqn string) {
	n.state.ISCSI.Logins = slices.DeleteFunc(n.state.ISCSI.Logins, func(l *iscsiLogin) bool { return strings.EqualFold(l.IQN, iqn) })
}

// restoreLoginsLocked logs in again what is persistent, as the service does
// when it starts. Source: Register-IscsiSession.
func (n *Node) restoreLoginsLocked() {
	for _, l := range slices.Clone(n.state.ISCSI.Logins) { // a login is remembered anew
		if n.connectedLocked(l.IQN) {
			continue
		}
		if _, code := n.loginLocked(*l); code != 0 {
			n.log.Warn("persistent iSCSI login failed", "iqn", l.IQN, "code", fmt.Sprintf("0x%08X", code))
		}
	}
}
