package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/conformance"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// servedNode is a stack with sockets at a known place and a control address.
func servedNode(t *testing.T) (s *stack.Stack, flags []string) {
	t.Helper()
	s = stack.New(t)
	place := wiretest.Place(t)
	wiretest.Serve(t, wire.ServerConfig{Host: s.Agent, Place: place})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.OK(err)
	ended := make(chan error, 1)
	go func() { ended <- control.Serve(t.Context(), listener, s.Node) }()
	t.Cleanup(func() { s.OK(<-ended) }) // the test's context has ended then
	return s, []string{"conformance", "--socket-dir", place.Dir, "--sim-control", listener.Addr().String(), "--working-dir", stack.Root, "--scratch-dir", t.TempDir()}
}

// program runs csi-proxyctl over real sockets.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut strings.Builder
	code = run(t.Context(), args, environment{Stdout: &out, Stderr: &errOut, Open: openClient})
	return code, out.String(), errOut.String()
}

// The whole suite passes over sockets, with servers that the command line names.
func TestConformancePasses(t *testing.T) {
	t.Parallel()
	s, flags := servedNode(t)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	s.OK(os.WriteFile(secret, []byte("0123456789abc\n"), 0o600))
	s.OK(s.Node.SetSMBServer(t.Context(), sim.SMBServer{Name: "srv", Users: map[string]string{"u": "0123456789abc"}, Shares: []sim.SMBShare{{Name: "share", Folder: t.TempDir()}}}))
	s.OK(s.Node.SetISCSITarget(t.Context(), sim.ISCSITarget{
		IQN: "iqn.2026-01.io.example:a", Portals: []string{"10.0.0.1:3260"}, ChapUser: "u", ChapSecret: "0123456789abc",
		LUNs: []sim.DiskSpec{{Image: filepath.Join(dir, "lun"), SizeBytes: 64 << 20}},
	}))
	flags = append(flags, "-o", "json",
		"--smb-path", `\\srv\share`, "--smb-user", "u", "--smb-password-file", secret,
		"--iscsi-portal", "10.0.0.1:3260", "--iscsi-target", "iqn.2026-01.io.example:a", "--iscsi-chap-user", "u", "--iscsi-chap-secret-file", secret)
	code, stdout, stderr := program(t, flags...)
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	var results []conformance.Result
	s.OK(json.Unmarshal([]byte(stdout), &results))
	if len(results) != len(conformance.Cases()) {
		t.Errorf("%d results", len(results))
	}
	for _, r := range results {
		if r.Outcome != conformance.Passed {
			t.Errorf("%+v", r)
		}
	}
}

// What was run and what was not is said at the end.
func TestConformanceSaysHowMany(t *testing.T) {
	t.Parallel()
	_, flags := servedNode(t)
	code, stdout, stderr := program(t, append(flags, "--run", "^smb/")...)
	if code != 0 || stderr != "" || !strings.HasSuffix(stdout, "\nall 2 cases that were run have passed; 2 were not run\n") {
		t.Errorf("exit code %d, %q\n%s", code, stderr, stdout)
	}
}

// A failing case is shown with its reason, and the exit code says so.
func TestConformanceFails(t *testing.T) {
	t.Parallel()
	s, flags := servedNode(t)
	s.OK(s.Node.AddFault(t.Context(), sim.Fault{Call: "win32.QueryService", Count: -1, Win32: 5}))
	code, stdout, stderr := program(t, append(flags, "--run", "^system/|^smb/mapping")...)
	s.OK(s.Node.ClearFaults(t.Context()))
	if code != 1 || !strings.HasPrefix(stderr, "csi-proxyctl: conformance: ") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	for _, want := range []string{"passed   system/bios ", "failed   system/service ", "access denied", "not run  smb/mapping ", "no SMB share was given"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output lacks %q:\n%s", want, stdout)
		}
	}
}

// Without a csi-proxy there is one line that says so, and no output.
func TestConformanceWithoutServer(t *testing.T) {
	t.Parallel()
	_, flags := servedNode(t)
	flags[2] = t.TempDir()
	code, stdout, stderr := program(t, flags...)
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "unavailable") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

// The cases are listed without a csi-proxy.
func TestConformanceList(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := program(t, "conformance", "--list")
	if lines := strings.Count(stdout, "\n"); code != 0 || stderr != "" || lines != len(conformance.Cases())+1 || !strings.Contains(stdout, "disk/partition ") {
		t.Errorf("exit code %d, %d lines, %q\n%s", code, lines, stderr, stdout)
	}
	code, stdout, _ = program(t, "conformance", "--list", "--run", "^smb/mapping$", "-o", "json")
	var rows []caseRow
	if err := json.Unmarshal([]byte(stdout), &rows); code != 0 || err != nil || len(rows) != 1 || rows[0].Name != "smb/mapping" || rows[0].Needs[0] != "SMB share" {
		t.Errorf("exit code %d, %v, %+v", code, err, rows)
	}
}

// A wrong flag is named, before anything is touched.
func TestConformanceFlags(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for args, want := range map[string]string{
		"extra":                        "extra",
		"-o yaml":                      "--output",
		"--run (":                      "--run",
		"--run ^nothing$":              "--run",
		"--case-timeout -1s":           "--case-timeout",
		"--scratch tape":               "--scratch",
		"--scratch sim":                "--sim-control",
		"--smb-user u":                 "--smb-path",
		"--iscsi-target iqn":           "--iscsi-portal",
		"--iscsi-portal 10.0.0.1":      "--iscsi-portal",
		"--iscsi-portal 10.0.0.1:port": "--iscsi-portal",
		"--smb-path x --smb-user u --smb-password-file " + missing: "--smb-password-file",
		"--scratch none --working-dir x":                           "working folder",
	} {
		code, stdout, stderr := program(t, append([]string{"conformance", "--socket-dir", "/nonexistent"}, strings.Fields(args)...)...)
		if code != 1 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}
