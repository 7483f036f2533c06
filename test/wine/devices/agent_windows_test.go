package devices

import (
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/winos"
)

// wmiCalls are the calls of WMI that something makes, as the node saw them.
func (l *lab) wmiCalls(do func() error) (names []string) {
	l.Helper()
	l.OK(l.Control.RecordCalls(l.ctx, true))
	l.OK(do())
	log, err := l.Control.CallLog(l.ctx)
	l.OK(err)
	if len(log) == 0 {
		l.Error("the node was asked nothing")
	}
	for _, call := range log {
		if strings.HasPrefix(call.Name, "cim.") {
			names = append(names, call.Name)
		}
	}
	return names
}

// What a node plugin asks all the time does not go through WMI: the whole agent on
// Windows, counted at the node.
func TestAgentReadsWithoutWMI(t *testing.T) {
	l := open(t)
	disk, volume := l.volume(sim.DiskSpec{})
	name := l.mount(volume)
	session := bed.Session(l)
	node, err := agent.New(winos.New(session, l.api, winos.Options{}), agent.Policy{Roots: []string{`C:\` + name}})
	l.OK(err)
	for call, do := range map[string]func() error{
		"GetVolumeStats": func() error {
			stats, err := node.GetVolumeStats(l.ctx, volume)
			if stats.TotalBytes <= 4*gib || stats.UsedBytes <= 0 || stats.UsedBytes > gib {
				t.Errorf("volume %+v", stats)
			}
			return err
		},
		"GetDiskNumberFromVolumeID": func() error {
			number, err := node.GetDiskNumberFromVolumeID(l.ctx, volume)
			if number != disk {
				t.Errorf("disk %d, want %d", number, disk)
			}
			return err
		},
		"GetDiskStats": func() error {
			stats, err := node.GetDiskStats(l.ctx, disk)
			if stats != (host.DiskStats{TotalBytes: 5 * gib}) {
				t.Errorf("disk %+v", stats)
			}
			return err
		},
		"GetDiskState": func() error {
			online, err := node.GetDiskState(l.ctx, disk)
			if !online {
				t.Error("the disk is offline")
			}
			return err
		},
		"GetVolumeIDFromTargetPath": func() error {
			id, err := node.GetVolumeIDFromTargetPath(l.ctx, `C:\`+name)
			if !strings.EqualFold(id, volume) {
				t.Errorf("volume %s, want %s", id, volume)
			}
			return err
		},
		"GetClosestVolumeIDFromTargetPath": func() error {
			id, err := node.GetClosestVolumeIDFromTargetPath(l.ctx, `C:\`+name)
			if !strings.EqualFold(id, volume) {
				t.Errorf("volume %s, want %s", id, volume)
			}
			return err
		},
		"IsVolumeFormatted": func() error {
			formatted, err := node.IsVolumeFormatted(l.ctx, volume)
			if !formatted {
				t.Error("the volume is not formatted")
			}
			return err
		},
		"MountVolume again": func() error { return node.MountVolume(l.ctx, volume, `C:\`+name) },
		"WriteVolumeCache":  func() error { return node.WriteVolumeCache(l.ctx, volume) },
	} {
		if names := l.wmiCalls(do); len(names) > 0 {
			t.Errorf("%s goes through WMI: %q", call, names)
		}
	}
}
