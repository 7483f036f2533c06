package iscsi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/internal/filelock"
	"github.com/csi-windows/csi-windows/node"
)

// Name is the usual name of the driver.
const Name = "iscsi.csi-windows.io"

// Config is what a controller needs. A node needs nothing.
type Config struct {
	// PoolFile lists the units that may be handed out, in YAML or JSON. Empty: there
	// are static volumes only.
	PoolFile string
	// StateFolder keeps the records of what was handed out; it is made when
	// missing. It must last longer than the process and the machine. Needed with
	// PoolFile.
	StateFolder string
}

// Driver hands out units of a pool and knows static ones.
type Driver struct {
	Node
	poolFile string
	lock     io.Closer // nil without a pool

	mu      sync.Mutex
	records *records
}

var (
	_ csikit.Backend          = (*Driver)(nil)
	_ csikit.VolumeLister     = (*Driver)(nil)
	_ csikit.CapacityReporter = (*Driver)(nil)
	_ csikit.ParameterChecker = (*Driver)(nil)
	_ csikit.NodeBackend      = (*Driver)(nil)
)

// New opens the records and checks the pool file. It fails when another process has
// the records open, and when a file is damaged.
func New(config Config) (*Driver, error) {
	d := &Driver{poolFile: config.PoolFile, records: &records{units: map[string]record{}}}
	if config.PoolFile == "" {
		return d, nil
	}
	if config.StateFolder == "" {
		return nil, errors.New("a pool needs a folder for the records of what was handed out")
	}
	if _, err := readPool(config.PoolFile); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(config.StateFolder, 0o700); err != nil {
		return nil, err
	}
	lock, err := filelock.Lock(filepath.Join(config.StateFolder, "lock"))
	if err != nil {
		return nil, fmt.Errorf("records in %s: %w", config.StateFolder, err)
	}
	if d.records, err = openRecords(config.StateFolder); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	d.lock = lock
	return d, nil
}

// Close ends the use of the records. Calls after it are wrong.
func (d *Driver) Close() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

// Node is the node's part of the driver. It keeps nothing and needs no settings.
type Node struct{}

// ContextPortals is the key of a volume's context that names ways to the target, as
// ParsePortals reads them. They are added to those of the volume id.
const ContextPortals = "portals"

// Persistent is the key of a volume's context, and the parameter of a storage class,
// that says with "true" that the login lasts over restarts of the node. It is "false"
// when it is left out.
const Persistent = "persistent"

// NodeSource implements csikit.NodeBackend.
func (Node) NodeSource(_ context.Context, request csikit.NodeSourceRequest) (node.Source, error) {
	unit, err := ParseUnit(request.VolumeID)
	isEnough := err == nil && len(unit.Portals) > 0
	switch {
	case request.Ending && isEnough:
		return sourceOf(unit), nil
	case request.Ending:
		return node.Source{}, nil
	case err != nil:
		return node.Source{}, fmt.Errorf("%w: %w", csikit.ErrNotFound, err)
	}
	if unit.Portals, err = allPortals(unit, request.VolumeContext[ContextPortals]); err != nil {
		return node.Source{}, err
	}
	source := sourceOf(unit)
	if source.ISCSI.CHAP, source.ISCSI.MutualSecret, err = credentials(request.Secrets); err != nil {
		return node.Source{}, err
	}
	source.ISCSI.CHAP.Persistent, err = isPersistent("volume_context", request.VolumeContext)
	return source, err
}

func sourceOf(u Unit) node.Source {
	return node.Source{ISCSI: &node.ISCSISource{Portals: u.Portals, IQN: u.IQN, LUN: u.LUN}}
}
