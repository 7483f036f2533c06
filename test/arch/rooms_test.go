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
	return []string{"host", "agent", "winos", "sim", "node", "wire", "client", "mounter", "csikit", "driver", "sidecar", "cmd", "internal"}
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

		"node":    append(own("agent", "winos", "sim", "wire", "client", "csikit", "driver", "cmd"), grpc),
		"csikit":  own("agent", "winos", "sim", "wire", "client", "driver", "cmd"),
		"mounter": append(own("agent", "winos", "sim", "wire", "client", "csikit", "driver", "cmd"), grpc),
		"driver":  own("agent", "winos", "wire", "client", "mounter", "cmd"),
		"sidecar": own("agent", "winos", "sim", "wire", "client", "cmd", "csikit", "driver"),

		"cmd/csi-proxyctl": own("agent", "winos", "sim"),

		// The suite is what vhdx is built of, so the second line holds for it too.
		"test/conformance":      own("agent", "wire", "client", "cmd"),
		"test/conformance/vhdx": own("winos", "sim"),
	}
}

// broughtBy are packages with which a room gets what it must not know itself. The
// conformance suite makes its scratch disks on a simulated node: csi-proxyctl is built
// of it for that, and imports none of it itself. The driver for the simulated cloud
// reaches simulated nodes, which stand on the interfaces of Windows.
func broughtBy() map[string]string {
	return map[string]string{
		"cmd/csi-proxyctl": module + "/test/conformance/simnode",
		"driver":           module + "/sim/control",
	}
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
		packages := product(t, system)
		for path, p := range packages {
			if !isIn(path, module) {
				continue
			}
			for _, dep := range p.Deps {
				// The mounter is a library for drivers that use k8s.io/mount-utils already,
				// which brings it; no program of ours is built of the mounter.
				if dep == "os/exec" && isIn(path, module+"/mounter") {
					continue
				}
				if dep == "os/exec" && hasClientOfKubernetes(path) && isBroughtByClientGo(packages, path) {
					continue
				}
				if dep == "os/exec" || dep == "plugin" {
					t.Errorf("%s: %s is built of %s", system, path, dep)
				}
			}
		}
	}
}

// execOfClientGo are the packages of client-go, and of what it reads OpenAPI documents
// with, that can start a program: one that a kubeconfig names to get credentials, and
// one that a reader of documents is given as an extension. They cannot be left out of
// client-go. sidecar.NewKubeConfig refuses such a kubeconfig, and nobody gives extensions.
func execOfClientGo() []string {
	return []string{"k8s.io/client-go/plugin/pkg/client/auth/exec", "github.com/google/gnostic-models/compiler"}
}

// hasClientOfKubernetes reports whether a package may be built of client-go.
func hasClientOfKubernetes(path string) bool {
	return isIn(path, module+"/sidecar") || isIn(path, module+"/cmd/csi-sidecar")
}

// isBroughtByClientGo reports whether a package has os/exec through those of client-go
// only: no other package it is built of imports it, the standard library's own aside.
func isBroughtByClientGo(packages map[string]listed, path string) bool {
	for _, dep := range append(packages[path].Deps, path) {
		p := packages[dep]
		if !p.Standard && slices.Contains(p.Imports, "os/exec") && !slices.Contains(execOfClientGo(), dep) {
			return false
		}
	}
	return true
}
