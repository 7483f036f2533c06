//go:build unix

package simcloud

import "golang.org/x/sys/unix"

// errnoFull is the error of a file system without room.
const errnoFull = unix.ENOSPC
