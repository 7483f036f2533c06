package smb

import (
	"encoding/binary"
	"errors"
	"net"
)

// errPlain is what a guarded connection fails with.
var errPlain = errors.New("the server does not encrypt")

// guardedConn lets nothing out that is not encrypted, but what makes and ends a
// session. The SMB client encrypts when the server or share demands it, and has no
// way of its own to insist. It writes a packet as its length, then the whole of it.
type guardedConn struct {
	net.Conn
	leftBytes int // of the packet, once its length was written
}

// Layout of a packet: [MS-SMB2] 2.2.1 and 2.2.41.
const (
	lengthBytes   = 4
	commandOffset = 12
	// Negotiate, session setup, logoff, tree connect, tree disconnect.
	commandTreeDisconnect = 4
	protocolPlain         = "\xfeSMB"
	protocolEncrypted     = "\xfdSMB"
)

// Write implements net.Conn.
func (c *guardedConn) Write(p []byte) (int, error) {
	switch {
	case c.leftBytes > 0:
		if len(p) != c.leftBytes || !mayLeave(p) {
			return 0, errPlain
		}
		c.leftBytes = 0
	case len(p) == lengthBytes:
		c.leftBytes = int(binary.BigEndian.Uint32(p))
	default:
		return 0, errPlain // not how packets are written: nothing is known of it
	}
	return c.Conn.Write(p)
}

func mayLeave(packet []byte) bool {
	if len(packet) < commandOffset+2 {
		return false
	}
	if string(packet[:4]) == protocolEncrypted {
		return true
	}
	return string(packet[:4]) == protocolPlain && binary.LittleEndian.Uint16(packet[commandOffset:]) <= commandTreeDisconnect
}
