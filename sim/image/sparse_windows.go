package image

import (
	"os"

	"golang.org/x/sys/windows"
)

// fsctlSetSparse marks a file as sparse. Source: winioctl.h, FSCTL_SET_SPARSE.
const fsctlSetSparse = 0x000900C4

// makeSparse asks the file system not to store holes. One that cannot (FAT,
// Wine) stores them; the image works all the same, so the answer is not looked at.
func makeSparse(file *os.File) {
	var returned uint32
	_ = windows.DeviceIoControl(windows.Handle(file.Fd()), fsctlSetSparse, nil, 0, nil, 0, &returned, nil)
}
