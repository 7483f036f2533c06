package sweep

import (
	"path/filepath"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
)

// source is one kind of volume. Its thing on the network or bus is made anew for
// every point, so that no point sees what another left.
type source struct {
	name string
	// provide makes the volume's data and says where it is.
	provide func(w *world) node.Source
	// isGrowable is set when the file system can grow; grow makes the medium larger.
	grow func(w *world)
}

const (
	iqn     = "iqn.2026-11.org.example:target"
	address = "10.0.0.5"
	user    = "initiator"
	secret  = "a-secret-of-14"
)

func sources() []source {
	return []source{
		{name: "disk", provide: provideDisk, grow: growDisk},
		{name: "iscsi", provide: provideLUN},
		{name: "smb", provide: provideShare},
	}
}

func provideDisk(w *world) node.Source {
	_, err := w.node.AttachDisk(w.ctx, sim.DiskSpec{Image: filepath.Join(w.TempDir(), "disk"), SizeBytes: diskMiB * mib, Bus: "SAS", Serial: "SERIAL-1"})
	w.ok(err)
	return node.Source{Disk: &node.DiskSource{SerialNumber: "SERIAL-1"}}
}

func growDisk(w *world) {
	w.ok(w.node.GrowDisk(w.ctx, w.diskNumber(), 2*diskMiB*mib))
}

// diskNumber is the number of the only disk that is not the system's.
func (w *world) diskNumber() uint32 {
	w.Helper()
	disks, err := w.node.Disks(w.ctx)
	w.ok(err)
	for _, d := range disks {
		if !d.System {
			return d.Number
		}
	}
	w.Fatal("the volume's disk is not there")
	return 0
}

func provideLUN(w *world) node.Source {
	lun := sim.DiskSpec{Image: filepath.Join(w.TempDir(), "lun"), SizeBytes: diskMiB * mib, Bus: "iSCSI"}
	w.ok(w.node.SetISCSITarget(w.ctx, sim.ISCSITarget{IQN: iqn, Portals: []string{address + ":3260"}, LUNs: []sim.DiskSpec{lun}, ChapUser: user, ChapSecret: secret}))
	return node.Source{ISCSI: &node.ISCSISource{
		Portals: []host.TargetPortal{{Address: address, Port: 3260}}, IQN: iqn,
		CHAP: host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: user, ChapSecret: secret},
	}}
}

func provideShare(w *world) node.Source {
	w.ok(w.node.SetSMBServer(w.ctx, sim.SMBServer{Name: "server", Users: map[string]string{"user": "password"}, Shares: []sim.SMBShare{{Name: "share", Folder: w.TempDir()}}}))
	return node.Source{SMB: &node.SMBSource{Path: `\\server\share`, Username: "user", Password: "password"}}
}

// hint is a source as it can be told from a volume's id: without secrets.
func hint(s node.Source) node.Source {
	if s.ISCSI != nil {
		known := *s.ISCSI
		known.CHAP = host.ConnectOptions{}
		return node.Source{ISCSI: &known}
	}
	if s.SMB != nil {
		return node.Source{SMB: &node.SMBSource{Path: s.SMB.Path}}
	}
	return s
}
