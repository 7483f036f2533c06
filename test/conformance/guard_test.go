package conformance_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/conformance"
)

// The guard lets no change pass that is not of what the case has made: the host
// under test, which would panic, is never asked.
func TestGuardRefuses(t *testing.T) {
	t.Parallel()
	s, env := newBed(t)
	foreignDisk, foreignVolume := s.Formatted(256 << 20)
	systemVolume, err := s.Agent.GetClosestVolumeIDFromTargetPath(t.Context(), `C:\k`)
	s.OK(err)
	env.Host = struct{ host.Host }{} // nil inside: any call panics
	portal := host.TargetPortal{Address: "192.0.2.1"}
	calls := map[string]func(context.Context, host.Host) error{}
	for _, number := range []uint32{0, foreignDisk} {
		calls["PartitionDisk"] = func(ctx context.Context, h host.Host) error { return h.PartitionDisk(ctx, number) }
		calls["SetDiskState"] = func(ctx context.Context, h host.Host) error { return h.SetDiskState(ctx, number, false) }
		calls["SetDiskReadOnly"] = func(ctx context.Context, h host.Host) error { return h.SetDiskReadOnly(ctx, number, true) }
		mustRefuse(t, env, calls)
	}
	for _, id := range []string{foreignVolume, systemVolume, strings.TrimSuffix(strings.ToUpper(foreignVolume), `\`), ``, `C:`, `C:\`, `\\.\PhysicalDrive0`, `\\?\GLOBALROOT\Device\HarddiskVolume1`} {
		clear(calls)
		calls["FormatVolume"] = func(ctx context.Context, h host.Host) error { return h.FormatVolume(ctx, id) }
		calls["FormatVolumeWith"] = func(ctx context.Context, h host.Host) error {
			return h.FormatVolumeWith(ctx, id, host.FormatOptions{})
		}
		calls["ResizeVolume"] = func(ctx context.Context, h host.Host) error { return h.ResizeVolume(ctx, id, 0) }
		calls["MountVolume"] = func(ctx context.Context, h host.Host) error { return h.MountVolume(ctx, id, `C:\k\x`) }
		mustRefuse(t, env, calls)
	}
	mustRefuse(t, env, map[string]func(context.Context, host.Host) error{
		"UnmountVolume":            func(ctx context.Context, h host.Host) error { return h.UnmountVolume(ctx, foreignVolume, `C:\k\x`) },
		"Mkdir":                    func(ctx context.Context, h host.Host) error { return h.Mkdir(ctx, `C:\k\x`) },
		"Rmdir":                    func(ctx context.Context, h host.Host) error { return h.Rmdir(ctx, `C:\Windows`, true) },
		"Rmdir of nothing":         func(ctx context.Context, h host.Host) error { return h.Rmdir(ctx, "", true) },
		"RmdirContents of nothing": func(ctx context.Context, h host.Host) error { return h.RmdirContents(ctx, "") },
		"RmdirContents":            func(ctx context.Context, h host.Host) error { return h.RmdirContents(ctx, `C:\k`) },
		"CreateSymlink":            func(ctx context.Context, h host.Host) error { return h.CreateSymlink(ctx, `C:\k`, `C:\k\x`) },
		"NewSmbGlobalMapping": func(ctx context.Context, h host.Host) error {
			return h.NewSmbGlobalMapping(ctx, `\\srv\share`, "", "", "")
		},
		"RemoveSmbGlobalMapping": func(ctx context.Context, h host.Host) error { return h.RemoveSmbGlobalMapping(ctx, `//srv/share`) },
		"AddTargetPortal":        func(ctx context.Context, h host.Host) error { return h.AddTargetPortal(ctx, portal) },
		"RemoveTargetPortal":     func(ctx context.Context, h host.Host) error { return h.RemoveTargetPortal(ctx, portal) },
		"ConnectTarget": func(ctx context.Context, h host.Host) error {
			return h.ConnectTarget(ctx, portal, "iqn.2026-01.com:x", host.ConnectOptions{})
		},
		"DisconnectTarget": func(ctx context.Context, h host.Host) error {
			return h.DisconnectTarget(ctx, portal, "iqn.2026-01.com:x")
		},
		"SetMutualChapSecret": func(ctx context.Context, h host.Host) error { return h.SetMutualChapSecret(ctx, chapSecret) },
		"StartService":        func(ctx context.Context, h host.Host) error { return h.StartService(ctx, "Spooler") },
		"StopService":         func(ctx context.Context, h host.Host) error { return h.StopService(ctx, "kubelet", true) },
	})
}

// mustRefuse fails the test unless the guard refuses each call, in a case without
// disks of its own.
func mustRefuse(t *testing.T, env conformance.Env, calls map[string]func(context.Context, host.Host) error) {
	t.Helper()
	results, _ := conformance.RunCases(t.Context(), env, conformance.Options{}, conformance.CaseOf("test/guard", nil, func(ctx context.Context, scene conformance.Scene) {
		for name, call := range calls {
			err := call(ctx, scene.Host())
			var known *host.Error
			if err == nil || errors.As(err, &known) || !strings.Contains(err.Error(), "refused to touch") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}))
	for _, r := range results {
		for _, f := range r.Failures {
			if !strings.HasPrefix(f, "clean up: ") { // the host says nothing of links
				t.Error(f)
			}
		}
	}
}

// A disk that has turned into another one since it was made is not touched: another
// size, a partition that was not made here, another disk at its number.
func TestGuardLooksAgain(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(ctx context.Context, bed *guardBed) error{
		"another size": func(ctx context.Context, bed *guardBed) error {
			return bed.node.GrowDisk(ctx, bed.disk.Number(), 768<<20)
		},
		"a partition of somebody": func(ctx context.Context, bed *guardBed) error {
			return bed.direct.PartitionDisk(ctx, bed.disk.Number())
		},
		"another disk": func(ctx context.Context, bed *guardBed) error {
			if err := bed.node.DetachDisk(ctx, bed.disk.Number()); err != nil {
				return err
			}
			_, err := bed.node.AttachDisk(ctx, sim.DiskSpec{Image: bed.t.TempDir() + "/other.img", SizeBytes: 512 << 20})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, env := newBed(t)
			env.Host = s.Agent
			results, _ := conformance.RunCases(t.Context(), env, conformance.Options{}, conformance.CaseOf("test/guard", disk, func(ctx context.Context, scene conformance.Scene) {
				bed := &guardBed{t, s.Node, s.Agent, scene.Disk(ctx)}
				if err := change(ctx, bed); err != nil {
					t.Errorf("arrange: %v", err)
				}
				for range 2 {
					if err := scene.Host().PartitionDisk(ctx, bed.disk.Number()); err == nil || !strings.Contains(err.Error(), "refused to touch") {
						t.Errorf("PartitionDisk: %v", err)
					}
				}
				if err := scene.Host().SetDiskState(ctx, bed.disk.Number(), false); err == nil {
					t.Error("SetDiskState succeeded")
				}
			}))
			if len(results) != 1 {
				t.Errorf("%d results", len(results))
			}
		})
	}
}

// guardBed is a scratch disk, and ways to change it behind the guard's back.
type guardBed struct {
	t      *testing.T
	node   *sim.Node
	direct host.Host
	disk   conformance.Disk
}
