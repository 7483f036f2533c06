package iscsi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/csi-windows/csi-windows/driver/internal/durable"
)

// state is what has become of a unit that was handed out.
type state string

const (
	stateUsed     state = "used"
	stateReleased state = "released" // may hold data of its last user
)

// record is one unit that was handed out, as it was then.
type record struct {
	VolumeID  string            `json:"volumeID"`
	Name      string            `json:"name"` // of the volume
	State     state             `json:"state"`
	SizeBytes int64             `json:"sizeBytes"`
	Context   map[string]string `json:"context,omitempty"`
	// Wiped is the number of the pool file when the unit was handed out, or released.
	Wiped int64 `json:"wiped"`
	// Unseen is set when the unit was not in the pool file when it was released. The
	// number it comes back with may be of a wipe before that: it becomes Wiped.
	Unseen bool `json:"unseen,omitempty"`
}

// recordsFile is the content of the file of records.
type recordsFile struct {
	Version int               `json:"version"`
	Units   map[string]record `json:"units"` // by Unit.key
}

const recordsVersion = 1

// records are the units that were handed out. The file is written before an answer
// is given, and read once: one process at a time has the folder.
type records struct {
	path  string
	units map[string]record
}

// openRecords reads the records of a folder. A damaged file is an error: without
// records, data of one user would be handed to the next.
func openRecords(folder string) (*records, error) {
	r := &records{path: filepath.Join(folder, "allocations.json"), units: map[string]record{}}
	data, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	var file recordsFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.path, err)
	}
	if file.Version != recordsVersion {
		return nil, fmt.Errorf("read %s: version %d is not known, want %d", r.path, file.Version, recordsVersion)
	}
	for key, one := range file.Units {
		u, err := ParseUnit(one.VolumeID)
		if err != nil || u.key() != key || one.State != stateUsed && one.State != stateReleased {
			return nil, fmt.Errorf("read %s: the record of %q is damaged", r.path, key)
		}
		r.units[key] = one
	}
	return r, nil
}

// set changes one record, on the medium first.
func (r *records) set(key string, to record) error {
	changed := maps.Clone(r.units)
	changed[key] = to
	data, err := json.MarshalIndent(recordsFile{Version: recordsVersion, Units: changed}, "", " ")
	if err != nil {
		return err
	}
	if err := durable.Write(r.path, data); err != nil {
		return err
	}
	r.units = changed
	return nil
}

// isFree reports whether a unit of the pool may be handed out: it never was, or was
// wiped since it was released.
func (r *records) isFree(u poolUnit) bool {
	one, found := r.units[u.unit.key()]
	return !found || one.State == stateReleased && !one.Unseen && u.Wiped > one.Wiped
}

// see takes note of the numbers of units that come back to the pool file.
func (r *records) see(units []poolUnit) error {
	for _, u := range units {
		one := r.units[u.unit.key()]
		if !one.Unseen {
			continue
		}
		one.Unseen, one.Wiped = false, max(one.Wiped, u.Wiped)
		if err := r.set(u.unit.key(), one); err != nil {
			return err
		}
	}
	return nil
}
