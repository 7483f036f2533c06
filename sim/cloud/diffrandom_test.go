package cloud

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// Whatever is written, the changed blocks of two snapshots are exactly those in which
// a comparison of their bytes finds a difference.
func TestBlocksAreThoseThatDiffer(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	c := openCloud(t, t.TempDir())
	d := create(t, c, CreateRequest{Name: "a", SizeBytes: 64 << 20})
	snapshots := []Disk{snap(t, c, d.ID, "0")}
	for round := 1; round <= 4; round++ {
		if round == 3 {
			if _, err := c.GrowDisk(ctx, d.ID, 65<<20); err != nil {
				t.Fatal(err)
			}
		}
		for range random.IntN(12) {
			text := bytes.Repeat([]byte{byte(random.IntN(3))}, 1+random.IntN(2*BlockBytes))
			if err := writeAt(c.Image(d.ID), random.Int64N(62<<20), string(text)); err != nil {
				t.Fatal(err)
			}
		}
		snapshots = append(snapshots, snap(t, c, d.ID, fmt.Sprint(round)))
	}
	images := make([][]byte, len(snapshots))
	for i, s := range snapshots {
		image, err := os.ReadFile(c.imageOf(snapshotsFolder, s.ID))
		if err != nil {
			t.Fatal(err)
		}
		images[i] = image
	}
	for i := range snapshots {
		for j := i; j < len(snapshots); j++ {
			told := make([]bool, len(images[j])/BlockBytes)
			for _, e := range extents(t, func(emit func([]Extent) error) error {
				return c.ChangedBlocks(ctx, snapshots[i].ID, snapshots[j].ID, 0, emit)
			}) {
				for at := e.OffsetBytes; at < e.OffsetBytes+e.SizeBytes; at += BlockBytes {
					told[at/BlockBytes] = true
				}
			}
			before := append(bytes.Clone(images[i]), make([]byte, len(images[j])-len(images[i]))...)
			for n := range told {
				from, to := n*BlockBytes, (n+1)*BlockBytes
				if differs := !bytes.Equal(before[from:to], images[j][from:to]); differs != told[n] {
					t.Errorf("seed %d, snapshots %d and %d, block %d: told %v, differs %v", seed, i, j, n, told[n], differs)
				}
			}
		}
	}
}
