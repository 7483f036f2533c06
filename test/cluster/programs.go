package cluster

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// The folders of the repository, from this one.
const (
	top                = "../.."
	kubernetesPrograms = "../../bin/cluster"
)

// here is the folder of this source file, wherever a test runs.
func here() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// kubernetesProgram is the path of a program that make test-cluster has built.
func kubernetesProgram(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(here(), kubernetesPrograms, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; make bin/cluster/.complete builds it", err)
	}
	return path
}

// built are the programs that one run of the tests has built, by package.
var built struct {
	sync.Mutex
	folder string
	paths  map[string]string
}

// Program builds a command of the product as it is shipped, once for all tests of a
// process, and returns its path.
func Program(t testing.TB, name string) string {
	t.Helper()
	return build(t, filepath.Join(here(), top), "./cmd/"+name)
}

// helper builds a program of this module, in the same way.
func helper(t testing.TB, name string) string {
	t.Helper()
	return build(t, here(), "./"+name)
}

func build(t testing.TB, module, packagePath string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if path, done := built.paths[packagePath]; done {
		return path
	}
	if built.folder == "" {
		t.Fatal("build: TestMain has to call cluster.Main")
	}
	path := filepath.Join(built.folder, filepath.Base(packagePath))
	command := exec.CommandContext(t.Context(), "go", "build", "-C", module, "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, packagePath)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", packagePath, err, output)
	}
	built.paths[packagePath] = path
	return path
}

// Main runs the tests of a package with a folder for the programs they build, which
// it removes afterwards. It returns the exit code.
func Main(m *testing.M) (code int) {
	folder, err := os.MkdirTemp("", "kp")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	built.folder, built.paths = folder, map[string]string{}
	defer func() {
		if err := os.RemoveAll(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	return m.Run()
}

// Ports for programs lie below those that the kernel gives to connections: one of
// those could be taken before its program listens.
// Source: ip(7), ip_local_port_range, 32768 and above unless somebody changed it.
const (
	portsFrom = 12000
	portCount = 8000
)

// portsGiven counts the ports that were tried; none is given twice.
var portsGiven atomic.Int64

// freePorts are ports of loopback that nothing listens on.
func freePorts(count int) (ports []int, err error) {
	for range portCount {
		if len(ports) == count {
			return ports, nil
		}
		// Test beds of several processes begin at different ones.
		port := portsFrom + (int64(os.Getpid())*61+portsGiven.Add(1))%portCount
		listener, failure := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if failure != nil {
			err = failure
			continue
		}
		if err := listener.Close(); err != nil {
			return nil, err
		}
		ports = append(ports, int(port))
	}
	return nil, fmt.Errorf("no %d ports are free: %w", count, err)
}
