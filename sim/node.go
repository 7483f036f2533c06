package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/csi-windows/csi-windows/internal/filelock"
	"github.com/csi-windows/csi-windows/sim/internal/folder"
	"github.com/csi-windows/csi-windows/sim/tree"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// Config describes a node. Host name and serial number count when the node is
// new; the rest at every Open.
type Config struct {
	// Dir is the folder with the node's state; it is made when missing.
	Dir string
	// Logger takes what happens behind the calls; nil discards it.
	Logger *slog.Logger
	// HostName is inside every storage ObjectId; empty means SIMNODE.
	HostName string
	// BIOSSerial is Win32_BIOS.SerialNumber; empty means a fixed text.
	BIOSSerial string
	// Drives maps drive letters onto real folders, which are then the drives'
	// content. C is always there, by default in Dir.
	Drives map[byte]string
	// ArrivalPolls is how many looks at the storage a new volume or iSCSI disk
	// takes to arrive; 0 means 2, negative none.
	ArrivalPolls int
	// ServicePolls is how many status queries a service takes to start or stop;
	// 0 means 2, negative none.
	ServicePolls int
	// SMBErrorsAsReturnValue surfaces the errors of MSFT_SmbGlobalMapping as
	// return values instead of failing HRESULTs; Windows' choice over raw COM is
	// not documented.
	SMBErrorsAsReturnValue bool
	// SMBMappingLimit is how many mappings fit before error 8; 0 means no limit.
	SMBMappingLimit int
	// AutomountLetters gives new volumes a drive letter by themselves, as the
	// mount manager does unless NoAutoMount is set on the machine.
	AutomountLetters bool
	// DiskWriteCache keeps partition tables and boot sectors in the disk's write
	// cache until a flush, so that a power cut can lose them.
	DiskWriteCache bool
}

// Node is a simulated Windows node. It implements cim.Session, win32.API and
// Controller, and is safe for concurrent use.
type Node struct {
	config Config
	log    *slog.Logger
	lock   io.Closer
	gate   gate
	schema schema
	ioctls map[uint32]ioctl
	files  *tree.Tree
	saver  filesSaver
	// arriving counts devices on their way; see tickLocked.
	arriving atomic.Int32

	mu        sync.RWMutex
	state     nodeState
	saved     []byte
	disks     []*disk // by number
	devices   map[win32.Handle]*device
	nextID    win32.Handle
	off       atomic.Bool
	closed    bool
	restoring bool // devices were there before; nothing arrives
}

var (
	_ cim.Session = (*Node)(nil)
	_ win32.API   = (*Node)(nil)
	_ Controller  = (*Node)(nil)
)

// Open opens a node, or makes a new one when its folder is empty. A folder that
// another node has open is refused.
func Open(_ context.Context, config Config) (*Node, error) {
	if err := config.complete(); err != nil {
		return nil, fmt.Errorf("open node %s: %w", config.Dir, err)
	}
	lock, err := filelock.Lock(filepath.Join(config.Dir, lockFile))
	if err != nil {
		return nil, fmt.Errorf("open node %s: %w", config.Dir, err)
	}
	n := &Node{
		config: config, log: config.Logger, lock: lock, schema: newSchema(), ioctls: deviceIoctls(),
		saver:   filesSaver{path: filepath.Join(config.Dir, filesFile)},
		devices: map[win32.Handle]*device{},
	}
	n.files = tree.New(tree.Config{Changed: n.filesChanged})
	if err := n.load(); err != nil {
		_ = n.Close()
		return nil, fmt.Errorf("open node %s: %w", config.Dir, err)
	}
	return n, nil
}

// complete fills in defaults and makes the folders.
func (c *Config) complete() error {
	if c.Dir == "" {
		return errors.New("no folder given")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	c.Dir = dir
	drives := make(map[byte]string, len(c.Drives))
	for letter, mapped := range c.Drives {
		if !isLetter(uint16(letter)) {
			return fmt.Errorf("drive %q is no letter", letter)
		}
		drives[letter&^0x20] = mapped
	}
	c.Drives = drives
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	defaultText(&c.HostName, "SIMNODE")
	defaultText(&c.BIOSSerial, "SIM-0000-0001")
	for _, polls := range []*int{&c.ArrivalPolls, &c.ServicePolls} {
		if *polls == 0 {
			*polls = 2
		}
	}
	if err := folder.CheckOwn(dir, stateFile, filesFile, lockFile, disksFolder, driveRoots); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(dir, disksFolder), 0o755)
}

func defaultText(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// load brings the node to the state of its folder.
func (n *Node) load() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	state, known, err := loadState(n.config.Dir)
	if err != nil {
		return err
	}
	if n.state = state; !known {
		n.state = newState(&n.config)
	}
	n.off.Store(n.state.Off)
	var files tree.State
	if err := folder.ReadJSON(n.saver.path, &files); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n.files.Restore(files)
	n.files.SetRemote(n.remote)
	n.restoring = true
	defer func() { n.restoring = false }()
	if err := n.prepareSystemDisk(); err != nil {
		return fmt.Errorf("system disk: %w", err)
	}
	for _, d := range n.state.Disks {
		if err := n.reopenLocked(*d); err != nil {
			n.log.Warn("disk is gone", "image", d.Spec.Image, "error", err)
		}
	}
	for letter, volume := range n.state.SystemVolumes {
		n.files.SetDrive(letter[0], volume)
	}
	return n.saveLocked()
}

// reopenLocked opens a disk that was attached when the process ended.
func (n *Node) reopenLocked(state diskState) error {
	d := &disk{diskState: state}
	if err := n.openDiskLocked(d); err != nil {
		return err
	}
	n.disks = append(n.disks, d)
	if n.off.Load() {
		return nil
	}
	return n.refreshPartsLocked(d)
}

// filesChanged keeps what the name space says has changed.
func (n *Node) filesChanged() {
	if err := n.saver.save(n.files.Snapshot); err != nil {
		n.log.Error("file name space not saved", "error", err)
	}
}

// remote answers for `\\server\share`.
func (n *Node) remote(_ context.Context, server, share string) (string, uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, code := n.remoteFolderLocked(server, share)
	if code != 0 {
		return "", code
	}
	return s.Folder, 0
}

// Close ends the node without shutting it down: it goes on as it is at the next
// Open. Calls that hang in a fault are released. A second Close does nothing.
func (n *Node) Close() error {
	_ = n.ClearFaults(context.Background())
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	n.off.Store(true)
	n.files.SetRemote(nil)
	n.files.Close()
	clear(n.devices)
	var errs []error
	for _, d := range n.disks {
		errs = append(errs, d.img.Close())
	}
	n.disks = nil
	return errors.Join(append(errs, n.lock.Close())...)
}

// accessPathsLocked are the drive root and mounted folders of a volume.
func (n *Node) accessPathsLocked(v *volume) []string { return n.files.MountPaths(v.name) }

// driveFolder is the real folder of a mapped drive.
func (n *Node) driveFolder(letter string) string {
	if mapped, ok := n.config.Drives[letter[0]]; ok {
		return mapped
	}
	return filepath.Join(n.config.Dir, driveRoots, letter)
}

// driveLetters are the letters of the system disk's volumes, C first.
func (n *Node) driveLetters() []string {
	letters := []string{"C"}
	for letter := byte('A'); letter <= 'Z'; letter++ {
		if _, mapped := n.config.Drives[letter]; mapped && letter != 'C' {
			letters = append(letters, string(letter))
		}
	}
	return letters
}
