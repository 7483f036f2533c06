package sim

import (
	"errors"

	"github.com/csi-windows/csi-windows/sim/image"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// Return codes of the storage classes. Source: Storage Management API, common
// return codes, and the method pages.
const (
	codeNotSupported      = 1
	codeFailed            = 4
	codeInvalidParameter  = 5
	codeNotFound          = 8
	codeSizeNotSupported  = 4097
	codeNoCapacity        = 40000
	codeIOError           = 40004
	codeSizeChoice        = 40005
	codeNotInitialized    = 41000
	codeInitialized       = 41001
	codeDiskReadOnly      = 41002
	codeDiskOffline       = 41003
	codePartitionLimit    = 41004
	codeBadAlignment      = 41005
	codeWrongStyle        = 41006
	codeNeedsRemoveOEM    = 41007
	codeNeedsRemoveData   = 41008
	codeCriticalDisk      = 41009
	codeBadType           = 41010
	codeBeyond2TiB        = 41011
	codeBadOffset         = 41012
	codeHasPartitions     = 41013
	codeTooSmallForGPT    = 41014
	codeAccessPathInUse   = 42002
	codeHiddenPartition   = 42004
	codeGUIDPathStays     = 42005
	codeBootLetter        = 42006
	codeInvalidAccessPath = 42007
	codeCannotShrink      = 42008
	codeUnknownFileSystem = 42009
	codeCriticalPartition = 42010
	codeDataPartitionOnly = 42011
	codeClusterSize       = 43000
	codeFileSystem        = 43001
	codeTooManyClusters   = 43003
	codeDriveReadOnly     = 43006
)

// storageCode gives the return code for a failure of the disk image.
func storageCode(err error) uint32 {
	if err == nil {
		return 0
	}
	for _, c := range []struct {
		err  error
		code uint32
	}{
		{image.ErrNotInitialized, codeNotInitialized},
		{image.ErrAlreadyInitialized, codeInitialized},
		{image.ErrPartitionLimit, codePartitionLimit},
		{image.ErrBadAlignment, codeBadAlignment},
		{image.ErrWrongStyle, codeWrongStyle},
		{image.ErrBadType, codeBadType},
		{image.ErrBeyond2TiB, codeBeyond2TiB},
		{image.ErrBadOffset, codeBadOffset},
		{image.ErrTooSmallForGPT, codeTooSmallForGPT},
		{image.ErrNoSpace, codeNoCapacity},
		{image.ErrSizeChoice, codeSizeChoice},
		{image.ErrSize, codeSizeNotSupported},
		{image.ErrNotFound, codeNotFound},
		{image.ErrUnsupported, codeNotSupported},
		{image.ErrInvalid, codeInvalidParameter},
		{image.ErrLabel, codeInvalidParameter},
		{image.ErrClusterSize, codeClusterSize},
		{image.ErrFileSystem, codeFileSystem},
		{image.ErrTooManyClusters, codeTooManyClusters},
		{image.ErrOutOfRange, codeInvalidParameter},
	} {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return codeIOError
}

// returnsError is a method's answer for a failure of the disk image, or success.
func returnsError(err error) (cim.Result, error) { return returns(storageCode(err)) }
