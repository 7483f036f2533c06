package cloud

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/csi-windows/csi-windows/sim/internal/folder"
)

// Node is a node the cloud knows.
type Node struct {
	// Name is the node's; letters, digits, '.', '-' and '_'.
	Name string `json:"name"`
	Zone string `json:"zone,omitempty"` // empty means DefaultZone
	// Control is where the node takes disks: an address of package sim/control.
	Control string `json:"control,omitempty"`
	// MaxDisks is how many disks of the cloud the node takes; 0 means any number.
	MaxDisks int `json:"maxDisks,omitempty"`
}

// AddNode makes a node known to the cloud in a folder, or replaces what it knows
// of it. The cloud may be open meanwhile, by any process: it looks at every
// attach. One caller at a time for one node.
func AddNode(dir string, n Node) error {
	if !ValidName(n.Name) || n.Zone != "" && !ValidName(n.Zone) || n.MaxDisks < 0 {
		return fmt.Errorf("add node %q in zone %q with %d disks at most: %w", n.Name, n.Zone, n.MaxDisks, ErrInvalid)
	}
	if err := checkFolder(dir); err != nil {
		return fmt.Errorf("add node to cloud %s: %w", dir, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, nodesFolder), 0o755); err != nil {
		return fmt.Errorf("add node: %w", err)
	}
	if err := folder.WriteJSON(nodeRecord(dir, n.Name), n); err != nil {
		return fmt.Errorf("add node: %w", err)
	}
	return nil
}

// RemoveNode makes the cloud forget a node: it is gone for good, and a disk that
// it had can be detached without it.
func RemoveNode(dir, name string) error {
	if !ValidName(name) {
		return nil
	}
	if err := os.Remove(nodeRecord(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove node: %w", err)
	}
	return nil
}

func nodeRecord(dir, name string) string { return filepath.Join(dir, nodesFolder, name+".json") }

// Node returns what is known of a node now, or ErrNotFound.
func (c *Cloud) Node(_ context.Context, name string) (Node, error) {
	if !ValidName(name) {
		return Node{}, fmt.Errorf("node %q: %w", name, ErrNotFound)
	}
	var n Node
	err := folder.ReadJSON(nodeRecord(c.dir, name), &n)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return Node{}, fmt.Errorf("node %q: %w", name, err)
	}
	if n.Zone == "" {
		n.Zone = DefaultZone
	}
	n.Name = name
	return n, nil
}

// placeNameMaxBytes leaves room for a suffix in a file's name.
const placeNameMaxBytes = 192

// ValidName reports whether a name may be that of a node or a zone: up to 192
// letters, digits, '-', '_' and '.', the last not first. It can be that of a file
// anywhere.
func ValidName(name string) bool {
	if name == "" || len(name) > placeNameMaxBytes || strings.HasPrefix(name, ".") {
		return false
	}
	for _, r := range name {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !plain && !strings.ContainsRune("-_.", r) {
			return false
		}
	}
	return true
}
