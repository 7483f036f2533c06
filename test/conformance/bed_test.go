package conformance_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/conformance"
	"github.com/csi-windows/csi-windows/test/conformance/simnode"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// The share and the target of the test beds.
const (
	shareUser     = `dom\tester`
	sharePassword = "the right one"
	targetIQN     = "iqn.2026-01.io.example:conformance"
	chapSecret    = "0123456789abc"
)

// newBed starts a stack over a simulated node on which things take a while to
// arrive, with a share and a target, and returns the environment of a run on it,
// for now without a host.
func newBed(t *testing.T) (*stack.Stack, conformance.Env) {
	t.Helper()
	s := stack.New(t, func(cfg *stack.Config) {
		cfg.Node.ArrivalPolls, cfg.Node.ServicePolls = 2, 2
		cfg.Node.BIOSSerial = "SERIAL-1"
	})
	server := sim.SMBServer{Name: "files", Users: map[string]string{shareUser: sharePassword}, Shares: []sim.SMBShare{{Name: "share", Folder: t.TempDir()}}}
	s.OK(s.Node.SetSMBServer(t.Context(), server))
	s.OK(s.Node.SetISCSITarget(t.Context(), sim.ISCSITarget{
		IQN: targetIQN, Portals: []string{"10.0.0.1:3261"}, ChapUser: "u", ChapSecret: chapSecret,
		LUNs: []sim.DiskSpec{{Image: t.TempDir() + "/lun0", SizeBytes: 64 << 20}, {Image: t.TempDir() + "/lun1", SizeBytes: 64 << 20}},
	}))
	return s, conformance.Env{
		Files: s.Node, Scratch: simnode.New(s.Node, t.TempDir()), WorkingDir: stack.Root, BIOSSerial: "SERIAL-1",
		SMB: &conformance.SMBShare{Path: `\\files\share`, Username: shareUser, Password: sharePassword},
		ISCSI: &conformance.ISCSITarget{
			Portal:  host.TargetPortal{Address: "10.0.0.1", Port: 3261},
			Options: host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: "u", ChapSecret: chapSecret},
		},
	}
}

// mustPass fails the test unless every case was run and has passed.
func mustPass(t *testing.T, results []conformance.Result, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	for _, r := range results {
		if r.Outcome != conformance.Passed {
			t.Errorf("%s %s %q %q", r.Outcome, r.Name, r.Failures, r.Notes)
		}
	}
}

// isClean fails the test when a run has left anything on the node.
func isClean(t *testing.T, s *stack.Stack) {
	t.Helper()
	disks, err := s.Node.Disks(t.Context())
	s.OK(err)
	for _, d := range disks {
		if !d.System {
			t.Errorf("disk %d was left", d.Number)
		}
	}
	for _, folder := range []string{stack.Root, `C:\`} {
		for _, name := range s.Names(folder) {
			if name != "k" && name != "Windows" {
				t.Errorf(`%s\%s was left`, folder, name)
			}
		}
	}
	if m := s.Mappings(); len(m) > 0 {
		t.Errorf("mappings %q were left", m)
	}
	if portals, err := s.Agent.ListTargetPortals(t.Context()); err == nil && len(portals) > 0 {
		t.Errorf("portals %v were left", portals)
	}
}
