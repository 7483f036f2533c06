// Package host is the contract of a node's storage: what can be asked of a
// Windows node, in plain Go types, whoever answers. The agent answers in
// process, the client package answers over pipes, and the node tasks and tests
// do not know which of the two they talk to.
//
// Method names are those of the newest csi-proxy APIs, so that whoever knows
// csi-proxy is at home. Methods marked "Addition" have no counterpart there; a
// foreign or older csi-proxy answers them with KindUnsupported.
//
// Every error returned through this contract is an *Error. Sizes are bytes and
// carry it in their names. Paths are Windows paths whatever the OS of the caller.
package host

// Host is the whole storage of one node.
type Host interface {
	Disk
	Volume
	Filesystem
	SMB
	ISCSI
	System
}
