package agent_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
)

// BenchmarkStack measures reads through agent, winos and the simulated node.
func BenchmarkStack(b *testing.B) {
	ctx := b.Context()
	node, err := sim.Open(ctx, sim.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer node.Close()
	if err := node.MakeDir(ctx, root+`\pods\x`); err != nil {
		b.Fatal(err)
	}
	a, err := agent.New(winos.New(node, node, winos.Options{}), agent.Policy{Roots: []string{root}})
	if err != nil {
		b.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"GetDiskState": func() error { return second(a.GetDiskState(ctx, 0)) },
		"IsSymlink":    func() error { return second(a.IsSymlink(ctx, root+`\pods\x`)) },
		"PathExists":   func() error { return second(a.PathExists(ctx, root+`\pods\x`)) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
