// Package samba runs a real SMB server for a test: Samba's smbd on loopback, with
// folders, users and a port of its own. It needs no privilege; Debian's package
// samba is enough.
package samba
