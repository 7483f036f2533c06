//go:build !windows && !linux

package pipe

import "net"

// PeerPID returns false: this OS has no way that is used here.
func PeerPID(net.Conn) (uint32, bool) { return 0, false }

// ProcessImage returns nothing: this OS has no way that is used here.
func ProcessImage(uint32) string { return "" }
