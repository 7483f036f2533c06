package node_test

import (
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/test/bed"
)

// official is a host without the contract's additions, see bed.Official.
func official(h host.Host) host.Host { return bed.Official(h) }
