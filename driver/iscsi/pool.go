package iscsi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of a pool file.
const (
	poolBytesMax = 1 << 20
	unitsMax     = 4096
)

// poolFile is what an administrator writes, in YAML or JSON.
type poolFile struct {
	Units []poolUnit `yaml:"units"`
}

// poolUnit is one logical unit that may be handed out.
type poolUnit struct {
	IQN       string   `yaml:"iqn"`
	LUN       uint32   `yaml:"lun"`
	Portals   []string `yaml:"portals"`
	SizeBytes int64    `yaml:"sizeBytes"`
	// Pool names a part of the units, which a storage class chooses; may be empty.
	Pool string `yaml:"pool"`
	// Wiped is how often the unit was wiped. A unit whose volume was deleted is
	// handed out again when this has grown.
	Wiped int64 `yaml:"wiped"`

	unit Unit
}

// readPool reads and checks a pool file. It is read anew for each use, so that a
// change counts at once.
func readPool(path string) ([]poolUnit, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, poolBytesMax+1))
	if err != nil {
		return nil, err
	}
	units, err := parsePool(data)
	if err != nil {
		return nil, fmt.Errorf("pool file %s: %w", path, err)
	}
	return units, nil
}

// parsePool reads the content of a pool file. A file with one mistake is refused as a
// whole: nobody knows what else is wrong in it.
func parsePool(data []byte) ([]poolUnit, error) {
	if len(data) > poolBytesMax {
		return nil, fmt.Errorf("larger than %d bytes", poolBytesMax)
	}
	var file poolFile
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(&poolFile{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("has more than one document")
	}
	if len(file.Units) > unitsMax {
		return nil, fmt.Errorf("more than %d units", unitsMax)
	}
	seen := map[string]bool{}
	for i := range file.Units {
		u := &file.Units[i]
		if err := u.parse(); err != nil {
			return nil, fmt.Errorf("units[%d]: %w", i, err)
		}
		if seen[u.unit.key()] {
			return nil, fmt.Errorf("units[%d]: %s is listed twice", i, u.unit.key())
		}
		seen[u.unit.key()] = true
	}
	return file.Units, nil
}

// parse checks a unit of the file.
func (u *poolUnit) parse() error {
	target, err := ParseUnit(Unit{IQN: u.IQN, LUN: u.LUN}.String())
	if err != nil {
		return err
	}
	if len(u.Portals) == 0 {
		return errors.New("portals: is missing")
	}
	if target.Portals, err = ParsePortals(strings.Join(u.Portals, ",")); err != nil {
		return err
	}
	if u.SizeBytes <= 0 {
		return fmt.Errorf("sizeBytes: %d must be the size of the unit", u.SizeBytes)
	}
	if u.Wiped < 0 {
		return fmt.Errorf("wiped: %d is negative", u.Wiped)
	}
	u.unit = target
	return nil
}
