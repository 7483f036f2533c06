package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/sidecar"
)

func surroundings(pairs ...string) environment {
	return environment{
		GOOS: "linux",
		Getenv: func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		},
		Hostname:      func() (string, error) { return "host", nil },
		AccountFolder: "testdata/none",
		Stdout:        &bytes.Buffer{}, Stderr: &bytes.Buffer{},
	}
}

func mustParse(t *testing.T, env environment, args ...string) *settings {
	t.Helper()
	s, _, err := parse(args, env)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return s
}

func TestAnyComponentsRunTogether(t *testing.T) {
	s := mustParse(t, surroundings(), "csi-sidecar", "--controllers=provisioner, csi-attacher,attacher,livenessprobe",
		"--provisioner-worker-threads=7", "--attacher-timeout=3s", "--provisioner-timeout=4s", "--csi-address=/csi/csi.sock", "-v=5")
	if want := []string{sidecar.Provisioner, sidecar.Attacher, sidecar.LivenessProbe}; !slices.Equal(s.Controllers, want) {
		t.Errorf("controllers %q, want %q", s.Controllers, want)
	}
	if s.Provisioner.WorkerThreads != 7 || s.Attacher.Timeout != 3*time.Second || s.Provisioner.Timeout != 4*time.Second || s.CSIAddress != "/csi/csi.sock" {
		t.Errorf("settings: %+v", s)
	}
	if !s.Leader.On {
		t.Error("several components run without leases")
	}
}

// Each upstream program with the arguments of its own example manifests.
func TestUpstreamsProgramsAreReplacedWithoutAChange(t *testing.T) {
	for name, c := range map[string]struct {
		args      []string
		env       []string
		component string
		check     func(*settings) bool
	}{
		"provisioner by link": {[]string{
			"/usr/local/bin/csi-provisioner", "-v=5", "--csi-address=/csi/csi.sock", "--feature-gates=Topology=true", "--enable-capacity",
			"--capacity-ownerref-level=0", "--node-deployment=true", "--strict-topology=true", "--immediate-topology=false", "--worker-threads=5",
			"--prevent-volume-mode-conversion=false", "--leader-election", "--leader-election-namespace", "ns", "--timeout=30s", "--kube-api-qps=20",
			"--kube-api-burst=100", "--kube-api-capacity-qps=1", "--http-endpoint=:8080", "--default-fstype=ntfs", "--extra-create-metadata",
		}, []string{"NODE_NAME", "n1", "POD_NAME", "p"}, sidecar.Provisioner, func(s *settings) bool {
			return s.Provisioner.NodeDeployment.NodeName == "n1" && s.Provisioner.StrictTopology && s.Provisioner.NoImmediateTopology &&
				s.Provisioner.AllowVolumeModeConversion && s.Capacity.On && s.Capacity.OwnerLevel == 0 && s.Leader.Namespace == "ns" && s.QPS == 20
		}},
		"attacher by the first argument": {
			[]string{"/csi-sidecar", "csi-attacher", "--v=2", "--csi-address=/csi/csi.sock", "--worker-threads", "3", "--reconcile-sync=5m", "--timeout=1m", "--logtostderr=true"},
			nil, sidecar.Attacher, func(s *settings) bool {
				return s.Attacher.WorkerThreads == 3 && s.Attacher.ReconcileSync == 5*time.Minute && !s.Leader.On
			},
		},
		"resizer": {
			[]string{"csi-resizer", "--workers=4", "--handle-volume-inuse-error=false", "--feature-gates=VolumeAttributesClass=false,Other=true"},
			nil, sidecar.Resizer, func(s *settings) bool { return s.Resizer.Workers == 4 && s.Resizer.IgnoreInUse && s.Resizer.NoModify },
		},
		"snapshotter": {
			[]string{"csi-snapshotter", "--snapshot-name-prefix=s", "--feature-gates=CSIVolumeGroupSnapshot=true", "--extra-create-metadata=true"},
			nil, sidecar.Snapshotter, func(s *settings) bool { return s.Snapshotter.Groups && s.Snapshotter.NamePrefix == "s" },
		},
		"livenessprobe": {
			[]string{"/livenessprobe", "--csi-address=/csi/csi.sock", "--probe-timeout=3s", "--health-port=29602", "--v=2"},
			nil, sidecar.LivenessProbe, func(s *settings) bool {
				return s.Liveness.HealthPort == 29602 && s.Liveness.CSIAddress == "/csi/csi.sock" && !s.needsServer()
			},
		},
		"livenessprobe with the usual port and an endpoint": {
			[]string{"livenessprobe", "--health-port=9808", "--http-endpoint=:29602"},
			nil, sidecar.LivenessProbe, func(s *settings) bool { return s.Liveness.Address() == ":29602" },
		},
		"livenessprobe with metrics elsewhere": {
			[]string{"livenessprobe", "--health-port=9808", "--metrics-address=:9090", "--metrics-path=/m"},
			nil, sidecar.LivenessProbe, func(s *settings) bool {
				return s.Liveness.HealthPort == 9808 && s.Liveness.MetricsAddress == ":9090" && s.Liveness.MetricsPath == "/m" && s.HTTP.Endpoint == ""
			},
		},
		"registrar without a health port": {
			[]string{"csi-node-driver-registrar", "--health-port=-1", "--kubelet-registration-path=/p/csi.sock", "--metrics-address=:9090"},
			nil, sidecar.Registrar, func(s *settings) bool { return s.HTTP.Endpoint == ":9090" },
		},
		"registrar as a Windows program": {
			[]string{`C:\csi-node-driver-registrar.exe`, "--v=5", `--csi-address=unix://C:\csi\csi.sock`, `--kubelet-registration-path=C:\var\lib\kubelet\plugins\pd.csi.storage.gke.io\csi.sock`},
			nil, sidecar.Registrar, func(s *settings) bool {
				return s.CSIAddress == `unix://C:\csi\csi.sock` && s.Registrar.KubeletRegistrationPath == `C:\var\lib\kubelet\plugins\pd.csi.storage.gke.io\csi.sock`
			},
		},
		"registrar by controllers": {
			[]string{"csi-sidecar", "--controllers=node-driver-registrar", `--csi-address=unix://C:\csi\csi.sock`, `--kubelet-registration-path=C:\p\csi.sock`},
			nil, sidecar.Registrar, func(s *settings) bool { return s.Registrar.KubeletRegistrationPath == `C:\p\csi.sock` },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustParse(t, surroundings(c.env...), c.args...)
			if !slices.Equal(s.Controllers, []string{c.component}) || !c.check(s) {
				t.Errorf("settings: %+v", s)
			}
		})
	}
}

