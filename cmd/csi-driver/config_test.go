package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/cmd/internal/sandbox"
	"github.com/csi-windows/csi-windows/sim/cloud"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// TestMain is main in the processes that tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-mode=") {
		main()
	}
	wiretest.Main(m)
}

// on is the environment of an operating system, with the variables of pairs.
func on(goos string, pairs ...string) environment {
	return environment{GOOS: goos, Getenv: func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}}
}

func parse(env environment, args ...string) (*config, error) {
	return parseConfig(args, env, flag.NewFlagSet("", flag.ContinueOnError))
}

func mustParse(t *testing.T, env environment, args ...string) *config {
	t.Helper()
	c, err := parse(env, args...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseConfig(t *testing.T) {
	t.Parallel()
	c := mustParse(t, on("linux"), "--driver=simcloud", "--node-id=n", "--cloud-dir=/c", "--cloud-node=n=/sock", "--cloud-node=m=/other,zone=b,max=9",
		"--call-timeout=5s", "--grace-period=0s")
	if c.Mode != modeAll || c.Endpoint != "unix:/csi/csi.sock" || c.Host != hostAuto || c.CallTime != 5*time.Second || c.GraceTime != 0 {
		t.Errorf("got %+v", c)
	}
	if want := []cloud.Node{{Name: "n", Control: "/sock"}, {Name: "m", Control: "/other", Zone: "b", MaxDisks: 9}}; !slices.Equal(c.Cloud.Nodes, want) {
		t.Errorf("nodes %+v", c.Cloud.Nodes)
	}
	c = mustParse(t, on("windows"), "-mode=node", "-driver=smb", "-node-id=n", `-endpoint=unix://C:\csi\csi.sock`,
		`-smb-source=//srv/share/base,credentials=C:\secret`, "-smb-dial=SRV=127.0.0.1:4450")
	if want := []smbSource{{"//srv/share/base", `C:\secret`}}; !slices.Equal(c.SMB.Sources, want) || c.SMB.Dial["srv"] != "127.0.0.1:4450" {
		t.Errorf("smb %+v", c.SMB)
	}
}

func TestParseConfigNamesFlagAndLimit(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"":                            {"-driver", "iscsi, simcloud, smb"},
		"-no-such-flag":               {"unknown flag -no-such-flag", "csi-driver -help"},
		"-driver=nfs":                 {"-driver", "iscsi, simcloud, smb"},
		"-driver=iscsi":               {"-node-id", "-mode=all"},
		"-driver=iscsi -mode=sidecar": {"-mode", "controller, node or all"},
		"-driver=iscsi -node-id=" + strings.Repeat("x", 257):                  {"-node-id", "256"},
		"-driver=iscsi -node-id=n -host=sim":                                  {"-host", "auto, proxy or local"},
		"-driver=iscsi -node-id=n -node-tasks=x":                              {"-node-tasks", "auto, proxy or driver"},
		"-driver=iscsi -node-id=n -host=local":                                {"-sim-dir", "needed"},
		"-driver=iscsi -node-id=n -host=local -sim-dir=/s -node-tasks=proxy":  {"-node-tasks", "-host=local"},
		"-driver=iscsi -node-id=n -host=proxy -sim-dir=/s":                    {"-sim-dir", "-host=local"},
		"-driver=iscsi -node-id=n -cloud-dir=/c":                              {"-cloud-dir", "-driver=iscsi"},
		"-driver=iscsi -node-id=n -iscsi-pool-file=/p":                        {"-iscsi-state-dir", "needed"},
		"-driver=simcloud -node-id=n":                                         {"-cloud-dir", "needed"},
		"-driver=simcloud -mode=node -node-id=n -cloud-max-volumes=-1":        {"-cloud-max-volumes", "negative"},
		"-driver=simcloud -cloud-node=n":                                      {"-cloud-node", "NAME=ADDRESS"},
		"-driver=smb -node-id=n":                                              {"-smb-source", "needed"},
		"-driver=smb -node-id=n -smb-source=share":                            {"-smb-source", "//server/share"},
		"-driver=smb -node-id=n -smb-dial=x":                                  {"-smb-dial", "HOST:PORT"},
		"-grace-period=11m":                                                   {"-grace-period", "0s to 10m"},
		"-call-timeout=1":                                                     {"-call-timeout", "duration"},
		"-driver=iscsi -node-id=n -metrics-bind-address=x":                    {"-metrics-bind-address", "HOST:PORT"},
		"-driver=iscsi -node-id=n -kubelet-path=x":                            {"-kubelet-path", "absolute"},
		"-driver=iscsi -node-id=n -kubelet-path=":                             {"-kubelet-path"},
		"-driver=iscsi -node-id=n -working-dir=C:x":                           {"-working-dir", "absolute"},
		"-driver=iscsi -node-id=n -node-folder=../..":                         {"-node-folder", "absolute"},
		"-driver=iscsi -node-id=n -node-folder=C:/a/../../b":                  {"-node-folder"},
		"-driver=simcloud -cloud-dir=/c -node-id=n -cloud-zone=../..":         {"-cloud-zone", "letters, digits"},
		"-driver=simcloud -cloud-dir=/c -node-id=n -cloud-control=x":          {"-cloud-control", "HOST:PORT"},
		"-driver=simcloud -cloud-dir=/c -node-id=n -cloud-node=n=x":           {"-cloud-node", "HOST:PORT"},
		"-driver=simcloud -cloud-dir=/c -node-id=n -cloud-node=../n=/c":       {"-cloud-node", "letters, digits"},
		"-driver=simcloud -cloud-dir=/c -node-id=n -cloud-node=n=/c,zone=a/b": {"-cloud-node", "the zone", "letters, digits"},
		"-driver=simcloud -cloud-dir=/c -node-id=n -cloud-node=n=/c,max=-1":   {"-cloud-node", "max=DISKS"},
		"-driver=simcloud -cloud-node=n=/c -cloud-node=n=/d":                  {"-cloud-node", "twice"},
		"-driver=iscsi -node-id=n -metrics-bind-address=x -kubelet-path=x":    {"-metrics-bind-address"},
		"extra": {"extra"},
	} {
		_, err := parse(on("linux"), strings.Fields(args)...)
		var usage *exit.UsageError
		if !errors.As(err, &usage) || exit.Code(err) != 2 {
			t.Errorf("%s: error %v, want a usage error", args, err)
			continue
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %q", args, err)
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", args, err, part)
			}
		}
	}
	for _, args := range []string{`-sim-dir=C:\s`, `-socket-dir=C:\p`} {
		if _, err := parse(on("windows"), "-driver=iscsi", "-node-id=n", args); err == nil || !strings.Contains(err.Error(), "off Windows only") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestC093_HostIsChosenAndSaidWhy(t *testing.T) {
	t.Parallel()
	const mountPoint = `C:\hpc`
	for name, test := range map[string]struct {
		env  environment
		flag string
		way  string
		why  string
	}{
		"HostProcess container":          {on("windows", sandbox.Variable, mountPoint), "-host=auto", hostLocal, "HostProcess"},
		"ordinary container":             {on("windows"), "-host=auto", hostProxy, "no HostProcess"},
		"HostProcess container by pipes": {on("windows", sandbox.Variable, mountPoint), "-host=proxy", hostProxy, "-host=proxy"},
		"in process by flag":             {on("windows"), "-host=local", hostLocal, "-host=local"},
		"simulated":                      {on("linux"), "-sim-dir=/s", hostLocal, "simulated"},
		"off Windows":                    {on("linux"), "-host=auto", hostProxy, "no Windows"},
		"variable off Windows":           {on("linux", sandbox.Variable, "/hpc"), "-host=auto", hostProxy, "no Windows"},
	} {
		c := mustParse(t, test.env, "-driver=iscsi", "-node-id=n", test.flag)
		if way, why := chooseHost(c, test.env); way != test.way || !strings.Contains(why, test.why) {
			t.Errorf("%s: %s, %s", name, way, why)
		}
	}
}

func TestC093_PathsInAHostProcessContainer(t *testing.T) {
	t.Parallel()
	const at = `C:\C\0123\`
	args := func(endpoint, pool, state string) []string {
		return []string{"-driver=iscsi", "-node-id=n", "-endpoint=" + endpoint, "-iscsi-pool-file=" + pool, "-iscsi-state-dir=" + state}
	}
	for name, test := range map[string]struct {
		env   environment
		given []string
		want  []string
	}{
		"set": {
			on("windows", sandbox.Variable, at), args(`unix:csi\csi.sock`, `$CONTAINER_SANDBOX_MOUNT_POINT/etc/pool.yaml`, `C:\state`),
			[]string{`unix:C:\C\0123\csi\csi.sock`, `C:\C\0123\etc\pool.yaml`, `C:\state`},
		},
		"set, other spellings": {
			on("windows", sandbox.Variable, at), args(`unix:/csi/csi.sock`, `%CONTAINER_SANDBOX_MOUNT_POINT%\p`, `$env:CONTAINER_SANDBOX_MOUNT_POINT`),
			[]string{`unix:/csi/csi.sock`, `C:\C\0123\p`, `C:\C\0123`},
		},
		"not set": {
			on("windows"), args(`unix:csi\csi.sock`, `$CONTAINER_SANDBOX_MOUNT_POINT/etc/pool.yaml`, `state`),
			[]string{`unix:csi\csi.sock`, `$CONTAINER_SANDBOX_MOUNT_POINT/etc/pool.yaml`, `state`},
		},
		"another variable": {
			on("windows", sandbox.Variable, at), args(`tcp://127.0.0.1:1`, `$CONTAINER_SANDBOX_MOUNT_POINTS\p`, `\\.\pipe`),
			[]string{`tcp://127.0.0.1:1`, `C:\C\0123\$CONTAINER_SANDBOX_MOUNT_POINTS\p`, `\\.\pipe`},
		},
		"off Windows": {
			on("linux", sandbox.Variable, "/box"), args("unix://a/b", `${CONTAINER_SANDBOX_MOUNT_POINT}/p`, `/abs`),
			[]string{"unix:///box/a/b", "/box/p", "/abs"},
		},
	} {
		c := mustParse(t, test.env, test.given...)
		if got := []string{c.Endpoint, c.ISCSI.PoolFile, c.ISCSI.StateDir}; !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if c.KubeletPath != defaultKubeletPath || !strings.HasPrefix(c.NodeFolder, defaultKubeletPath) {
			t.Errorf("%s: kubelet's paths are %s and %s", name, c.KubeletPath, c.NodeFolder)
		}
	}
}

