package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// connection is a node over the client package.
type connection struct {
	*client.Client
	place pipe.Place
}

// openClient connects to the pipes of this machine, or to the sockets in a folder.
func openClient(socketDir string) (node, error) {
	place := pipe.Place{Dir: socketDir}
	c, err := client.New(client.Options{Place: place})
	if err != nil {
		return nil, err
	}
	return &connection{c, place}, nil
}

// noServer is the failure of a command that found nobody at all. The pipes that were
// tried are many, and all in one place.
func noServer(socketDir string) error {
	where := "the pipes of this machine"
	if address, err := (pipe.Place{Dir: socketDir}).Address(wire.GroupDisk, "v1"); err == nil {
		where = filepath.Dir(address)
	}
	return fmt.Errorf("no csi-proxy answers in %s: unavailable; is it running, is --socket-dir right?", where)
}

// APIs connects every group. A group that is not served has a row too; only when
// nothing at all can be used is that an error.
func (c *connection) APIs(ctx context.Context) ([]apiRow, error) {
	connectErr := c.Connect(ctx)
	used := c.Chosen()
	if len(used) == 0 {
		// One failure for each group, and as a rule the same: the first says enough.
		var first *host.Error
		errors.As(connectErr, &first)
		return nil, fmt.Errorf("no API group can be used, for example: %w", first)
	}
	served, err := c.served(ctx)
	if err != nil {
		return nil, err
	}
	var rows []apiRow
	for _, group := range wire.Groups() {
		row := apiRow{Group: group, Used: used[group], Served: []string{}}
		for _, api := range served {
			if api.Group == group {
				row.Served = append(row.Served, api.Version)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// served asks the server what it serves; of a foreign one, it tries every pipe.
func (c *connection) served(ctx context.Context) ([]wire.API, error) {
	info, err := c.GetServerInfo(ctx)
	if err == nil {
		return info.APIs, nil
	}
	if !host.IsKind(err, host.KindUnsupported) {
		return nil, err
	}
	return slices.DeleteFunc(wire.APIs(), func(api wire.API) bool {
		conn, err := c.place.Dial(ctx, api.Group, api.Version)
		if err != nil {
			return true
		}
		_ = conn.Close()
		return false
	}), nil
}
