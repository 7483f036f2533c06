package winos_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
)

// BenchmarkReads shows what this package and the simulated node add to a call
// that only asks.
func BenchmarkReads(b *testing.B) {
	node, err := sim.Open(b.Context(), sim.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = node.Close() }() // the state is thrown away
	os := winos.New(node, node, winos.Options{})
	volumes, err := os.Volumes(b.Context())
	if err != nil || len(volumes) == 0 {
		b.Fatal(volumes, err)
	}
	disk, id := volumes[0].DiskNumber, volumes[0].ID
	for _, bb := range []struct {
		name string
		ask  func() error
	}{
		{"Disk", func() error { _, err := os.Disk(b.Context(), disk); return err }},
		{"DiskIDs", func() error { _, err := os.DiskIDs(b.Context(), disk); return err }},
		{"Volume", func() error { _, err := os.Volume(b.Context(), id); return err }},
		{"VolumeStats", func() error { _, _, err := os.VolumeStats(b.Context(), id); return err }},
		{"VolumeDisk", func() error { _, err := os.VolumeDisk(b.Context(), id); return err }},
		{"Service", func() error { _, err := os.Service(b.Context(), "RpcSs"); return err }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bb.ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
