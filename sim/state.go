package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/csi-windows/csi-windows/sim/internal/folder"
	"github.com/csi-windows/csi-windows/sim/tree"
)

// Files of a node's folder.
const (
	stateFile   = "node.json"
	filesFile   = "files.json"
	lockFile    = "lock"
	disksFolder = "disks"
	driveRoots  = "drives"
)

// nodeState is what survives a restart of the process, beside the images, the
// content folders and the reparse points.
type nodeState struct {
	HostName   string `json:"hostName"`
	HostGUID   string `json:"hostGUID"`
	BIOSSerial string `json:"biosSerial"`
	SANPolicy  uint16 `json:"sanPolicy"`
	Off        bool   `json:"off,omitempty"`

	Disks []*diskState        `json:"disks"`
	Seen  map[string]seenDisk `json:"seen"`
	// OfflinePartitions are the volumes of partitions taken offline one by one.
	OfflinePartitions map[string]bool `json:"offlinePartitions,omitempty"`
	// SystemVolumes are the volumes of the mapped drives, by letter.
	SystemVolumes map[string]string `json:"systemVolumes"`

	Services   []*serviceState `json:"services"`
	SMBServers []*SMBServer    `json:"smbServers,omitempty"`
	Mappings   []*smbMapping   `json:"mappings,omitempty"`
	Targets    []*ISCSITarget  `json:"targets,omitempty"`
	ISCSI      iscsiState      `json:"iscsi"`
}

// newState is that of a fresh installation.
func newState(config *Config) nodeState {
	return nodeState{
		HostName: config.HostName, HostGUID: "{" + uuid.NewString() + "}", BIOSSerial: config.BIOSSerial,
		SANPolicy: policyOfflineShared, // the default since Windows Server 2016; Source: VDS_SAN_POLICY
		Seen:      map[string]seenDisk{}, SystemVolumes: map[string]string{}, OfflinePartitions: map[string]bool{},
		Services: defaultServices(),
		ISCSI:    iscsiState{NodeName: "iqn.1991-05.com.microsoft:" + strings.ToLower(config.HostName)},
	}
}

// loadState reads the state of the folder; ok is false on a new node.
func loadState(dir string) (state nodeState, ok bool, err error) {
	err = folder.ReadJSON(filepath.Join(dir, stateFile), &state)
	if errors.Is(err, fs.ErrNotExist) {
		return nodeState{}, false, nil
	}
	if err == nil {
		if err = state.complete(); err != nil {
			err = fmt.Errorf("%s: %w", stateFile, err)
		}
	}
	return state, err == nil, err
}

// complete fills in what older states lack, and refuses what only a hand can
// have written.
func (s *nodeState) complete() error {
	if s.Seen == nil {
		s.Seen = map[string]seenDisk{}
	}
	if s.SystemVolumes == nil {
		s.SystemVolumes = map[string]string{}
	}
	if s.OfflinePartitions == nil {
		s.OfflinePartitions = map[string]bool{}
	}
	if slices.Contains(s.Disks, nil) || slices.Contains(s.Services, nil) || slices.Contains(s.SMBServers, nil) ||
		slices.Contains(s.Mappings, nil) || slices.Contains(s.Targets, nil) || slices.Contains(s.ISCSI.Portals, nil) ||
		slices.Contains(s.ISCSI.Found, nil) || slices.Contains(s.ISCSI.Sessions, nil) || slices.Contains(s.ISCSI.Logins, nil) {
		return errors.New("an entry of a list is missing")
	}
	for letter := range s.SystemVolumes {
		if len(letter) != 1 || !isLetter(uint16(letter[0])) {
			return fmt.Errorf("%q is no drive letter", letter)
		}
	}
	return nil
}

// saveLocked writes the state, if it changed.
func (n *Node) saveLocked() error {
	n.state.Disks = n.state.Disks[:0]
	for _, d := range n.disks {
		n.state.Disks = append(n.state.Disks, &d.diskState)
	}
	n.state.Off = n.off.Load()
	data, err := json.MarshalIndent(&n.state, "", " ")
	if err != nil {
		return fmt.Errorf("save node: %w", err)
	}
	if bytes.Equal(data, n.saved) {
		return nil
	}
	if err := folder.Write(filepath.Join(n.config.Dir, stateFile), data); err != nil {
		return fmt.Errorf("save node: %w", err)
	}
	n.saved = data
	return nil
}

// filesSaver keeps the reparse points and letters of the name space on disk. It
// has a lock of its own, because the name space calls it at any time.
type filesSaver struct {
	mu   sync.Mutex
	path string
	last []byte
}

// save writes what snapshot returns. The snapshot is taken under the lock, so
// that of two saves the later one writes the later state.
func (s *filesSaver) save(snapshot func() tree.State) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := json.Marshal(snapshot())
	if err != nil {
		return err
	}
	if bytes.Equal(data, s.last) {
		return nil
	}
	if err := folder.Write(s.path, data); err != nil {
		return err
	}
	s.last = data
	return nil
}

// imageSize is the size of a medium.
func imageSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
