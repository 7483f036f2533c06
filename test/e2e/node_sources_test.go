package e2e_test

import (
	"context"
	"net/netip"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// Where the volume of a node task's test is.
const (
	stagingPath = stack.Root + `\plugins\kubernetes.io\csi\d.example\0123\globalmount`
	targetPath  = stack.Root + `\pods\p\volumes\kubernetes.io~csi\pvc-1\mount`
	nodeVolume  = "vol-1"
)

// nodeSource is a source for node tasks and the hand that has it put in place.
type nodeSource struct {
	// arrange puts the storage in place and returns the source that is staged.
	arrange func(s *stack.Stack) node.Source
	// capacityBytes is what Expand answers, once the disk, if it is one, has grown.
	capacityBytes int64
	// grow grows the disk to capacityBytes.
	grow func(s *stack.Stack)
}

const (
	nodeDiskBytes  = 512 * stack.MiB
	nodeGrownBytes = 1024 * stack.MiB
)

// nodeSources are the sources a node has.
func nodeSources() map[string]nodeSource {
	return map[string]nodeSource{
		"disk": {
			arrange: func(s *stack.Stack) node.Source {
				s.Attach(sim.DiskSpec{SizeBytes: nodeDiskBytes, Bus: "NVMe", Serial: " D-1 "})
				s.Attach(sim.DiskSpec{Bus: "NVMe", Serial: "D-2"})
				return node.Source{Disk: &node.DiskSource{SerialNumber: "d-1"}}
			},
			capacityBytes: nodeGrownBytes,
			grow:          func(s *stack.Stack) { growSerial(s, " D-1 ") },
		},
		"iscsi": {
			arrange: func(s *stack.Stack) node.Source {
				targets(s)
				s.OK(s.Node.SetISCSITarget(context.Background(), sim.ISCSITarget{
					IQN: tableIQN, Portals: []string{tablePortal, "[fd00::1]:3260"}, ChapUser: "u", ChapSecret: tableSecret, MutualSecret: tableSecret,
					LUNs: []sim.DiskSpec{
						{Image: s.TempDir() + "/0", SizeBytes: 64 * stack.MiB, Serial: "L-0"},
						{Image: s.TempDir() + "/1", SizeBytes: nodeDiskBytes, Serial: "L-1"},
					},
				}))
				return node.Source{ISCSI: &node.ISCSISource{
					Portals: []host.TargetPortal{portalOf(), {Address: netip.MustParseAddr("fd00::1").String()}},
					IQN:     tableIQN, LUN: 1, CHAP: mutual(), MutualSecret: tableSecret,
				}}
			},
			capacityBytes: nodeGrownBytes,
			grow:          func(s *stack.Stack) { growSerial(s, "L-1") },
		},
		"smb": {
			arrange: func(s *stack.Stack) node.Source {
				s.RealFile("on the share", s.Share(`dom\u`, `p'w"d`), "d", "file")
				return node.Source{SMB: &node.SMBSource{Path: "//srv/share/d", Username: "u", Domain: "dom", Password: `p'w"d`}}
			},
			grow: func(*stack.Stack) {},
		},
	}
}

// withoutSecrets is a source as it can be told from a volume's id.
func withoutSecrets(source node.Source) node.Source {
	if source.ISCSI != nil {
		bare := *source.ISCSI
		bare.CHAP, bare.MutualSecret = host.ConnectOptions{}, ""
		source.ISCSI = &bare
	}
	if source.SMB != nil {
		source.SMB = &node.SMBSource{Path: source.SMB.Path}
	}
	return source
}

// growSerial grows the disk with a serial number to nodeGrownBytes.
func growSerial(s *stack.Stack, serial string) {
	s.Helper()
	disks, err := s.Node.Disks(context.Background())
	s.OK(err)
	for _, d := range disks {
		if d.Spec.Serial == serial {
			s.OK(s.Node.GrowDisk(context.Background(), d.Number, nodeGrownBytes))
			return
		}
	}
	s.Fatalf("there is no disk %q", serial)
}

func stageRequest(source node.Source) node.StageRequest {
	return node.StageRequest{VolumeID: nodeVolume, StagingPath: stagingPath, Source: source}
}

func unstageRequest(source node.Source) node.UnstageRequest {
	return node.UnstageRequest{VolumeID: nodeVolume, StagingPath: stagingPath, Source: withoutSecrets(source)}
}

func publishRequest() node.PublishRequest {
	return node.PublishRequest{VolumeID: nodeVolume, StagingPath: stagingPath, TargetPath: targetPath}
}

func unpublishRequest() node.UnpublishRequest {
	return node.UnpublishRequest{VolumeID: nodeVolume, TargetPath: targetPath}
}
