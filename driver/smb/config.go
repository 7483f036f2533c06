package smb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/csikit"
)

// Parameters of a storage class. There are no others of ours. The second one may be
// changed later.
const (
	paramSource   = "source"
	paramOnDelete = "onDelete"

	// paramsOfProvisioner are what the provisioner tells of claim and volume.
	paramsOfProvisioner = "csi.storage.k8s.io/"
)

// onDelete is what becomes of a volume's data when it is deleted.
type onDelete string

const (
	onDeleteRemove  onDelete = "delete"
	onDeleteArchive onDelete = "archive" // it is moved to .csi-windows\archive of the base
	onDeleteRetain  onDelete = "retain"  // it stays where it is
)

const (
	callTimeoutDefault = 10 * time.Minute
	sizeBytesDefault   = 1 << 30
	portDefault        = 445
)

// Config is what a Backend works with.
type Config struct {
	// Sources are where volumes may be made: in each, and in folders below it. At
	// least one, unless AnySource is set. Their credentials are used by
	// calls that bring no secrets; ListVolumes lists their volumes.
	Sources []Source
	// AnySource lets storage classes and volume ids name any other server and
	// share, for which they bring the secrets.
	AnySource bool
	// Dial says where the controller reaches a server, as host:port, when that is
	// not port 445 of the server's name. The keys are server[:port] as in a source.
	// Nodes always use the name.
	Dial map[string]string
	// RequireEncryption refuses to name or send anything of a volume to a server
	// that does not encrypt.
	RequireEncryption bool
	// CallTimeout bounds calls that come without a deadline; 0 is ten minutes.
	CallTimeout time.Duration
	Logger      *slog.Logger // nil: nothing is logged
}

// Source is a place for volumes with credentials.
type Source struct {
	// Path is `//server[:port]/share[/folder…]`. The folder must exist.
	Path string
	// Credentials is asked at every call, so that a new password is used at once.
	// Nil when every call brings secrets.
	Credentials func(ctx context.Context) (Credentials, error)
}

// Backend makes volumes of folders of SMB shares.
type Backend struct {
	config  Config
	sources []parsedSource
	dial    map[string]string // Config.Dial, in lower case
	pool    *pool
}

type parsedSource struct {
	at          location
	credentials func(ctx context.Context) (Credentials, error)
}

// New makes a Backend. It connects to nothing.
func New(config Config) (*Backend, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.CallTimeout <= 0 {
		config.CallTimeout = callTimeoutDefault
	}
	b := &Backend{config: config, dial: map[string]string{}, pool: newPool(config.RequireEncryption)}
	if len(config.Sources) == 0 && !config.AnySource {
		return nil, fmt.Errorf("no source is configured, and others are not allowed: %w", csikit.ErrInvalid)
	}
	for _, source := range config.Sources {
		at, err := parseLocation(source.Path)
		if err != nil {
			return nil, err
		}
		b.sources = append(b.sources, parsedSource{at, source.Credentials})
	}
	for server, address := range config.Dial {
		b.dial[strings.ToLower(server)] = address
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("address %q of server %q is not host:port: %w", address, server, csikit.ErrInvalid)
		}
	}
	return b, nil
}

// Close lets go of the connections. Calls in flight end first or fail.
func (b *Backend) Close() error {
	b.pool.close()
	return nil
}

// address is where the controller reaches a location's server.
func (b *Backend) address(at location) string {
	if address := b.dial[at.host()]; address != "" {
		return address
	}
	port := at.port
	if port == 0 {
		port = portDefault
	}
	return net.JoinHostPort(at.server, strconv.Itoa(port))
}

// checkAllowed refuses locations outside the configured sources.
func (b *Backend) checkAllowed(at location) error {
	if b.config.AnySource || b.sourceOf(at) != nil {
		return nil
	}
	return fmt.Errorf("source %q is in none that is configured: %w", at, csikit.ErrInvalid)
}

// sourceOf is the configured source that holds a location.
func (b *Backend) sourceOf(at location) *parsedSource {
	for i := range b.sources {
		if b.sources[i].at.holds(at) {
			return &b.sources[i]
		}
	}
	return nil
}

// key is the allowed volume of an id.
func (b *Backend) key(id string) (volumeKey, error) {
	key, err := parseVolumeID(id)
	if err != nil {
		return volumeKey{}, err
	}
	if err := b.checkAllowed(key.at); err != nil {
		return volumeKey{}, fmt.Errorf("volume %q: %w", id, err)
	}
	return key, nil
}

// snapshotKey is the allowed snapshot of an id.
func (b *Backend) snapshotKey(id string) (snapshotKey, error) {
	key, err := parseSnapshotID(id)
	if err != nil {
		return snapshotKey{}, err
	}
	if err := b.checkAllowed(key.at); err != nil {
		return snapshotKey{}, fmt.Errorf("snapshot %q: %w", id, err)
	}
	return key, nil
}

// CheckParameters implements csikit.ParameterChecker.
func (b *Backend) CheckParameters(parameters map[string]string) error {
	_, _, err := b.parameters(parameters)
	return err
}

// CheckMutableParameters implements csikit.Modifier.
func (b *Backend) CheckMutableParameters(parameters map[string]string) error {
	_, err := onDeleteOf(parameters, onDeleteRemove)
	return err
}

// parameters are those of a storage class.
func (b *Backend) parameters(parameters map[string]string) (at location, mode onDelete, err error) {
	mode = onDeleteRemove
	for name, value := range parameters {
		switch name {
		case paramSource:
			if at, err = parseLocation(value); err != nil {
				return at, mode, fmt.Errorf("parameter %s: %w", name, err)
			}
		case paramOnDelete:
			mode = onDelete(value)
		default:
			if strings.HasPrefix(name, paramsOfProvisioner) {
				continue
			}
			return at, mode, fmt.Errorf("parameter %q is unknown; there are %s and %s: %w", name, paramSource, paramOnDelete, csikit.ErrInvalid)
		}
	}
	if at.server == "" {
		if len(b.sources) != 1 {
			return at, mode, fmt.Errorf("parameter %s is missing: %w", paramSource, csikit.ErrInvalid)
		}
		at = b.sources[0].at
	}
	return at, mode, errors.Join(checkOnDelete(mode), b.checkAllowed(at))
}

// onDeleteOf is what mutable parameters say, or else as it was.
func onDeleteOf(mutable map[string]string, mode onDelete) (onDelete, error) {
	for name, value := range mutable {
		switch {
		case name == paramOnDelete:
			mode = onDelete(value)
		case !strings.HasPrefix(name, paramsOfProvisioner):
			return mode, fmt.Errorf("mutable parameter %q is unknown; there is %s: %w", name, paramOnDelete, csikit.ErrInvalid)
		}
	}
	return mode, checkOnDelete(mode)
}

func checkOnDelete(mode onDelete) error {
	switch mode {
	case onDeleteRemove, onDeleteArchive, onDeleteRetain:
		return nil
	}
	modes := strings.Join([]string{string(onDeleteRemove), string(onDeleteArchive), string(onDeleteRetain)}, ", ")
	return fmt.Errorf("parameter %s is %q; it is one of %s: %w", paramOnDelete, string(mode), modes, csikit.ErrInvalid)
}
