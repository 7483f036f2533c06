package cluster

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// PlainDriverName is the name of the driver that shares no code with the kit.
const PlainDriverName = "plain.example.com"

// PlainVolume is a volume of the plain driver's back-end.
type PlainVolume struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	SizeBytes int64           `json:"sizeBytes"`
	Zone      string          `json:"zone"`
	Nodes     map[string]bool `json:"nodes"`
}

// PlainState is what the back-end of the plain driver holds.
type PlainState struct {
	Volumes   map[string]PlainVolume `json:"volumes"`
	Snapshots map[string]struct {
		ID, Name, Volume string
	} `json:"snapshots"`
	Groups map[string]string `json:"groups"`
}

// PlainDir is the folder of the plain driver's back-end.
func (c *Cluster) PlainDir() string { return c.path("plain") }

// PlainState reads the plain driver's back-end.
func (c *Cluster) PlainState() (state PlainState, err error) {
	data, err := os.ReadFile(filepath.Join(c.PlainDir(), "state.json"))
	if os.IsNotExist(err) {
		return state, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	return state, err
}

// PlainDriver starts the plain driver, again on the same back-end after it was
// stopped or killed.
func (c *Cluster) PlainDriver(flags ...string) *Driver {
	c.t.Helper()
	return c.plainDriver("plaindriver", c.path("plain.sock"), append([]string{"-dir=" + c.PlainDir()}, flags...))
}

// plainDriver starts a plain driver and waits until it answers.
func (c *Cluster) plainDriver(name, socket string, flags []string) *Driver {
	c.t.Helper()
	d := &Driver{SocketPath: socket, Address: "unix:" + socket}
	d.Process = c.Start(name, helper(c.t, "plaindriver"), append([]string{"-socket=" + socket}, flags...)...)
	identity := csi.NewIdentityClient(c.Dial(d.Address))
	c.waitFor(d.Process, func(ctx context.Context) error {
		_, err := identity.Probe(ctx, &csi.ProbeRequest{})
		return err
	})
	return d
}
