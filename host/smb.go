package host

import "context"

// SmbMappingStatus is what the redirector says of a mapping.
type SmbMappingStatus string

// The states of a mapping.
const (
	MappingOK           SmbMappingStatus = "OK"
	MappingPaused       SmbMappingStatus = "Paused"
	MappingDisconnected SmbMappingStatus = "Disconnected"
	MappingNetworkError SmbMappingStatus = "NetworkError"
	MappingConnecting   SmbMappingStatus = "Connecting"
	MappingReconnecting SmbMappingStatus = "Reconnecting"
	MappingUnavailable  SmbMappingStatus = "Unavailable"
)

// SmbMapping is one global mapping of the node. It never holds a password.
type SmbMapping struct {
	RemotePath     string // `\\server\share`
	LocalPath      string // a drive letter, usually empty
	RequirePrivacy bool
	Status         SmbMappingStatus
}

// SMB is the smb group.
type SMB interface {
	// NewSmbGlobalMapping makes sure that the share of remotePath is mapped for
	// the whole node and, when localPath is not empty, that a link at localPath
	// leads to remotePath. Forward slashes are accepted.
	NewSmbGlobalMapping(ctx context.Context, remotePath, localPath, username, password string) error
	// RemoveSmbGlobalMapping removes the mapping of the share of remotePath. No
	// such mapping is success.
	RemoveSmbGlobalMapping(ctx context.Context, remotePath string) error
	// ListSmbGlobalMappings returns every global mapping. Addition.
	ListSmbGlobalMappings(ctx context.Context) ([]SmbMapping, error)
}
