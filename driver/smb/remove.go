package smb

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	smb2 "github.com/cloudsoda/go-smb2"

	"github.com/csi-windows/csi-windows/csikit"
)

// A folder on a server may be a link to another. Windows says so; Samba shows what
// the link leads to, and nothing else. So nothing is emptied before it is seen that
// it is no link. There are two ways to see that, for there are two kinds of server:
//
//   - On POSIX a folder may be renamed to the name of an empty folder, and a link may
//     not. Windows refuses both.
//   - On Windows, and often on Samba, a folder cannot be renamed while something in it
//     is open. A link to it can: what is open is somewhere else.

// errStop ends a walk early.
var errStop = errors.New("stop")

// moveReal renames a folder that holds something. A link to one stays where it is and
// is ErrPrecondition.
func (r *root) moveReal(from, to string) error {
	if err := r.share.Mkdir(to, 0o777); err != nil {
		return kindOf(err)
	}
	err := r.share.Rename(from, to)
	if err == nil {
		return nil
	}
	if err := r.share.Remove(to); err != nil {
		return kindOf(err)
	}
	return r.moveHeld(from, to)
}

func (r *root) moveHeld(from, to string) error {
	held, err := r.openEntry(from)
	if err != nil {
		return err
	}
	err = r.share.Rename(from, to)
	if err := held.Close(); err != nil {
		return kindOf(err)
	}
	if err == nil {
		return errors.Join(r.rename(to, from),
			fmt.Errorf("%s is a link to another folder of the server, which is not touched: %w", from, csikit.ErrPrecondition))
	}
	if !errors.Is(err, os.ErrPermission) {
		return kindOf(err)
	}
	return r.rename(from, to) // now it must work: else it was not the entry that held it
}

// openEntry opens something in a folder.
func (r *root) openEntry(path string) (*smb2.File, error) {
	name := ""
	err := r.each(path, func(info os.FileInfo) error {
		if isLink(info) {
			return nil
		}
		name = info.Name()
		return errStop
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("%s %w: %w", path, errHidden, csikit.ErrPrecondition)
	}
	held, err := r.share.Open(path + `\` + name)
	return held, kindOf(err)
}

// errHidden is said of a folder in which a server hides something, as Samba does
// with links that lead out of the share.
var errHidden = errors.New("looks empty, and the server says it is not: look there for links that lead out of the share")

// rename fails with ErrInUse while something in the folder is open: servers answer
// that access is denied.
func (r *root) rename(from, to string) error {
	err := r.share.Rename(from, to)
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("a file in it is open, or the user may not rename it: %w: %w", err, csikit.ErrInUse)
	}
	return kindOf(err)
}

// trash is the folder of the driver in which the folder of a volume is emptied.
type trash struct {
	*root
	path string
}

func (r *root) trash(folder string) trash {
	return trash{r, r.path(privateFolder, folderTrash, folder)}
}

// empty removes everything from the trash, and itself.
func (t trash) empty() error {
	if _, err := t.share.Lstat(t.path); err != nil {
		return ignoreMissing(err)
	}
	return t.drain(t.path)
}

// drain removes what is in a folder that is no link, and the folder. Folders in it go
// to the top of the trash first, so paths do not get long.
func (t trash) drain(path string) error {
	for {
		removed := 0
		err := t.each(path, func(info os.FileInfo) error {
			removed++
			return t.removeEntry(path+`\`+info.Name(), info)
		})
		if err != nil {
			return err
		}
		err = t.share.Remove(path)
		if responseCode(err) != statusDirectoryNotEmpty {
			return ignoreMissing(err)
		}
		if removed == 0 {
			return fmt.Errorf("%s %w: %w", path, errHidden, csikit.ErrPrecondition)
		}
	}
}

func (t trash) removeEntry(path string, info os.FileInfo) error {
	err := t.share.Remove(path) // a link goes, not what it leads to
	if !isFolder(info) || responseCode(err) != statusDirectoryNotEmpty {
		return ignoreMissing(err)
	}
	moved := t.path + `\` + freshName()
	if err := t.moveReal(path, moved); err != nil {
		return err
	}
	return t.drain(moved)
}

func freshName() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}
