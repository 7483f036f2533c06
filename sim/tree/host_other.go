//go:build !linux

package tree

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

const (
	// hostLinks is set where a reparse point is also a host symbolic link.
	hostLinks = false
	// hostFoldsCase is set where a host lookup may ignore case.
	hostFoldsCase = true
	// voidPath is where the host links of unreachable targets lead; unused here.
	voidPath = ""
)

// hostObject is an object by its parent's root and its name. A folder is
// opened at its first use, because an open folder cannot be removed everywhere.
type hostObject struct {
	parent *hostObject // nil for a volume's folder
	path   string      // of a volume's folder only
	name   string
	root   *os.Root
}

func openHostFolder(path string) (*hostObject, hostStat, error) {
	object := &hostObject{path: path}
	stat, err := object.stat()
	if err == nil && stat.kind != hostFolder {
		err = fs.ErrNotExist
	}
	return object, stat, err
}

// fullPath is the host path, for what the host can do by path only.
func (o *hostObject) fullPath() string {
	if o.parent == nil {
		return o.path
	}
	return filepath.Join(o.parent.fullPath(), o.name)
}

// folder returns the open folder of o.
func (o *hostObject) folder() (*os.Root, error) {
	if o.root != nil {
		return o.root, nil
	}
	var err error
	if o.parent == nil {
		o.root, err = os.OpenRoot(o.path)
		return o.root, err
	}
	parent, err := o.parent.folder()
	if err != nil {
		return nil, err
	}
	o.root, err = parent.OpenRoot(o.name)
	return o.root, err
}

func (o *hostObject) open(name string) (*hostObject, hostStat, error) {
	child := &hostObject{parent: o, name: name}
	stat, err := o.statChild(name)
	if stat.kind == hostLink { // whose number the host may not tell
		sum := sha256.Sum256([]byte(child.fullPath()))
		stat.id = [16]byte(sum[:])
	}
	return child, stat, err
}

func (o *hostObject) stat() (hostStat, error) {
	if o.parent != nil {
		return o.parent.statChild(o.name)
	}
	root, err := o.folder()
	if err != nil {
		return hostStat{}, err
	}
	return statIn(root, ".")
}

// statChild describes a child without following it.
func (o *hostObject) statChild(name string) (hostStat, error) {
	root, err := o.folder()
	if err != nil {
		return hostStat{}, err
	}
	return statIn(root, name)
}

func statIn(root *os.Root, name string) (hostStat, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return hostStat{}, err
	}
	stat := hostStat{kind: hostSpecial, readOnly: info.Mode()&0o222 == 0}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		stat.kind, stat.sizeBytes = hostFile, info.Size()
	case mode.IsDir():
		stat.kind = hostFolder
	case mode&(fs.ModeSymlink|fs.ModeIrregular) != 0:
		stat.kind = hostLink
		return stat, nil
	default:
		return stat, nil
	}
	stat.id, err = hostID(root, name, info)
	return stat, err
}

// openList opens the folder that is open for listing.
func (o *hostObject) openList() (*os.File, error) {
	root, err := o.folder()
	if err != nil {
		return nil, err
	}
	return root.Open(".")
}

func (o *hostObject) mkdir(name string) error {
	root, err := o.folder()
	if err != nil {
		return err
	}
	return root.Mkdir(name, 0o755)
}

func (o *hostObject) create(name string) error {
	root, err := o.folder()
	if err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// symlink is never called where hostLinks is false.
func (o *hostObject) symlink(_, _ string) error { return fs.ErrInvalid }

// readlink does not read the links of a host whose links cannot be trusted.
func (o *hostObject) readlink() (string, error) { return "", fs.ErrInvalid }

// remove falls back to a path where the system has no removal by handle (Wine
// before 9 answers FileDispositionInformationEx with an error).
func (o *hostObject) remove(name string, _ bool) error {
	stat, err := o.statChild(name)
	if err != nil {
		return err
	}
	if stat.kind == hostLink {
		return fs.ErrPermission // some hosts would remove what it leads to
	}
	root, err := o.folder()
	if err != nil {
		return err
	}
	err = root.Remove(name)
	if err != nil && runtime.GOOS == "windows" {
		err = os.Remove(filepath.Join(o.fullPath(), name))
	}
	return err
}

func (o *hostObject) rename(name string, to *hostObject, newName string) error {
	return os.Rename(filepath.Join(o.fullPath(), name), filepath.Join(to.fullPath(), newName))
}

func (o *hostObject) openData(write bool) (*os.File, error) {
	root, err := o.parent.folder()
	if err != nil {
		return nil, err
	}
	flags := os.O_RDONLY
	if write {
		flags = os.O_WRONLY
	}
	return root.OpenFile(o.name, flags, 0)
}

// renamed notes where the object is now. An open folder may be of no use after
// that (Wine knows it by its path).
func (o *hostObject) renamed(parent *hostObject, name string) {
	o.close()
	o.parent, o.name = parent, name
}

// prepareRemoval lets go of the open folder, which would keep its name.
func (o *hostObject) prepareRemoval() { o.close() }

func (o *hostObject) close() {
	if o.root != nil {
		_ = o.root.Close()
		o.root = nil
	}
}
