package smb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/node"
)

// storageHealthTimeout bounds the look at one server from a node.
const storageHealthTimeout = 5 * time.Second

// GetCapacity implements csikit.CapacityReporter: what is free where the parameters
// say, or in the configured source that has most.
func (b *Backend) GetCapacity(ctx context.Context, request csikit.CapacityRequest) (csikit.Capacity, error) {
	places := b.places()
	if request.Parameters[paramSource] != "" || len(places) <= 1 {
		at, _, err := b.parameters(request.Parameters)
		if err != nil {
			return csikit.Capacity{}, err
		}
		places = []location{at}
	}
	var most csikit.Capacity
	for _, at := range places {
		err := b.in(ctx, at, nil, func(r *root) error {
			sizes, err := r.share.Statfs(r.at.folder())
			if err != nil {
				return kindOf(err)
			}
			most.AvailableBytes = max(most.AvailableBytes, int64(sizes.BlockSize()*sizes.AvailableBlockCount()))
			return nil
		})
		if err != nil {
			return csikit.Capacity{}, fmt.Errorf("capacity of %s: %w", at, err)
		}
	}
	return most, nil
}

// Probe implements csikit.Prober: every configured source can be reached. Sources
// without credentials of their own are passed over.
func (b *Backend) Probe(ctx context.Context) error {
	for _, source := range b.sources {
		if source.credentials == nil {
			continue
		}
		if err := b.in(ctx, source.at, nil, func(*root) error { return nil }); err != nil {
			return fmt.Errorf("source %s: %s: %w", source.at, err.Error(), csikit.ErrUnavailable)
		}
	}
	return nil
}

// CheckCapability implements csikit.CapabilityChecker: a share serves any number of
// nodes in every mode.
func (b *Backend) CheckCapability(capability csikit.Capability) error {
	switch capability.FileSystem {
	case "", "smb", "cifs":
		return nil
	}
	return fmt.Errorf("file system %q of a share cannot be chosen: %w", capability.FileSystem, csikit.ErrInvalid)
}

// VolumeHealth implements csikit.HealthReporter. A server, share or source that is away
// takes its volumes with it; wrong credentials say nothing of a volume.
func (b *Backend) VolumeHealth(ctx context.Context, request csikit.VolumeRequest) (csikit.VolumeHealth, error) {
	health := csikit.VolumeHealth{VolumeID: request.VolumeID}
	key, err := b.key(request.VolumeID)
	if err != nil {
		return health, err
	}
	reached := false
	err = b.in(ctx, key.at, request.Secrets, func(r *root) error {
		reached = true
		e, err := r.entry(key.at, key.folder)
		if err == nil {
			health.Conditions, err = e.conditions()
		}
		return err
	})
	if err != nil && !reached && ctx.Err() == nil && isAway(err) {
		health.Conditions = []node.HealthCondition{{Status: node.HealthInaccessible, Reason: "ShareUnreachable", Message: err.Error()}}
		return health, nil
	}
	if err != nil {
		return health, fmt.Errorf("volume %q: %w", request.VolumeID, err)
	}
	return health, nil
}

func isAway(err error) bool {
	return errors.Is(err, csikit.ErrUnavailable) || errors.Is(err, csikit.ErrNotFound) || errors.Is(err, csikit.ErrPrecondition)
}

// conditions is what is wrong with a volume, or ErrNotFound.
func (e *entry) conditions() ([]node.HealthCondition, error) {
	switch {
	case e.found == nil && e.there:
		return []node.HealthCondition{{Status: node.HealthDegraded, Reason: "RecordMissing",
			Message: "The driver has no record of this folder: nodes can use it, but it can be neither changed nor deleted."}}, nil
	case e.isLost():
		return []node.HealthCondition{{Status: node.HealthDataLoss, Reason: "FolderMissing",
			Message: "The folder of this volume is gone, and not by a call of this driver."}}, nil
	case e.found == nil || !e.exists():
		return nil, csikit.ErrNotFound
	}
	return nil, nil
}

// isLost reports whether the folder of a volume went away without a call.
func (e *entry) isLost() bool {
	return e.found != nil && e.found.Complete && !e.found.Retained && !e.there && !e.deleting
}

// ListVolumeHealth implements csikit.HealthReporter: the volumes of the configured
// sources whose folders are gone. A source that is away is an error: nobody knows
// then which volumes there are.
func (b *Backend) ListVolumeHealth(ctx context.Context, page csikit.Page) (csikit.HealthPage, error) {
	entries, next, err := b.list(ctx, query{places: b.places(), page: page, base: itself, wants: (*entry).isLost})
	result := csikit.HealthPage{NextToken: next}
	for _, e := range entries {
		conditions, err := e.conditions()
		if err != nil {
			return csikit.HealthPage{}, err
		}
		result.Volumes = append(result.Volumes, csikit.VolumeHealth{VolumeID: volumeKey{e.at, e.folder}.String(), Conditions: conditions})
	}
	return result, err
}

// StorageHealth implements csikit.NodeStorageHealth: which servers of the configured
// sources take no connection from here. It tells nothing of credentials: a node has
// those of a volume only while it is staged.
func (b *Backend) StorageHealth(ctx context.Context, _ map[string]string) ([]csikit.StorageCondition, error) {
	servers := map[string]string{} // name by address
	for _, source := range b.sources {
		servers[b.nodeAddress(source.at)] = source.at.server
	}
	var mutex sync.Mutex
	var group sync.WaitGroup
	var away []string
	for address, server := range servers {
		group.Go(func() {
			if err := reach(ctx, address); err != nil {
				mutex.Lock()
				defer mutex.Unlock()
				away = append(away, fmt.Sprintf("server %s: %v", server, err))
			}
		})
	}
	group.Wait()
	if len(away) == 0 || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	slices.Sort(away)
	return []csikit.StorageCondition{{Unreachable: len(away) == len(servers), Reason: "ServerUnreachable", Message: strings.Join(away, "; ")}}, nil
}

func reach(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, storageHealthTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// nodeAddress is where Windows connects to a server: always at the usual port.
func (b *Backend) nodeAddress(at location) string {
	if address := b.dial[at.host()]; address != "" {
		return address
	}
	return net.JoinHostPort(at.server, strconv.Itoa(portDefault))
}

// CanStat implements csikit.StatsChecker: the sizes of a share are told by an addition
// to the official APIs of csi-proxy.
func (b *Backend) CanStat(info node.Info) bool { return !slices.Contains(info.Lacks, "GetPathStats") }
