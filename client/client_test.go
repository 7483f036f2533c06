package client_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

func TestSmoke(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	h := &wiretest.Host{IDs: map[uint32]host.DiskIDs{3: {Page83: "p", SerialNumber: "s"}}}
	wiretest.Serve(t, wire.ServerConfig{Host: h, Place: place, Version: "1.2.3"})
	c, err := client.New(client.Options{Place: place})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Log(c.ListDiskIDs(t.Context()))
	t.Log(c.GetServerInfo(t.Context()))
	t.Log(c.Chosen())
	t.Log(c.GetVolume(t.Context(), "x"))
}
