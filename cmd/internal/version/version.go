// Package version says which build of the programs this is.
package version

import (
	"runtime"
	"runtime/debug"
)

// number is the released version. The linker sets it: the Makefile passes
// -X github.com/csi-windows/csi-windows/cmd/internal/version.number=v1.2.3.
var number string

// Number returns the version, e.g. "v1.2.3"; for a build that was told none,
// the version the go command recorded, or "(devel)".
func Number() string {
	if number != "" {
		return number
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Full returns the version with toolchain and platform, e.g.
// "v1.2.3 go1.26.0 windows/amd64".
func Full() string {
	return Number() + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}
