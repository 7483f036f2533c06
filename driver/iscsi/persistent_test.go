package iscsi_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/driver/iscsi"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// C052, both halves: over a restart of the node, through the calls of CSI.
func TestC052_LoginsOverARestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		volumeContext map[string]string
		back          int
	}{
		"default":    {nil, 0},
		"persistent": {map[string]string{iscsi.Persistent: "true"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stack.New(t)
			s.OK(s.Node.SetISCSITarget(t.Context(), sim.ISCSITarget{
				IQN: "iqn.2026-01.x:d", Portals: []string{"192.0.2.1:3260"}, ChapUser: "u", ChapSecret: secret,
				LUNs: []sim.DiskSpec{{Image: t.TempDir() + "/unit", SizeBytes: 64 << 20}},
			}))
			const id, path = "iqn.2026-01.x:d/0@192.0.2.1", stack.Root + `\globalmount`
			stage := func() error {
				_, err := nodeServer(s).NodeStageVolume(s.Context(), &csi.NodeStageVolumeRequest{
					VolumeId: id, StagingTargetPath: path, VolumeContext: c.volumeContext,
					VolumeCapability: &csi.VolumeCapability{
						AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
						AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
					},
					Secrets: map[string]string{"node.session.auth.username": "u", "node.session.auth.password": secret},
				})
				return err
			}
			restart := func(want int) {
				t.Helper()
				s.OK(s.Node.Reboot(t.Context()))
				s.Restart()
				s.OK(s.Agent.StartService(t.Context(), "MSiSCSI"))
				if sessions, err := s.OS.Sessions(t.Context()); err != nil || len(sessions) != want {
					t.Errorf("sessions after the restart %+v, %v; want %d", sessions, err, want)
				}
			}
			s.OK(stage())
			restart(c.back)
			s.OK(stage())
			_, err := nodeServer(s).NodeUnstageVolume(s.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: path})
			s.OK(err)
			restart(0)
		})
	}
}

// nodeServer is the node service over the node as it is.
func nodeServer(s *stack.Stack) csi.NodeServer {
	s.Helper()
	d, err := csikit.New(csikit.Config{Name: iscsi.Name, Version: "test", NodeID: "n", NodeBackend: iscsi.Node{}, Node: s.Tasks})
	s.OK(err)
	return d.Services().Node
}
