package simcloud

import "golang.org/x/sys/windows"

// errnoFull is the error of a file system without room.
const errnoFull = windows.ERROR_DISK_FULL