func TestWhatHasNoEffectIsNamed(t *testing.T) {
	s := mustParse(t, surroundings(), "csi-attacher", "--resync=5m", "--logtostderr", "--max-grpc-log-length", "5")
	if want := []string{"--resync", "--logtostderr", "--max-grpc-log-length"}; !slices.Equal(s.Ignored, want) {
		t.Errorf("ignored %q, want %q", s.Ignored, want)
	}
}

func TestBadCommandLinesAreRefused(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--controllers is needed", []string{"csi-sidecar"}},
		{`"nothing" is none of`, []string{"csi-sidecar", "--controllers=nothing"}},
		{"no-such-flag", []string{"csi-attacher", "--no-such-flag"}},
		{"provisioner-timeout", []string{"csi-provisioner", "--provisioner-timeout=1s"}},
		{`unexpected argument "more"`, []string{"csi-attacher", "--leader-election", "more"}},
		{"NODE_NAME", []string{"csi-provisioner", "--node-deployment"}},
		{"--mode", []string{"csi-node-driver-registrar", "--mode=other"}},
		{"only one of --health-port", []string{"csi-node-driver-registrar", "--health-port=1", "--http-endpoint=:2"}},
		{"is where the liveness probe answers", []string{"csi-sidecar", "--controllers=attacher,livenessprobe", "--http-endpoint=127.0.0.1:9808"}},
		{"is where the liveness probe answers", []string{"csi-sidecar", "--controllers=attacher,livenessprobe", "--metrics-address=:1", "--livenessprobe-http-endpoint=0.0.0.0:1"}},
		{"only one of --metrics-address", []string{"csi-attacher", "--metrics-address=:1", "--http-endpoint=:2"}},
		{"--kube-api-qps", []string{"csi-attacher", "--kube-api-qps=-1"}},
		{"NAME=true", []string{"csi-provisioner", "--feature-gates=Topology"}},
		{"KEY=VALUE", []string{"csi-provisioner", "--leader-election-labels=a"}},
		{"token-requests", []string{"csi-sidecar", "--controllers=csidriver", "--csidriver-token-requests={"}},
	} {
		_, _, err := parse(c.args, surroundings())
		var usage *exit.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.args, err, c.want)
		}
	}
}

// (Case C093.)
func TestC093_FilesOfAHostProcessContainer(t *testing.T) {
	env := surroundings("CONTAINER_SANDBOX_MOUNT_POINT", `C:\hpc`)
	env.GOOS = "windows"
	s := mustParse(t, env, "csi-node-driver-registrar", "--csi-address=unix:csi/csi.sock", `--plugin-registration-path=$env:CONTAINER_SANDBOX_MOUNT_POINT\registration`,
		`--kubelet-registration-path=C:\var\lib\kubelet\plugins\d\csi.sock`)
	if s.CSIAddress != `unix:C:\hpc\csi\csi.sock` || s.Registrar.PluginRegistrationPath != `C:\hpc\registration` || s.Registrar.KubeletRegistrationPath != `C:\var\lib\kubelet\plugins\d\csi.sock` {
		t.Errorf("%q, %q, %q", s.CSIAddress, s.Registrar.PluginRegistrationPath, s.Registrar.KubeletRegistrationPath)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"csi-sidecar", "--help"}, {"csi-provisioner", "-h"}, {"livenessprobe", "--version"}} {
		env := surroundings()
		if code := run(context.Background(), args, env); code != exitOK || env.Stdout.(*bytes.Buffer).Len() == 0 {
			t.Errorf("%q: exit code %d, printed %q", args, code, env.Stdout)
		}
	}
	env := surroundings()
	if code := run(context.Background(), []string{"csi-attacher", "--bad"}, env); code != exitUsage {
		t.Errorf("a bad flag: exit code %d, want %d", code, exitUsage)
	}
}
