package iscsi_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/driver/iscsi"
)

const gib = 1 << 30

// pool is a driver with a pool in a folder.
type pool struct {
	*testing.T
	folder string
	*iscsi.Driver
}

// unit is a line of the pool file.
func unit(lun, sizeGiB, wiped int) string {
	return fmt.Sprintf(" - {iqn: 'iqn.2026-01.x:pool', lun: %d, portals: [192.0.2.1, '[fd00::1]:3261'], sizeBytes: %d, wiped: %d}\n", lun, sizeGiB*gib, wiped)
}

func newPool(t *testing.T, units ...string) *pool {
	t.Helper()
	p := &pool{T: t, folder: t.TempDir()}
	p.write(units...)
	p.open()
	return p
}

func (p *pool) config() iscsi.Config {
	return iscsi.Config{PoolFile: filepath.Join(p.folder, "pool.yaml"), StateFolder: filepath.Join(p.folder, "state")}
}

func (p *pool) write(units ...string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, "pool.yaml"), []byte("units:\n"+strings.Join(units, "")), 0o600); err != nil {
		p.Fatal(err)
	}
}

// open opens the driver, as after a restart of the process.
func (p *pool) open() {
	p.Helper()
	if p.Driver != nil {
		if err := p.Close(); err != nil {
			p.Fatal(err)
		}
	}
	d, err := iscsi.New(p.config())
	if err != nil {
		p.Fatal(err)
	}
	p.Driver = d
	p.Cleanup(func() { _ = d.Close() })
}

func (p *pool) create(name string, sizeGiB int64) (csikit.Volume, error) {
	return p.CreateVolume(p.Context(), csikit.CreateVolumeRequest{Name: name, Capacity: csikit.CapacityRange{RequiredBytes: sizeGiB * gib}})
}

// made creates a volume and wants it on a unit.
func (p *pool) made(name string, sizeGiB int64, lun int) csikit.Volume {
	p.Helper()
	volume, err := p.create(name, sizeGiB)
	want := fmt.Sprintf("iqn.2026-01.x:pool/%d@192.0.2.1,[fd00::1]:3261", lun)
	if err != nil || volume.ID != want {
		p.Fatalf("%s: got %+v, %v; want %s", name, volume, err, want)
	}
	return volume
}

func (p *pool) deleted(id string) {
	p.Helper()
	if err := p.DeleteVolume(p.Context(), csikit.VolumeRequest{VolumeID: id}); err != nil {
		p.Fatal(err)
	}
}

func (p *pool) fails(want error, err error) {
	p.Helper()
	if !errors.Is(err, want) {
		p.Errorf("got %v, want %v", err, want)
	}
}

func second[T any](_ T, err error) error { return err }

func TestSmallestFreeUnitThatFits(t *testing.T) {
	t.Parallel()
	p := newPool(t, unit(0, 100, 0), unit(1, 10, 0), unit(2, 20, 0))
	if volume := p.made("a", 5, 1); volume.CapacityBytes != 10*gib {
		t.Errorf("capacity %d", volume.CapacityBytes)
	}
	p.made("b", 10, 2)
	p.made("c", 1, 0)
	p.made("a", 5, 1) // again: the same one (C068)
	p.fails(csikit.ErrExhausted, second(p.create("d", 1)))
	p.fails(csikit.ErrOutOfRange, second(p.create("e", 101)))
	_, err := p.CreateVolume(t.Context(), csikit.CreateVolumeRequest{Name: "f", Capacity: csikit.CapacityRange{RequiredBytes: gib, LimitBytes: 2 * gib}})
	p.fails(csikit.ErrOutOfRange, err)
	_, err = p.CreateVolume(t.Context(), csikit.CreateVolumeRequest{Name: "g", Parameters: map[string]string{"pol": "x"}})
	p.fails(csikit.ErrInvalid, err)
}

// Data of one user never gets to the next: a released unit stays away until the
// file says that it was wiped after the release, whatever restarts or is edited.
func TestReleasedUnitIsNotHandedOutUnwiped(t *testing.T) {
	t.Parallel()
	p := newPool(t, unit(0, 10, 0))
	volume := p.made("a", 1, 0)
	p.write(unit(0, 10, 5)) // a wipe before the release does not count
	p.deleted(volume.ID)
	p.deleted(volume.ID)
	for range 2 {
		p.fails(csikit.ErrExhausted, second(p.create("b", 1)))
		p.fails(csikit.ErrExhausted, second(p.create("a", 1)))
		p.fails(csikit.ErrNotFound, second(p.GetVolume(t.Context(), csikit.VolumeRequest{VolumeID: volume.ID})))
		p.open()
	}
	p.write(unit(1, 10, 0)) // taken off the file, and put back
	p.open()
	p.write(unit(0, 10, 5))
	p.fails(csikit.ErrExhausted, second(p.create("b", 1)))
	p.write(unit(0, 10, 6))
	p.made("b", 1, 0)
}

