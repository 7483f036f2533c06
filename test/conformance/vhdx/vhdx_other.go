//go:build !windows

package vhdx

import (
	"errors"

	"github.com/csi-windows/csi-windows/test/conformance"
)

// New fails: only Windows attaches files as disks.
func New(string) (conformance.Scratch, error) {
	return nil, errors.New("scratch disks in VHDX files work on Windows only")
}
