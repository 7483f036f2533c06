package smb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/csikit"
)

// Folders below privateFolder.
const (
	folderRecords = "volumes" // a file for each volume
	folderNew     = "new"     // copies that are not complete
	folderTrash   = "trash"   // what is being removed
	folderArchive = "archive"

	// folderSnapshots is a base of its own, with a private folder of its own.
	folderSnapshots = "snapshots"
)

const (
	recordSuffix    = ".json"
	recordSuffixNew = ".new" // while it is written
	recordBytesMax  = 64 << 10
)

// record is what is known of a volume or snapshot.
type record struct {
	Name      string   `json:"name"` // of the call that made it
	SizeBytes int64    `json:"sizeBytes"`
	OnDelete  onDelete `json:"onDelete"`
	Source    string   `json:"source,omitempty"` // id of the volume or snapshot it is a copy of
	// CreatedAt is when making it began, the last time: all that was written to the
	// source before is in it.
	CreatedAt time.Time `json:"createdAt"`
	// Complete is set when it was made. Until then there is none.
	Complete bool `json:"complete"`
	// Retained is set when the volume was deleted and its folder left alone.
	Retained bool `json:"retained,omitempty"`
}

func recordPath(folder string) []string {
	return []string{privateFolder, folderRecords, folder + recordSuffix}
}

// readRecord is nil when there is none.
func (r *root) readRecord(folder string) (*record, error) {
	path := r.path(recordPath(folder)...)
	info, err := r.share.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, kindOf(err)
	}
	if info.IsDir() || isLink(info) || info.Size() > recordBytesMax {
		return nil, fmt.Errorf("%s is no record of a volume: %w", path, csikit.ErrPrecondition)
	}
	f, err := r.share.Open(path)
	if err != nil {
		return nil, kindOf(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, recordBytesMax))
	if err != nil {
		return nil, kindOf(err)
	}
	found := &record{}
	if err := json.Unmarshal(data, found); err != nil {
		return nil, fmt.Errorf("%s is no record of a volume: %w: %w", path, err, csikit.ErrPrecondition)
	}
	if err := checkOnDelete(found.OnDelete); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, err.Error(), csikit.ErrPrecondition)
	}
	return found, nil
}

// writeRecord replaces a record by a rename, so that there is the old one or the new.
func (r *root) writeRecord(folder string, content record) error {
	if err := r.makeFolders(privateFolder, folderRecords); err != nil {
		return err
	}
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	path := r.path(recordPath(folder)...)
	if err := r.writeFile(path+recordSuffixNew, data); err != nil {
		return kindOf(err)
	}
	return kindOf(r.share.Rename(path+recordSuffixNew, path))
}

func (r *root) writeFile(path string, data []byte) error {
	f, err := r.share.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (r *root) removeRecord(folder string) error {
	return ignoreMissing(r.share.Remove(r.path(recordPath(folder)...)))
}

// records calls use with the folder of each record of the base.
func (r *root) records(use func(folder string) error) error {
	there, err := r.exists(privateFolder, folderRecords)
	if !there || err != nil {
		return err
	}
	return r.each(r.path(privateFolder, folderRecords), func(info os.FileInfo) error {
		folder, found := strings.CutSuffix(info.Name(), recordSuffix)
		if found && checkPart(folder) == nil {
			return use(folder)
		}
		return nil
	})
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return kindOf(err)
}
