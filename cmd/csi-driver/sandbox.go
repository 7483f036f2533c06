package main

import "github.com/csi-windows/csi-windows/cmd/internal/sandbox"

// resolvePaths puts the paths of files where they are. Paths of the node, as those of
// the kubelet, are the host's and stay as they are.
func (c *config) resolvePaths(s sandbox.Sandbox) {
	c.Endpoint = s.Endpoint(c.Endpoint)
	for _, path := range []*string{&c.SocketDir, &c.SimDir, &c.Cloud.Dir, &c.ISCSI.PoolFile, &c.ISCSI.StateDir} {
		*path = s.Path(*path)
	}
	for i := range c.SMB.Sources {
		c.SMB.Sources[i].CredentialsDir = s.Path(c.SMB.Sources[i].CredentialsDir)
	}
}
