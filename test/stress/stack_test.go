package stress

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

const (
	root     = `C:\var\lib\kubelet`
	mib      = 1 << 20
	iqn      = "iqn.2026-11.org.example:stress"
	address  = "10.0.0.5"
	server   = "files"
	share    = "volumes"
	user     = "user"
	password = "password"
)

// stack is a whole driver over a simulated node.
type stack struct {
	testing.TB
	node    *sim.Node
	os      agent.OS
	agent   *agent.Agent
	order   *order
	conn    *grpc.ClientConn // to the driver
	calls   csi.NodeClient
	sources map[string]node.Source // by volume id
}

// newStack starts everything, with volumes of every kind.
func newStack(t testing.TB, volumes int) *stack {
	t.Helper()
	s := &stack{TB: t, order: newOrder(), sources: map[string]node.Source{}}
	var err error
	s.node, err = sim.Open(t.Context(), sim.Config{Dir: t.TempDir(), ArrivalPolls: -1, ServicePolls: -1})
	s.ok(err)
	t.Cleanup(func() { s.ok(s.node.Close()) })
	s.ok(s.node.MakeDir(t.Context(), root))
	s.provide(volumes)
	s.os = winos.New(s.node, s.node, winos.Options{})
	s.agent, err = agent.New(s.os, agent.Policy{Roots: []string{root}, RequirePrivacy: true})
	s.ok(err)
	tasks, err := node.New(watchedHost{s.agent, s.order}, node.Options{})
	s.ok(err)
	place := wiretest.Place(t)
	wiretest.Serve(t, wire.ServerConfig{
		Host: s.agent, Node: watchedNode{tasks, s.order}, Place: place, Limits: wire.Limits{CallTimeout: agent.DefaultCallTimeout},
	})
	c, err := client.New(client.Options{Place: place})
	s.ok(err)
	t.Cleanup(func() { _ = c.Close() })
	s.conn = s.serve(c)
	s.calls = csi.NewNodeClient(s.conn)
	return s
}

func (s *stack) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// provide puts volumes on the node's bus and network: half disks, the rest folders
// of one share and logical units of one target.
func (s *stack) provide(volumes int) {
	s.Helper()
	ctx, folder := s.Context(), s.TempDir()
	var luns []sim.DiskSpec
	for i := range volumes {
		id := fmt.Sprintf("volume-%d", i)
		switch i % 4 {
		case 0, 1:
			serial := fmt.Sprintf("SERIAL%04d", i)
			_, err := s.node.AttachDisk(ctx, sim.DiskSpec{Image: filepath.Join(s.TempDir(), "disk"), SizeBytes: 128 * mib, Bus: "SAS", Serial: serial})
			s.ok(err)
			s.sources[id] = node.Source{Disk: &node.DiskSource{SerialNumber: serial}}
		case 2:
			s.ok(os.Mkdir(filepath.Join(folder, id), 0o755))
			s.sources[id] = node.Source{SMB: &node.SMBSource{Path: `\\` + server + `\` + share + `\` + id, Username: user, Password: password}}
		default:
			s.sources[id] = node.Source{ISCSI: &node.ISCSISource{Portals: []host.TargetPortal{{Address: address, Port: 3260}}, IQN: iqn, LUN: uint32(len(luns))}}
			luns = append(luns, sim.DiskSpec{Image: filepath.Join(s.TempDir(), "lun"), SizeBytes: 128 * mib, Bus: "iSCSI"})
		}
	}
	s.ok(s.node.SetISCSITarget(ctx, sim.ISCSITarget{IQN: iqn, Portals: []string{address + ":3260"}, LUNs: luns}))
	s.ok(s.node.SetSMBServer(ctx, sim.SMBServer{Name: server, Users: map[string]string{user: password}, Shares: []sim.SMBShare{{Name: share, Folder: folder}}}))
}

// serve runs the driver on a socket of its own and connects to it.
func (s *stack) serve(n node.Node) *grpc.ClientConn {
	s.Helper()
	endpoint := "unix:" + filepath.Join(wiretest.Place(s.TB).Dir, "csi.sock")
	driver, err := csikit.New(csikit.Config{
		Name: "stress.example.org", Version: "1", NodeID: "node", Node: n, NodeBackend: fixed(s.sources), Server: csikit.ServerConfig{Endpoint: endpoint},
	})
	s.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- driver.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		s.ok(<-ended)
	})
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	s.ok(err)
	s.Cleanup(func() { _ = conn.Close() })
	ready, stop := context.WithTimeout(s.Context(), 20*time.Second)
	defer stop()
	_, err = csi.NewIdentityClient(conn).Probe(ready, &csi.ProbeRequest{}, grpc.WaitForReady(true))
	s.ok(err)
	return conn
}

// fixed is a backend of volumes that are there.
type fixed map[string]node.Source

// NodeSource implements csikit.NodeBackend.
func (f fixed) NodeSource(_ context.Context, r csikit.NodeSourceRequest) (node.Source, error) {
	source, ok := f[r.VolumeID]
	if !ok {
		return node.Source{}, fmt.Errorf("volume %s: %w", r.VolumeID, csikit.ErrNotFound)
	}
	if r.Ending && source.SMB != nil {
		return node.Source{SMB: &node.SMBSource{Path: source.SMB.Path}}, nil
	}
	return source, nil
}
