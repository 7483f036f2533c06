package devices

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// question is a question of package winos that control codes and volume calls answer.
type question struct {
	name string
	ask  func(l *lab, os *winos.OS) (any, error)
}

// questions are those about a disk, its volume, a raw disk, and the folder of drive C in
// which the volume is mounted.
func questions(disk uint32, volume string, raw uint32, mount string) []question {
	type pair [2]any
	read := func(l *lab, at func([]byte) (int, error)) (any, error) {
		buffer := make([]byte, 8192)
		n, err := at(buffer)
		return buffer[:n], err
	}
	return []question{
		{"DiskSizeBytes", func(l *lab, os *winos.OS) (any, error) { return os.DiskSizeBytes(l.ctx, disk) }},
		{"DiskState", func(l *lab, os *winos.OS) (any, error) {
			offline, readOnly, err := os.DiskState(l.ctx, disk)
			return pair{offline, readOnly}, err
		}},
		{"DiskIDs", func(l *lab, os *winos.OS) (any, error) { return os.DiskIDs(l.ctx, disk) }},
		{"Partitions", func(l *lab, os *winos.OS) (any, error) { return os.Partitions(l.ctx, disk) }},
		{"Partitions, raw", func(l *lab, os *winos.OS) (any, error) { return os.Partitions(l.ctx, raw) }},
		{"ReadDisk", func(l *lab, os *winos.OS) (any, error) {
			return read(l, func(b []byte) (int, error) { return os.ReadDisk(l.ctx, disk, 0, b) })
		}},
		{"ReadDisk, at the end", func(l *lab, os *winos.OS) (any, error) {
			return read(l, func(b []byte) (int, error) { return os.ReadDisk(l.ctx, disk, 5*gib-4096, b) })
		}},
		{"ReadVolume", func(l *lab, os *winos.OS) (any, error) {
			return read(l, func(b []byte) (int, error) { return os.ReadVolume(l.ctx, volume, 0, b) })
		}},
		{"VolumeDisk", func(l *lab, os *winos.OS) (any, error) { return os.VolumeDisk(l.ctx, volume) }},
		{"VolumeStats", func(l *lab, os *winos.OS) (any, error) {
			total, free, err := os.VolumeStats(l.ctx, volume)
			return pair{total, free}, err
		}},
		{"MountPaths", func(l *lab, os *winos.OS) (any, error) { return os.MountPaths(l.ctx, volume) }},
		{"the target of a mount", func(l *lab, os *winos.OS) (any, error) { return mountTarget(l, os, mount) }},
		{"FlushVolume", func(l *lab, os *winos.OS) (any, error) { return nil, os.FlushVolume(l.ctx, volume) }},
	}
}

// mountTarget reads what is mounted in a folder of drive C.
func mountTarget(l *lab, os *winos.OS, name string) (any, error) {
	root, err := os.OpenDrive(l.ctx, 'C')
	if err != nil {
		return nil, err
	}
	defer root.Close()
	folder, err := root.Open(l.ctx, name)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	info, err := folder.Info(l.ctx)
	return info.Target, err
}

// mount mounts a volume in a folder of drive C, past Wine, until the test ends.
func (l *lab) mount(volume string) (name string) {
	l.Helper()
	name = fmt.Sprintf("csi-devices-%d", time.Now().UnixNano())
	l.OK(l.Control.MakeDir(l.ctx, `C:\`+name))
	path := `\\?\C:\` + name + `\`
	l.OK(l.direct.SetVolumeMountPoint(l.ctx, path, volume))
	l.Cleanup(func() {
		_ = l.direct.DeleteVolumeMountPoint(context.Background(), path) // it may have gone with the node
		_ = l.Control.RemoveFile(context.Background(), `C:\`+name)
	})
	return name
}

// What control codes and volume calls can answer is answered right, and without WMI.
func TestReadsWithoutWMI(t *testing.T) {
	l := open(t)
	disk, volume := l.volume(sim.DiskSpec{Bus: "SAS", Serial: "S1", IDs: []sim.DeviceID{
		{CodeSet: 1, Type: 3, ID: []byte("\x60\x02\x24\x80abcdefghijkl")},
	}})
	raw := l.Attach(sim.DiskSpec{})
	session := bed.Session(l)
	product := winos.New(session, l.api, winos.Options{})
	node := winos.New(l.direct, l.direct, winos.Options{})
	for _, q := range questions(disk, volume, raw, l.mount(volume)) {
		l.OK(l.Control.RecordCalls(l.ctx, true))
		got, err := q.ask(l, product)
		log, logErr := l.Control.CallLog(l.ctx)
		l.OK(logErr)
		want, wantErr := q.ask(l, node)
		if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v; the node says %v, %v", q.name, short(got), err, short(want), wantErr)
		}
		if len(log) == 0 {
			t.Errorf("%s asked the node nothing", q.name)
		}
		for _, call := range log {
			if strings.HasPrefix(call.Name, "cim.") {
				t.Errorf("%s goes through WMI: %s %s", q.name, call.Name, call.Object)
			}
		}
	}
}

// short keeps failures readable.
func short(v any) any {
	if b, ok := v.([]byte); ok {
		return bytes.TrimRight(b[:min(64, len(b))], "\x00")
	}
	return v
}

// BenchmarkVolumeStats compares the statistics that kubelet asks for every minute, by
// volume call, with the same by WMI, in one run.
func BenchmarkVolumeStats(b *testing.B) {
	l := open(b)
	_, volume := l.volume(sim.DiskSpec{})
	session := bed.Session(l)
	os := winos.New(session, l.api, winos.Options{})
	type row struct {
		Size      uint64 `cim:"Size"`
		Remaining uint64 `cim:"SizeRemaining"`
	}
	table := cim.NewTable[row](cim.NamespaceStorage, "MSFT_Volume", "ObjectId")
	var total, free int64
	byCall := func() (err error) {
		total, free, err = os.VolumeStats(l.ctx, volume)
		return err
	}
	var rows []row
	byWMI := func() (err error) {
		rows, err = table.Rows(l.ctx, session, cim.Equal("Path", volume))
		return err
	}
	l.OK(errors.Join(byCall(), byWMI()))
	if len(rows) != 1 || uint64(total) != rows[0].Size || uint64(free) != rows[0].Remaining {
		b.Fatalf("%d and %d bytes by volume call, %v by WMI", total, free, rows)
	}
	b.Run("ratio", func(b *testing.B) {
		b.ReportMetric(wiretest.Compare(b, 1, byCall, byWMI), "call/wmi")
		b.ReportMetric(0, "ns/op") // a round of both is no unit of anything
	})
}
