package upstream

import (
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// Host returns a host that answers as the cases expect.
func Host() *wiretest.Host {
	return &wiretest.Host{
		Locations: map[uint32]host.DiskLocation{
			0:   {Adapter: "0", Bus: "1", Target: "2", LUNID: "3"},
			319: {LUNID: "7"},
		},
		IDs: map[uint32]host.DiskIDs{
			0:   {Page83: "naa.600a", SerialNumber: "S-0"},
			319: {Page83: "eui.0025"},
		},
		DiskStats:    host.DiskStats{TotalBytes: 1 << 40},
		Online:       true,
		VolumeIDs:    []string{`\\?\Volume{a}\`, `\\?\Volume{b}\`},
		VolumeID:     `\\?\Volume{a}\`,
		DiskNumber:   4294967295,
		Formatted:    true,
		VolumeStats:  host.VolumeStats{TotalBytes: 1 << 41, UsedBytes: 1 << 33},
		Exists:       true,
		Symlink:      true,
		IQNs:         []string{"iqn.2026-01.io.example:a", "iqn.2026-01.io.example:b"},
		Portals:      []host.TargetPortal{{Address: "10.0.0.1", Port: 3260}, {Address: "fe80::1"}},
		TargetDisks:  []uint32{0, 319},
		SerialNumber: "VMware-56 4d",
		Service:      host.ServiceInfo{DisplayName: "Schnörkel", StartType: host.StartManual, Status: host.ServicePaused},
	}
}

// row is a case for several versions, separated by blanks.
type row struct {
	versions, method, request, call, response string
}

// Cases returns one case for each method of each version.
func Cases() []Case {
	var cases []Case
	for _, group := range []struct {
		name string
		rows []row
	}{
		{"disk", diskRows()}, {"volume", volumeRows()}, {"filesystem", filesystemRows()},
		{"smb", smbRows()}, {"iscsi", iscsiRows()}, {"system", systemRows()},
	} {
		for _, r := range group.rows {
			for _, version := range strings.Fields(r.versions) {
				cases = append(cases, Case{group.name, version, r.method, r.request, r.response, r.call})
			}
		}
	}
	slices.SortFunc(cases, func(a, b Case) int { return strings.Compare(a.Name(), b.Name()) })
	return cases
}

func diskRows() []row {
	const (
		text   = "v1alpha1 v1beta1 v1beta2"
		number = "v1beta3 v1"
		zero   = `{"Adapter":"0","Bus":"1","Target":"2","LUNID":"3"}`
		idMaps = `{"diskIDs":{"0":{"identifiers":{"page83":"naa.600a","serialNumber":"S-0"}},"319":{"identifiers":{"page83":"eui.0025","serialNumber":""}}}}`
	)
	return []row{
		{text + " " + number, "ListDiskLocations", `{}`, `ListDiskLocations()`, `{"disk_locations":{"0":` + zero + `,"319":{"LUNID":"7"}}}`},
		{text, "PartitionDisk", `{"diskID":"319"}`, `PartitionDisk(319)`, `{}`},
		{number, "PartitionDisk", `{"disk_number":319}`, `PartitionDisk(319)`, `{}`},
		{text + " " + number, "Rescan", `{}`, `Rescan()`, `{}`},
		{"v1alpha1", "GetDiskNumberByName", `{"disk_name":"eui.0025"}`, `ListDiskIDs()`, `{"disk_number":"319"}`},
		{"v1beta1 v1beta2", "ListDiskIDs", `{}`, `ListDiskIDs()`, idMaps},
		{number, "ListDiskIDs", `{}`, `ListDiskIDs()`, `{"diskIDs":{"0":{"page83":"naa.600a","serial_number":"S-0"},"319":{"page83":"eui.0025"}}}`},
		{"v1beta1 v1beta2", "DiskStats", `{"diskID":"319"}`, `GetDiskStats(319)`, `{"diskSize":"1099511627776"}`},
		{number, "GetDiskStats", `{"disk_number":319}`, `GetDiskStats(319)`, `{"total_bytes":"1099511627776"}`},
		{"v1beta2", "SetAttachState", `{"diskID":"319","isOnline":true}`, `SetDiskState(319, true)`, `{}`},
		{number, "SetDiskState", `{"disk_number":319,"is_online":true}`, `SetDiskState(319, true)`, `{}`},
		{"v1beta2", "GetAttachState", `{"diskID":"319"}`, `GetDiskState(319)`, `{"isOnline":true}`},
		{number, "GetDiskState", `{"disk_number":319}`, `GetDiskState(319)`, `{"is_online":true}`},
	}
}

func volumeRows() []row {
	const (
		first  = "v1alpha1 v1beta1 v1beta2"
		second = "v1beta1 v1beta2"
		stable = "v1beta3 v1 v2alpha1"
		id     = `{"volume_id":"\\\\?\\Volume{a}\\"}`
		idAnd  = `{"volume_id":"\\\\?\\Volume{a}\\",`
		call   = `("\\\\?\\Volume{a}\\"`
	)
	return []row{
		{first, "ListVolumesOnDisk", `{"disk_id":"319"}`, `ListVolumesOnDisk(319, 0)`, `{"volume_ids":["\\\\?\\Volume{a}\\","\\\\?\\Volume{b}\\"]}`},
		{stable, "ListVolumesOnDisk", `{"disk_number":319,"partition_number":2}`, `ListVolumesOnDisk(319, 2)`, `{"volume_ids":["\\\\?\\Volume{a}\\","\\\\?\\Volume{b}\\"]}`},
		{first, "MountVolume", idAnd + `"path":"C:\\k\\m"}`, `MountVolume` + call + `, "C:\\k\\m")`, `{}`},
		{stable, "MountVolume", idAnd + `"target_path":"C:\\k\\m"}`, `MountVolume` + call + `, "C:\\k\\m")`, `{}`},
		{first, "DismountVolume", idAnd + `"path":"C:\\k\\m"}`, `UnmountVolume` + call + `, "C:\\k\\m")`, `{}`},
		{stable, "UnmountVolume", idAnd + `"target_path":"C:\\k\\m"}`, `UnmountVolume` + call + `, "C:\\k\\m")`, `{}`},
		{first + " " + stable, "IsVolumeFormatted", id, `IsVolumeFormatted` + call + `)`, `{"formatted":true}`},
		{first + " " + stable, "FormatVolume", id, `FormatVolume` + call + `)`, `{}`},
		{first, "ResizeVolume", idAnd + `"size":"5368709120"}`, `ResizeVolume` + call + `, 5368709120)`, `{}`},
		{stable, "ResizeVolume", idAnd + `"size_bytes":"5368709120"}`, `ResizeVolume` + call + `, 5368709120)`, `{}`},
		{second, "VolumeStats", id, `GetVolumeStats` + call + `)`, `{"volumeSize":"2199023255552","volumeUsedSize":"8589934592"}`},
		{stable, "GetVolumeStats", id, `GetVolumeStats` + call + `)`, `{"total_bytes":"2199023255552","used_bytes":"8589934592"}`},
		{second, "GetVolumeDiskNumber", id, `GetDiskNumberFromVolumeID` + call + `)`, `{"diskNumber":"4294967295"}`},
		{stable, "GetDiskNumberFromVolumeID", id, `GetDiskNumberFromVolumeID` + call + `)`, `{"disk_number":4294967295}`},
		{second, "GetVolumeIDFromMount", `{"mount":"C:\\k\\m"}`, `GetVolumeIDFromTargetPath("C:\\k\\m")`, id},
		{stable, "GetVolumeIDFromTargetPath", `{"target_path":"C:\\k\\m"}`, `GetVolumeIDFromTargetPath("C:\\k\\m")`, id},
		{"v1beta2 " + stable, "WriteVolumeCache", id, `WriteVolumeCache` + call + `)`, `{}`},
		{"v2alpha1", "GetClosestVolumeIDFromTargetPath", `{"target_path":"C:\\k\\m\\f"}`, `GetClosestVolumeIDFromTargetPath("C:\\k\\m\\f")`, id},
	}
}

func filesystemRows() []row {
	const (
		oldest = "v1alpha1 v1beta1"
		stable = "v1beta2 v1 v2alpha1"
		path   = `{"path":"C:\\k\\x"}`
		inPod  = `{"path":"C:\\k\\x","context":"POD"}`
		call   = `("C:\\k\\x"`
		link   = `{"source_path":"C:\\k\\x","target_path":"C:\\k\\l"}`
	)
	return []row{
		{oldest, "PathExists", inPod, `PathExists` + call + `)`, `{"exists":true}`},
		{stable, "PathExists", path, `PathExists` + call + `)`, `{"exists":true}`},
		{oldest, "Mkdir", inPod, `Mkdir` + call + `)`, `{}`},
		{stable, "Mkdir", path, `Mkdir` + call + `)`, `{}`},
		{oldest, "Rmdir", inPod, `Rmdir` + call + `, false)`, `{}`},
		{stable, "Rmdir", `{"path":"C:\\k\\x","force":true}`, `Rmdir` + call + `, true)`, `{}`},
		{oldest, "LinkPath", link, `CreateSymlink` + call + `, "C:\\k\\l")`, `{}`},
		{stable, "CreateSymlink", link, `CreateSymlink` + call + `, "C:\\k\\l")`, `{}`},
		{oldest, "IsMountPoint", path, `IsSymlink` + call + `)`, `{"is_mount_point":true}`},
		{stable, "IsSymlink", path, `IsSymlink` + call + `)`, `{"is_symlink":true}`},
		{"v2alpha1", "RmdirContents", path, `RmdirContents` + call + `)`, `{}`},
	}
}

func smbRows() []row {
	const all = "v1alpha1 v1beta1 v1beta2 v1"
	return []row{
		{all, "NewSmbGlobalMapping", `{"remote_path":"\\\\srv\\share\\d","local_path":"C:\\k\\l","username":"dom\\u","password":"p'w\"d"}`,
			`NewSmbGlobalMapping("\\\\srv\\share\\d", "C:\\k\\l", "dom\\u", "p'w\"d")`, `{}`},
		{all, "RemoveSmbGlobalMapping", `{"remote_path":"\\\\srv\\share"}`, `RemoveSmbGlobalMapping("\\\\srv\\share")`, `{}`},
	}
}

func iscsiRows() []row {
	const (
		both   = "v1alpha1 v1alpha2"
		portal = `{"target_portal":{"target_address":"10.0.0.1","target_port":3261}`
		iqn    = portal + `,"iqn":"iqn.x"`
	)
	p := host.TargetPortal{Address: "10.0.0.1", Port: 3261}
	options := host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapUsername: "u", ChapSecret: "0123456789ab"}
	return []row{
		{both, "AddTargetPortal", portal + `}`, wiretest.Printed("AddTargetPortal", p), `{}`},
		{both, "DiscoverTargetPortal", portal + `}`, wiretest.Printed("DiscoverTargetPortal", p), `{"iqns":["iqn.2026-01.io.example:a","iqn.2026-01.io.example:b"]}`},
		{both, "RemoveTargetPortal", portal + `}`, wiretest.Printed("RemoveTargetPortal", p), `{}`},
		{both, "ListTargetPortals", `{}`, `ListTargetPortals()`,
			`{"target_portals":[{"target_address":"10.0.0.1","target_port":3260},{"target_address":"fe80::1"}]}`},
		{both, "ConnectTarget", iqn + `,"auth_type":"MUTUAL_CHAP","chap_username":"u","chap_secret":"0123456789ab"}`,
			wiretest.Printed("ConnectTarget", p, "iqn.x", options), `{}`},
		{both, "DisconnectTarget", iqn + `}`, wiretest.Printed("DisconnectTarget", p, "iqn.x"), `{}`},
		{both, "GetTargetDisks", iqn + `}`, wiretest.Printed("GetTargetDisks", p, "iqn.x"), `{"diskIDs":["0","319"]}`},
		{"v1alpha2", "SetMutualChapSecret", `{"MutualChapSecret":"0123456789ab"}`, `SetMutualChapSecret("0123456789ab")`, `{}`},
	}
}

func systemRows() []row {
	return []row{
		{"v1alpha1", "GetBIOSSerialNumber", `{}`, `GetBIOSSerialNumber()`, `{"serial_number":"VMware-56 4d"}`},
		{"v1alpha1", "StartService", `{"name":"MSiSCSI"}`, `StartService("MSiSCSI")`, `{}`},
		{"v1alpha1", "StopService", `{"name":"MSiSCSI","force":true}`, `StopService("MSiSCSI", true)`, `{}`},
		{"v1alpha1", "GetService", `{"name":"MSiSCSI"}`, `GetService("MSiSCSI")`, `{"display_name":"Schnörkel","start_type":"MANUAL","status":"PAUSED"}`},
	}
}

// CasesByAPI returns the cases of each API.
func CasesByAPI() map[wire.API][]Case {
	byAPI := map[wire.API][]Case{}
	for _, c := range Cases() {
		api := wire.API{Group: c.Group, Version: c.Version}
		byAPI[api] = append(byAPI[api], c)
	}
	return byAPI
}
