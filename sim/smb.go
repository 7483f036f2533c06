package sim

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// System error numbers of the SMB redirector. Source: winerror.h.
const (
	errRequestNotAccepted = 71   // ERROR_REQ_NOT_ACCEP: the server's connection limit
	errOpenFiles          = 2401 // ERROR_OPEN_FILES: remove without force
	errNotConnected       = 2250 // ERROR_NOT_CONNECTED: remove of what is not mapped
)

// Status of a mapping. Source: MSFT_SmbGlobalMapping.Status.
const (
	smbStatusOK           = 0
	smbStatusDisconnected = 2
)

// smbMapping is one global mapping of the node.
type smbMapping struct {
	LocalPath  string `json:"localPath,omitempty"`
	RemotePath string `json:"remotePath"`
	User       string `json:"user"`
	Password   string `json:"password"`
	// Persistent mappings are remembered with their credentials over a restart
	// of the node. Source: New-SmbGlobalMapping -Persistent.
	Persistent       bool `json:"persistent"`
	RequireIntegrity bool `json:"requireIntegrity"`
	RequirePrivacy   bool `json:"requirePrivacy"`
	UseWriteThrough  bool `json:"useWriteThrough"`
}

// remotePath splits `\\server\share\rest`; ok is false for anything else.
func splitRemote(path string) (server, share string, ok bool) {
	rest, ok := strings.CutPrefix(path, `\\`)
	if !ok {
		return "", "", false
	}
	server, rest, _ = strings.Cut(rest, `\`)
	share, _, _ = strings.Cut(rest, `\`)
	return server, share, server != "" && share != ""
}

func (n *Node) smbServerLocked(name string) *SMBServer {
	for _, s := range n.state.SMBServers {
		if strings.EqualFold(s.Name, name) {
			return s
		}
	}
	return nil
}

func (s *SMBServer) share(name string) *SMBShare {
	for i := range s.Shares {
		if strings.EqualFold(s.Shares[i].Name, name) {
			return &s.Shares[i]
		}
	}
	return nil
}

// logon checks a user's password. Source: winerror.h, ERROR_LOGON_FAILURE and
// ERROR_INVALID_PASSWORD.
func (s *SMBServer) logon(user, password string) uint32 {
	for known, secret := range s.Users {
		if !strings.EqualFold(known, user) {
			continue
		}
		if secret == password {
			return 0
		}
		if s.WrongPasswordError != 0 {
			return s.WrongPasswordError
		}
		return win32.ErrLogonFailure
	}
	return win32.ErrLogonFailure
}

// authorise checks server, user and share as the redirector does when it sets
// up a session and a tree connection.
func (n *Node) authoriseLocked(remote, user, password string) (*SMBServer, *SMBShare, uint32) {
	serverName, shareName, ok := splitRemote(remote)
	if !ok {
		return nil, nil, win32.ErrBadNetName
	}
	server := n.smbServerLocked(serverName)
	if server == nil {
		return nil, nil, win32.ErrBadNetPath
	}
	if server.Failure != 0 {
		return nil, nil, server.Failure
	}
	if code := server.logon(user, password); code != 0 {
		return nil, nil, code
	}
	share := server.share(shareName)
	if share == nil {
		return nil, nil, win32.ErrBadNetName
	}
	if len(share.Users) > 0 && !slices.ContainsFunc(share.Users, func(u string) bool { return strings.EqualFold(u, user) }) {
		return nil, nil, win32.ErrAccessDenied
	}
	return server, share, 0
}

// mapLocked makes a mapping and returns the system error of its refusal, 0 for
// none. Source: New-SmbGlobalMapping; winerror.h for the numbers.
func (n *Node) mapLocked(m smbMapping) uint32 {
	if !n.runningLocked(serviceWorkstation) {
		return win32.ErrNoNetOrBadPath
	}
	if strings.HasSuffix(m.RemotePath, `\`) {
		return win32.ErrInvalidParameter
	}
	if n.config.SMBMappingLimit > 0 && len(n.state.Mappings) >= n.config.SMBMappingLimit {
		return win32.ErrNotEnoughMemory
	}
	if n.conflictsLocked(&m) {
		return win32.ErrCredentialConflict
	}
	server, _, code := n.authoriseLocked(m.RemotePath, m.User, m.Password)
	switch {
	case code != 0:
		return code
	case m.RequirePrivacy && server.NoEncryption:
		return win32.ErrNetworkAccessDenied
	case server.MaxConnections > 0 && n.connectionsLocked(server.Name) >= server.MaxConnections:
		return errRequestNotAccepted
	}
	n.state.Mappings = append(n.state.Mappings, &m)
	return 0
}

// conflictsLocked tells whether an existing mapping excludes a new one: another
// user on the same server name, the same path again, or a path above or below
// it. Source: ERROR_SESSION_CREDENTIAL_CONFLICT.
func (n *Node) conflictsLocked(m *smbMapping) bool {
	server, _, _ := splitRemote(m.RemotePath)
	for _, other := range n.state.Mappings {
		otherServer, _, _ := splitRemote(other.RemotePath)
		if !strings.EqualFold(server, otherServer) {
			continue
		}
		if !strings.EqualFold(other.User, m.User) ||
			remoteWithin(m.RemotePath, other.RemotePath) || remoteWithin(other.RemotePath, m.RemotePath) {
			return true
		}
	}
	return false
}

// remoteWithin tells whether path is root or lies below it.
func remoteWithin(path, root string) bool {
	return len(path) >= len(root) && strings.EqualFold(path[:len(root)], root) &&
		(len(path) == len(root) || path[len(root)] == '\\')
}

func (n *Node) connectionsLocked(server string) int {
	count := 0
	for _, m := range n.state.Mappings {
		if name, _, _ := splitRemote(m.RemotePath); strings.EqualFold(name, server) {
			count++
		}
	}
	return count
}

// unmapLocked removes a mapping.
func (n *Node) unmapLocked(m *smbMapping) uint32 {
	i := slices.Index(n.state.Mappings, m)
	if i < 0 {
		return errNotConnected
	}
	n.state.Mappings = slices.Delete(n.state.Mappings, i, i+1)
	return 0
}

// status is what the provider says of a mapping. It does not look at
// credentials or the share, so it may say OK of a mapping that no longer works,
// as Windows does.
func (n *Node) smbStatusLocked(m *smbMapping) uint32 {
	name, _, _ := splitRemote(m.RemotePath)
	if s := n.smbServerLocked(name); s == nil || s.Failure != 0 {
		return smbStatusDisconnected
	}
	return smbStatusOK
}

// remoteFolder gives the real folder and the capacity behind `\\server\share`,
// with the rights the node's mappings give it. Without a mapping the node has
// no credentials the server knows.
func (n *Node) remoteFolderLocked(server, share string) (*SMBShare, uint32) {
	if !n.runningLocked(serviceWorkstation) {
		return nil, win32.ErrNoNetOrBadPath
	}
	remote := `\\` + server + `\` + share
	for _, m := range n.state.Mappings {
		if remoteWithin(m.RemotePath, remote) {
			_, found, code := n.authoriseLocked(remote, m.User, m.Password)
			return found, code
		}
	}
	s := n.smbServerLocked(server)
	switch {
	case s == nil:
		return nil, win32.ErrBadNetPath
	case s.Failure != 0:
		return nil, s.Failure
	}
	return nil, win32.ErrLogonFailure
}

// SetSMBServer implements NetworkController.
func (n *Node) SetSMBServer(_ context.Context, server SMBServer) error {
	if server.Name == "" || strings.Contains(server.Name, `\`) {
		return errors.New("set SMB server: bad name")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.smbServerLocked(server.Name); s != nil {
		*s = server
	} else {
		n.state.SMBServers = append(n.state.SMBServers, &server)
	}
	return n.saveLocked()
}

// RemoveSMBServer implements NetworkController.
func (n *Node) RemoveSMBServer(_ context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state.SMBServers = slices.DeleteFunc(n.state.SMBServers, func(s *SMBServer) bool { return strings.EqualFold(s.Name, name) })
	return n.saveLocked()
}
