package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/csi-windows/csi-windows"
	grpc   = "google.golang.org/grpc"
)

// rooms are the folders of the product. Tests and tools are none.
func rooms() []string {
	return []string{"host", "agent", "winos", "sim", "wire", "client", "cmd"}
}

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

// product lists the packages of the product for a platform, and with them every
// package they are built of.
func product(t *testing.T, system string) map[string]listed {
	t.Helper()
	args := []string{"list", "-deps", "-json=ImportPath,Standard,Imports,Deps"}
	for _, room := range rooms() {
		args = append(args, module+"/"+room+"/...")
	}
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// isIn reports whether a package is another one or lies below it.
func isIn(path, above string) bool {
	return path == above || strings.HasPrefix(path, above+"/")
}

// unknown are the packages a room is not built of, directly or through others.
func unknown() map[string][]string {
	own := func(names ...string) []string {
		for i, name := range names {
			names[i] = module + "/" + name
		}
		return names
	}
	return map[string][]string{
		"agent":       append(own("winos", "sim", "wire", "client", "cmd"), grpc),
		"winos":       append(own("sim", "wire", "client", "cmd"), grpc),
		"winos/cim":   own("agent", "host"),
		"winos/win32": own("agent", "host"),
		"sim":         append(own("agent", "wire", "client", "cmd"), grpc),
		"wire":        own("agent", "winos", "sim", "client", "cmd"),
		"client":      own("agent", "winos", "sim", "cmd"),

		"cmd/csi-proxyctl": own("agent", "winos", "sim"),

		// The suite is what vhdx is built of, so the second line holds for it too.
		"test/conformance":      own("agent", "wire", "client", "cmd"),
		"test/conformance/vhdx": own("winos", "sim"),
	}
}

// broughtBy are packages with which a room gets what it must not know itself. The
// conformance suite makes its scratch disks on a simulated node: csi-proxyctl is built
// of it for that, and imports none of it itself.
func broughtBy() map[string]string {
	return map[string]string{"cmd/csi-proxyctl": module + "/test/conformance/simnode"}
}

// A room does not know what it must not know (docs/architecture.md), on any system.
func TestRoomsKnowOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "windows"} {
		packages := product(t, system)
		for path, p := range packages {
			if !isIn(path, module) {
				continue
			}
			for room, forbidden := range unknown() {
				if !isIn(path, module+"/"+room) {
					continue
				}
				brought := packages[broughtBy()[room]].Deps
				for _, dep := range p.Deps {
					isForbidden := slices.ContainsFunc(forbidden, func(f string) bool { return isIn(dep, f) })
					if isForbidden && (!slices.Contains(brought, dep) || slices.Contains(p.Imports, dep)) {
						t.Errorf("%s: %s is built of %s", system, path, dep)
					}
				}
			}
		}
	}
}

// The contract is built of the standard library alone.
func TestHostImportsTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	packages := product(t, "linux")
	for _, dep := range packages[module+"/host"].Deps {
		if !packages[dep].Standard {
			t.Errorf("host is built of %s", dep)
		}
	}
}

// winos knows the agent's interface and nothing else of the agent.
func TestWinosKnowsOnlyTheInterfaceOfTheAgent(t *testing.T) {
	t.Parallel()
	for path, p := range product(t, "windows") {
		for _, imported := range p.Imports {
			if isIn(path, module+"/winos") && isIn(imported, module+"/agent/") {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}

// Invariant 6: the programs cannot start a process. Neither they nor anything they
// are built of has the package that does, or the one that loads code.
func TestC095_Invariant6_NoProcessCanBeStarted(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "windows"} {
		for path, p := range product(t, system) {
			if !isIn(path, module) {
				continue
			}
			for _, dep := range p.Deps {
				if dep == "os/exec" || dep == "plugin" {
					t.Errorf("%s: %s is built of %s", system, path, dep)
				}
			}
		}
	}
}
