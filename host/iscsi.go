package host

import "context"

// DefaultISCSIPort is used when a portal's port is 0.
const DefaultISCSIPort = 3260

// TargetPortal is the address of an iSCSI portal.
type TargetPortal struct {
	Address string // host name, IPv4 or IPv6 address without brackets
	Port    uint32 // 0 means DefaultISCSIPort; at most 65535
}

// AuthType is how an initiator and a target prove who they are. The numbers are
// those of the wire.
type AuthType int32

// The kinds of authentication.
const (
	AuthNone       AuthType = 0
	AuthOneWayCHAP AuthType = 1
	AuthMutualCHAP AuthType = 2
)

// ConnectOptions are the choices of ConnectTarget.
type ConnectOptions struct {
	AuthType     AuthType
	ChapUsername string
	ChapSecret   string // 12 to 16 bytes when CHAP is used
	// Persistent has the initiator log in again, with these credentials, whenever its
	// service starts, until DisconnectTarget. An addition: where it cannot be done it
	// is KindUnsupported.
	Persistent bool
}

// TargetInfo is one discovered target.
type TargetInfo struct {
	IQN         string
	Connected   bool
	DiskNumbers []uint32
}

// ISCSI is the iscsi group.
type ISCSI interface {
	// AddTargetPortal makes the initiator know a portal. A known one is success.
	AddTargetPortal(ctx context.Context, portal TargetPortal) error
	// DiscoverTargetPortal asks the portal again for its targets and returns their names.
	DiscoverTargetPortal(ctx context.Context, portal TargetPortal) (iqns []string, err error)
	// RemoveTargetPortal makes the initiator forget a portal. An unknown one is success.
	RemoveTargetPortal(ctx context.Context, portal TargetPortal) error
	// ListTargetPortals returns the known portals.
	ListTargetPortals(ctx context.Context) ([]TargetPortal, error)
	// ConnectTarget logs in to a target. A target that is connected is success.
	// The login is not persistent unless that is asked for: then one that stands is
	// made so. One that is persistent stays so.
	ConnectTarget(ctx context.Context, portal TargetPortal, iqn string, options ConnectOptions) error
	// DisconnectTarget logs out of every session of the target through the
	// portal, persistent entries included. No session is success; a persistent entry
	// without one is not seen and stays.
	DisconnectTarget(ctx context.Context, portal TargetPortal, iqn string) error
	// GetTargetDisks returns the numbers of the disks a connected target offers.
	GetTargetDisks(ctx context.Context, portal TargetPortal, iqn string) (diskNumbers []uint32, err error)
	// SetMutualChapSecret sets the initiator's own secret, 12 to 16 bytes.
	SetMutualChapSecret(ctx context.Context, secret string) error
	// ListTargets returns every target the initiator knows. Addition.
	ListTargets(ctx context.Context) ([]TargetInfo, error)
}
