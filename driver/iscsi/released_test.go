package iscsi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/driver/iscsi"
)

// A unit that was not in the file when its volume was deleted: the number it comes
// back with may have been raised before the release.
func TestUnitThatComesBackIsNotTakenForWiped(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(*pool){
		"create":   func(p *pool) { p.fails(csikit.ErrExhausted, second(p.create("b", 1))) },
		"capacity": func(p *pool) { p.fails(nil, second(p.GetCapacity(p.Context(), csikit.CapacityRequest{}))) },
	} {
		p := newPool(t, unit(0, 10, 0))
		volume := p.made("a", 1, 0)
		p.write(unit(0, 10, 5)) // raised while in use, and then taken off the file
		p.write(unit(1, 99, 0))
		p.deleted(volume.ID)
		p.open()
		p.write(unit(0, 10, 5))
		look(p)
		p.open()
		p.fails(csikit.ErrExhausted, second(p.create("b", 1)))
		p.write(unit(0, 10, 6))
		if _, err := p.create("b", 1); err != nil {
			t.Errorf("%s: wiped and not handed out: %v", name, err)
		}
	}
}

// A unit that is in use stays so, whatever the file says of it.
func TestUnitTakenOffTheFileStaysInUse(t *testing.T) {
	t.Parallel()
	p := newPool(t, unit(0, 10, 0))
	volume := p.made("a", 1, 0)
	for _, units := range []string{unit(1, 5, 0), "", unit(0, 10, 9)} {
		p.write(units)
		p.open()
		got, err := p.GetVolume(t.Context(), csikit.VolumeRequest{VolumeID: volume.ID})
		if err != nil || got.ID != volume.ID || got.CapacityBytes != 10*gib {
			t.Errorf("%q: %+v, %v", units, got, err)
		}
		p.made("a", 1, 0)
		if second(p.create("b", 10)) == nil {
			t.Errorf("%q: handed out twice", units)
		}
	}
}

// A volume is deleted by its own id, not by another of the same unit.
func TestDeleteOfAnotherIDReleasesNothing(t *testing.T) {
	t.Parallel()
	p := newPool(t, unit(0, 10, 0))
	volume := p.made("a", 1, 0)
	p.deleted("iqn.2026-01.x:pool/0@192.0.2.9")
	p.deleted("iqn.2026-01.x:pool/0")
	p.fails(nil, second(p.GetVolume(t.Context(), csikit.VolumeRequest{VolumeID: volume.ID})))
}

// Damaged records are named, are left as they are and keep the folder free for the
// next try.
func TestDamagedRecordsAreRefused(t *testing.T) {
	t.Parallel()
	p := newPool(t, unit(0, 10, 0))
	p.made("a", 1, 0)
	path := filepath.Join(p.folder, "state", "allocations.json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	replaced := func(old, by string) string { return strings.Replace(string(good), old, by, 1) }
	for name, bad := range map[string]string{
		"empty":        "",
		"half":         string(good[:len(good)/2]),
		"other key":    replaced("pool/0", "pool/1"),
		"other state":  replaced(`"used"`, `"lent"`),
		"other id":     replaced("@192.0.2.1", "@"),
		"other form":   replaced(`"version": 1`, `"version": 2`),
		"two in one":   string(good) + string(good),
		"no form":      "{}",
		"nothing":      "null",
		"another list": `["x"]`,
	} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := iscsi.New(p.config()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one that names %s", name, err, path)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != bad {
			t.Errorf("%s: the records were changed: %v", name, err)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Driver = nil
	p.open()
	p.made("a", 1, 0)
}