func TestRunWithoutServing(t *testing.T) {
	t.Parallel()
	cloudDir := filepath.Join(t.TempDir(), "cloud")
	touching := "-driver=simcloud -node-id=n -cloud-dir=" + cloudDir
	for args, test := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		"-version":        {0, "csi-driver ", ""},
		"-help":           {0, "-node-tasks", ""},
		"-v=x":            {2, "", "-v"},
		"-log_file=x":     {2, "", "log_file"},
		"-driver=mars":    {2, "", "-driver: must be one of"},
		"-smb-password=x": {2, "", "smb-password"},
		// What the kit and the pipes would refuse is refused before anything is touched.
		touching + " -driver-name=a_b":                            {2, "", "-driver-name: "},
		touching + " -driver-name=" + strings.Repeat("x", 64):     {2, "", "-driver-name: "},
		touching + " -endpoint=":                                  {2, "", "-endpoint: must not be empty"},
		touching + " -endpoint=unix:/" + strings.Repeat("x", 200): {2, "", "-endpoint: "},
		touching + " -endpoint=tcp://192.0.2.1:1":                 {2, "", "-endpoint: "},
		touching + " -socket-dir=/" + strings.Repeat("x", 200):    {2, "", "-socket-dir: "},
	} {
		var stdout, stderr bytes.Buffer
		env := on("linux")
		env.Stdout, env.Stderr = &stdout, &stderr
		code := run(context.Background(), strings.Fields(args), env)
		if code != test.code || !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", args, code, stdout.String(), stderr.String())
		}
		if (stderr.Len() > 0) != (test.code != 0) {
			t.Errorf("%s: exit code %d, but stderr %q", args, code, stderr.String())
		}
		if strings.Count(stderr.String(), "\n") > 1 {
			t.Errorf("%s: more than one line: %q", args, stderr.String())
		}
	}
	if _, err := os.Stat(cloudDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder was made for a command line that cannot be accepted: %v", err)
	}
}

func TestDriverPageNamesEveryFlag(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/driver.md")
	if err != nil {
		t.Fatal(err)
	}
	newFlagSet(&config{}).VisitAll(func(f *flag.Flag) {
		if !bytes.Contains(page, []byte("| `-"+f.Name+"` |")) {
			t.Errorf("docs/driver.md does not describe -%s", f.Name)
		}
	})
}
