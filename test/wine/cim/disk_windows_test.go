package cim

import (
	"fmt"
	"slices"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

const (
	onlineStatus  = 0xD010
	offlineStatus = 0xD013
	basicData     = "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}"
)

type diskRow struct {
	Path          string   `cim:"__RELPATH"`
	Number        uint32   `cim:"Number"`
	SizeBytes     uint64   `cim:"Size"`
	FreeBytes     uint64   `cim:"LargestFreeExtent"`
	Style         uint16   `cim:"PartitionStyle"`
	Offline       bool     `cim:"IsOffline"`
	ReadOnly      bool     `cim:"IsReadOnly"`
	OfflineReason *uint16  `cim:"OfflineReason"`
	GUID          *string  `cim:"Guid"`
	Signature     *uint32  `cim:"Signature"`
	Status        []uint16 `cim:"OperationalStatus"`
	Serial        *string  `cim:"SerialNumber"`
}

type partitionRow struct {
	Path        string   `cim:"__RELPATH"`
	Number      uint32   `cim:"PartitionNumber"`
	OffsetBytes uint64   `cim:"Offset"`
	SizeBytes   uint64   `cim:"Size"`
	GPTType     string   `cim:"GptType"`
	AccessPaths []string `cim:"AccessPaths"`
}

type volumeRow struct {
	Path       string `cim:"__RELPATH"`
	ID         string `cim:"Path"`
	FileSystem string `cim:"FileSystem"`
	Label      string `cim:"FileSystemLabel"`
	SizeBytes  uint64 `cim:"Size"`
}

var (
	disks      = cim.NewTable[diskRow](cim.NamespaceStorage, "MSFT_Disk", "ObjectId")
	partitions = cim.NewTable[partitionRow](cim.NamespaceStorage, "MSFT_Partition", "ObjectId")
	volumes    = cim.NewTable[volumeRow](cim.NamespaceStorage, "MSFT_Volume", "ObjectId")
)

func (l *lab) disk(number uint32) diskRow {
	l.Helper()
	rows, err := disks.Rows(l.Context(), l.session, cim.Equal("Number", number))
	l.OK(err)
	if len(rows) != 1 {
		l.Fatalf("%d disks have number %d", len(rows), number)
	}
	return rows[0]
}

func (l *lab) partitions(disk uint32) []partitionRow {
	l.Helper()
	rows, err := partitions.Rows(l.Context(), l.session, cim.Equal("DiskNumber", disk))
	l.OK(err)
	return rows
}

func (l *lab) volume(id string) volumeRow {
	l.Helper()
	rows, err := volumes.Rows(l.Context(), l.session, cim.Equal("Path", id))
	l.OK(err)
	if len(rows) != 1 {
		l.Fatalf("%d volumes are %s", len(rows), id)
	}
	return rows[0]
}

func (l *lab) onDisk(path, method string, in cim.Values) cim.Values {
	l.Helper()
	return l.call(cim.NamespaceStorage, "MSFT_Disk", path, method, in)
}

// The life of a disk: it appears, goes online, is initialised, partitioned and
// formatted, grows, and is gone.
func TestLifeOfADisk(t *testing.T) {
	l := newLab(t)
	number := l.Attach(sim.DiskSpec{Bus: "SAS"})

	d := l.disk(number)
	if !d.Offline || !d.ReadOnly || d.OfflineReason == nil || *d.OfflineReason != 1 || d.Style != 0 || d.GUID != nil ||
		d.Signature != nil || d.Serial != nil || d.SizeBytes != uint64(5*gib) || !slices.Equal(d.Status, []uint16{offlineStatus}) {
		t.Fatalf("a new disk is %+v", d)
	}
	l.onDisk(d.Path, "Online", nil)
	l.onDisk(d.Path, "SetAttributes", cim.Values{"IsReadOnly": false})
	if d = l.disk(number); d.Offline || d.ReadOnly || !slices.Equal(d.Status, []uint16{onlineStatus}) {
		t.Fatalf("online it is %+v", d)
	}
	l.onDisk(d.Path, "Initialize", cim.Values{"PartitionStyle": uint16(2)})
	if d = l.disk(number); d.Style != 2 || d.GUID == nil || *d.GUID == "" || d.FreeBytes == 0 {
		t.Fatalf("initialised it is %+v", d)
	}
	l.returns(41001, "MSFT_Disk", d.Path, "Initialize", cim.Values{"PartitionStyle": uint16(2)})

	l.onDisk(d.Path, "CreatePartition", cim.Values{"UseMaximumSize": true, "GptType": basicData})
	id := l.formatData(number)
	l.growData(number, id)

	l.OK(l.Control.DetachDisk(t.Context(), number))
	rows, err := disks.Rows(t.Context(), l.session, cim.Equal("Number", number))
	if err != nil || len(rows) != 0 {
		t.Errorf("after it was pulled: %+v, %v", rows, err)
	}
	_, err = l.session.Exec(t.Context(), cim.NamespaceStorage, d.Path, "Refresh", nil)
	failed(t, err, cim.NotFound, "MSFT_Disk.Refresh")
}

// formatData formats the volume of the data partition and returns its name.
func (l *lab) formatData(number uint32) string {
	l.Helper()
	all := l.partitions(number)
	if len(all) != 2 || all[0].Number != 1 || all[0].AccessPaths != nil || all[1].Number != 2 || all[1].GPTType != basicData ||
		all[1].OffsetBytes != 16<<20 || len(all[1].AccessPaths) != 1 {
		l.Fatalf("partitions %+v", all)
	}
	id := all[1].AccessPaths[0]
	v := l.volume(id)
	if v.FileSystem != "" {
		l.Fatalf("a new volume has %+v", v)
	}
	l.call(cim.NamespaceStorage, "MSFT_Volume", v.Path, "Format", cim.Values{
		"FileSystem": "NTFS", "FileSystemLabel": `Lärm "laut" \ 'leise'`, "AllocationUnitSize": uint32(8192)})
	v = l.volume(id)
	if v.FileSystem != "NTFS" || v.Label != `Lärm "laut" \ 'leise'` || v.SizeBytes == 0 {
		l.Fatalf("formatted it is %+v", v)
	}
	byLabel, err := volumes.Rows(l.Context(), l.session, cim.Equal("FileSystemLabel", v.Label))
	if err != nil || len(byLabel) != 1 || byLabel[0] != v {
		l.Errorf("by its label: %+v, %v", byLabel, err)
	}
	return id
}

// growData grows the medium and then the data partition to the most there is.
func (l *lab) growData(number uint32, id string) {
	l.Helper()
	l.OK(l.Control.GrowDisk(l.Context(), number, 8*gib))
	d := l.disk(number)
	l.call(cim.NamespaceStorage, "MSFT_StorageSetting", "MSFT_StorageSetting", "UpdateHostStorageCache", nil)
	l.onDisk(d.Path, "Refresh", nil)
	if d = l.disk(number); d.SizeBytes != uint64(8*gib) {
		l.Fatalf("grown it is %+v", d)
	}
	p := l.partitions(number)[1]
	out := l.call(cim.NamespaceStorage, "MSFT_Partition", p.Path, "GetSupportedSize", nil)
	most, ok := cim.Uint64(out, "SizeMax")
	if !ok || most <= p.SizeBytes {
		l.Fatalf("supported sizes %+v of %+v", out, p)
	}
	l.call(cim.NamespaceStorage, "MSFT_Partition", p.Path, "Resize", cim.Values{"Size": most})
	if grown := l.partitions(number)[1]; grown.SizeBytes != most {
		l.Errorf("the partition is %+v, want %d bytes", grown, most)
	}
	l.returns(4097, "MSFT_Partition", p.Path, "Resize", cim.Values{"Size": uint64(1) << 60})
	if v := l.volume(id); v.FileSystem != "NTFS" || v.SizeBytes <= uint64(5*gib) {
		l.Errorf("the volume is %+v", v)
	}
}

// A path in which every character that needs it is escaped finds its object.
func TestObjectPathOfADisk(t *testing.T) {
	l := newLab(t)
	d := l.disk(l.Attach(sim.DiskSpec{}))
	rows, err := l.session.Query(t.Context(), cim.NamespaceStorage, fmt.Sprintf("SELECT ObjectId FROM MSFT_Disk WHERE Number = %d", d.Number))
	l.OK(err)
	id, _ := rows[0].Props["ObjectId"].(string)
	path, err := cim.ObjectPath("MSFT_Disk", "ObjectId", id)
	l.OK(err)
	if path != d.Path {
		t.Errorf("path %s, want %s", path, d.Path)
	}
	l.onDisk(path, "Refresh", nil)
	found, err := disks.Rows(t.Context(), l.session, cim.Equal("ObjectId", id))
	if err != nil || len(found) != 1 || found[0].Number != d.Number {
		t.Errorf("by ObjectId: %+v, %v", found, err)
	}
	associated, err := cim.NewTable[partitionRow](cim.NamespaceStorage, "MSFT_Partition").
		Associated(t.Context(), l.session, path, "MSFT_DiskToPartition")
	if err != nil || len(associated) != 0 {
		t.Errorf("partitions of a raw disk: %+v, %v", associated, err)
	}
}
