package csikit_test

import (
	"context"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/csikit/kittest"
	endpoints "github.com/csi-windows/csi-windows/test/endpoint"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	b, n := kittest.NewBackend(), kittest.NewNode()
	good := csikit.Config{Name: "disks.example.com", Version: "1", NodeID: "n", Backend: b, NodeBackend: b, Node: n}
	for name, test := range map[string]struct {
		change func(*csikit.Config)
		want   string // a part of the error, "" for none
	}{
		"all":                       {func(*csikit.Config) {}, ""},
		"only a controller":         {func(c *csikit.Config) { c.NodeBackend, c.Node, c.NodeID = nil, nil, "" }, ""},
		"only a node":               {func(c *csikit.Config) { c.Backend = nil }, ""},
		"longest name":              {func(c *csikit.Config) { c.Name = strings.Repeat("a", 63) }, ""},
		"longest node id":           {func(c *csikit.Config) { c.NodeID = strings.Repeat("n", 256) }, ""},
		"no name":                   {func(c *csikit.Config) { c.Name = "" }, "Config.Name has 0 bytes"},
		"name too long":             {func(c *csikit.Config) { c.Name = strings.Repeat("a", 64) }, "Config.Name has 64 bytes"},
		"name with underscore":      {func(c *csikit.Config) { c.Name = "my_disks" }, "domain name"},
		"name with slash":           {func(c *csikit.Config) { c.Name = "example.com/disks" }, "domain name"},
		"name that begins with '-'": {func(c *csikit.Config) { c.Name = "-disks" }, "domain name"},
		"name with an empty label":  {func(c *csikit.Config) { c.Name = "disks..com" }, "domain name"},
		"name that ends with '.'":   {func(c *csikit.Config) { c.Name = "disks." }, "domain name"},
		"no version":                {func(c *csikit.Config) { c.Version = "" }, "Config.Version"},
		"nothing to do":             {func(c *csikit.Config) { c.Backend, c.NodeBackend, c.Node = nil, nil, nil }, "neither"},
		"no Node":                   {func(c *csikit.Config) { c.Node = nil }, "come together"},
		"no NodeBackend":            {func(c *csikit.Config) { c.NodeBackend = nil }, "come together"},
		"no node id":                {func(c *csikit.Config) { c.NodeID = "" }, "Config.NodeID has 0 bytes"},
		"node id too long":          {func(c *csikit.Config) { c.NodeID = strings.Repeat("n", 257) }, "Config.NodeID has 257 bytes"},
		"bad endpoint":              {func(c *csikit.Config) { c.Server.Endpoint = "ftp://host" }, "endpoint"},
	} {
		config := good
		test.change(&config)
		_, err := csikit.New(config)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: New says %v, want %q", name, err, test.want)
		}
	}
}

func TestADriverWithoutEndpointDoesNotRun(t *testing.T) {
	t.Parallel()
	driver, err := csikit.New(csikit.Config{Name: "disks.example.com", Version: "1", Backend: kittest.NewBackend()})
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "Endpoint") {
		t.Errorf("Run says %v", err)
	}
}

// handMade is a driver whose author writes the servers by hand.
type handMade struct{ csikit.DefaultController }

func (handMade) DeleteVolume(context.Context, *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, nil
}

func TestDefaultServersAreAStart(t *testing.T) {
	t.Parallel()
	endpoint := endpoints.New(t)
	listening := make(chan struct{})
	config := csikit.ServerConfig{
		Endpoint:    endpoint,
		OnListening: closes(listening),
		Services: csikit.Services{
			Identity:   csikit.DefaultIdentity{Name: "hand.example.com", Version: "2"},
			Controller: handMade{},
			Node:       csikit.DefaultNode{NodeID: "node-7"},
		},
	}
	server, err := csikit.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-listening
	conn := endpoints.Dial(t, endpoint)

	info, err := csi.NewIdentityClient(conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	if err != nil || info.GetName() != "hand.example.com" || info.GetVendorVersion() != "2" {
		t.Errorf("GetPluginInfo: %v %v", info, err)
	}
	if _, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{}); err != nil {
		t.Errorf("Probe: %v", err)
	}
	if _, err := csi.NewControllerClient(conn).DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "v"}); err != nil {
		t.Errorf("a method of one's own: %v", err)
	}
	_, err = csi.NewControllerClient(conn).CreateVolume(ctx, createRequest("v", writer()))
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("a method nobody wrote: %v", err)
	}
	node, err := csi.NewNodeClient(conn).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil || node.GetNodeId() != "node-7" {
		t.Errorf("NodeGetInfo: %v %v", node, err)
	}
}