func TestRecordsLastAndBelongToOneProcess(t *testing.T) {
	t.Parallel()
	p := newPool(t, unit(0, 10, 0), unit(1, 20, 0))
	a := p.made("a", 1, 0)
	if _, err := iscsi.New(p.config()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second driver: %v", err)
	}
	// What a crash while writing leaves behind.
	if err := os.WriteFile(filepath.Join(p.folder, "state", "allocations.json.new"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.open()
	p.made("a", 1, 0)
	p.made("b", 1, 1)
	// A unit that is taken off the file keeps its volume.
	p.write()
	if volume, err := p.GetVolume(t.Context(), csikit.VolumeRequest{VolumeID: a.ID}); err != nil || volume.CapacityBytes != 10*gib {
		t.Errorf("got %+v, %v", volume, err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{"{", `{"version":2}`, `{"version":1,"units":{"x":{}}}`} {
		if err := os.WriteFile(filepath.Join(p.folder, "state", "allocations.json"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if d, err := iscsi.New(p.config()); err == nil {
			t.Errorf("damaged records %s are taken", damaged)
			_ = d.Close()
		}
	}
}

func TestFailedWriteHandsNothingOut(t *testing.T) {
	t.Parallel()
	p := newPool(t, unit(0, 10, 0))
	blocked := filepath.Join(p.folder, "state", "allocations.json.new")
	if err := os.Mkdir(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	p.fails(csikit.ErrUnavailable, second(p.create("a", 1)))
	if page, err := p.ListVolumes(t.Context(), csikit.Page{}); err != nil || len(page.Volumes) > 0 {
		t.Errorf("got %+v, %v", page, err)
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	p.made("b", 1, 0)
}

func TestManyAtOnceGetAUnitEach(t *testing.T) {
	t.Parallel()
	var units []string
	for lun := range 16 {
		units = append(units, unit(lun, 10, 0))
	}
	p := newPool(t, units...)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if _, err := p.create(fmt.Sprint("v", i), 1); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	page, err := p.ListVolumes(t.Context(), csikit.Page{})
	if err != nil || len(page.Volumes) != 16 {
		t.Errorf("%d volumes, %v", len(page.Volumes), err)
	}
}

func TestListAndCapacity(t *testing.T) {
	t.Parallel()
	p := newPool(t, unit(0, 10, 0), unit(1, 20, 0), unit(2, 30, 0), unit(3, 40, 0),
		" - {iqn: 'iqn.2026-01.x:fast', lun: 0, portals: [nas], sizeBytes: 5, pool: fast}\n")
	for i, name := range []string{"a", "b", "c"} {
		p.made(name, 1, i)
	}
	capacity, err := p.GetCapacity(t.Context(), csikit.CapacityRequest{})
	if err != nil || capacity.AvailableBytes != 40*gib || capacity.MaximumBytes != 40*gib {
		t.Errorf("got %+v, %v", capacity, err)
	}
	fast, err := p.GetCapacity(t.Context(), csikit.CapacityRequest{Parameters: map[string]string{iscsi.ParameterPool: "fast"}})
	if err != nil || fast.AvailableBytes != 5 {
		t.Errorf("got %+v, %v", fast, err)
	}
	var ids []string
	p.write(unit(3, 40, 0), strings.Replace(unit(4, 0, 0), "sizeBytes: 0", "sizeBytes: 9223372036854775807", 1))
	if capacity, err = p.GetCapacity(t.Context(), csikit.CapacityRequest{}); err != nil || capacity.AvailableBytes != math.MaxInt64 {
		t.Errorf("of units of all sizes: %+v, %v", capacity, err)
	}
	page := csikit.Page{MaxEntries: 2}
	for {
		answer, err := p.ListVolumes(t.Context(), page)
		if err != nil || len(answer.Volumes) > 2 {
			t.Fatalf("got %+v, %v", answer, err)
		}
		for _, volume := range answer.Volumes {
			ids = append(ids, volume.ID)
		}
		if page.Token = answer.NextToken; page.Token == "" {
			break
		}
	}
	if len(ids) != 3 || ids[0] >= ids[1] || ids[1] >= ids[2] {
		t.Errorf("listed %q", ids)
	}
	p.fails(csikit.ErrBadToken, second(p.ListVolumes(t.Context(), csikit.Page{Token: "invalid"})))
}

func TestStaticVolumes(t *testing.T) {
	t.Parallel()
	p := newPool(t, unit(0, 10, 0))
	if volume, err := p.GetVolume(t.Context(), csikit.VolumeRequest{VolumeID: staticID}); err != nil || volume.ID != staticID {
		t.Errorf("got %+v, %v", volume, err)
	}
	p.deleted(staticID)
	p.deleted("nonsense")
	p.fails(csikit.ErrNotFound, second(p.GetVolume(t.Context(), csikit.VolumeRequest{VolumeID: "nonsense"})))
	p.fails(csikit.ErrNotFound, second(p.GetVolume(t.Context(), csikit.VolumeRequest{VolumeID: "iqn.2026-01.x:pool/0@192.0.2.1"})))
	p.made("a", 1, 0)
}

func TestLongWaysAreInTheContext(t *testing.T) {
	t.Parallel()
	const long = "a-file-server-with-a-rather-long-name.storage.example.org"
	p := newPool(t, " - {iqn: 'iqn.2026-01.x:p', lun: 0, portals: ["+long+", b."+long+"], sizeBytes: 5}\n")
	volume, err := p.create("a", 0)
	if err != nil || volume.ID != "iqn.2026-01.x:p/0" || len(volume.Context[iscsi.ContextPortals]) < 100 {
		t.Fatalf("got %+v, %v", volume, err)
	}
	source, err := p.NodeSource(t.Context(), csikit.NodeSourceRequest{VolumeID: volume.ID, VolumeContext: volume.Context})
	if err != nil || len(source.ISCSI.Portals) != 2 {
		t.Errorf("got %+v, %v", source, err)
	}
}

func TestPoolFileSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := &pool{T: t, folder: t.TempDir()}
	for text, want := range map[string]string{
		" - {iqn: x, lun: 0, portals: [a], sizeBytes: 1}\n":                                "forms",
		" - {iqn: iqn.2026-01.x, lun: 99999, portals: [a], sizeBytes: 1}\n":                "16383",
		" - {iqn: iqn.2026-01.x, lun: 0, sizeBytes: 1}\n":                                  "portals",
		" - {iqn: iqn.2026-01.x, lun: 0, portals: [a]}\n":                                  "sizeBytes",
		" - {iqn: iqn.2026-01.x, lun: 0, portals: [a], sizeBytes: 1, wiped: -1}\n":         "wiped",
		" - {iqn: iqn.2026-01.x, lun: 0, portals: [a], sizebytes: 1}\n":                    "sizebytes",
		unit(0, 1, 0) + unit(0, 2, 0):                                                      "units[1]",
		unit(0, 1, 0) + "---\nunits: []\n":                                                 "document",
		" - {iqn: 'iqn.2026-01." + strings.Repeat("x", 128) + "', lun: 0, portals: [a]}\n": "128",
	} {
		p.write(text)
		if d, err := iscsi.New(p.config()); err == nil {
			t.Errorf("%s is taken", text)
			_ = d.Close()
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", text, err, want)
		}
	}
	if _, err := iscsi.New(iscsi.Config{PoolFile: p.config().PoolFile}); err == nil {
		t.Error("a pool without records is taken")
	}
}

// C052, the option: a storage class hands it on to the node.
func TestC052_PersistentStorageClass(t *testing.T) {
	t.Parallel()
	p := newPool(t, unit(0, 10, 0))
	create := func(value string) (csikit.Volume, error) {
		return p.CreateVolume(t.Context(), csikit.CreateVolumeRequest{Name: "a", Parameters: map[string]string{iscsi.Persistent: value}})
	}
	p.fails(csikit.ErrInvalid, second(create("True")))
	p.fails(csikit.ErrInvalid, p.CheckParameters(map[string]string{iscsi.Persistent: "1"}))
	for range 2 {
		volume, err := create("true")
		if err != nil || volume.Context[iscsi.Persistent] != "true" {
			t.Fatalf("got %+v, %v", volume, err)
		}
		source, err := p.NodeSource(t.Context(), csikit.NodeSourceRequest{VolumeID: volume.ID, VolumeContext: volume.Context})
		if err != nil || !source.ISCSI.CHAP.Persistent {
			t.Errorf("got %+v, %v", source.ISCSI, err)
		}
		p.open()
	}
}
