package liveness

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/internal/freeport"
	"github.com/csi-windows/csi-windows/sidecar"
)

func TestMetricsHaveUpstreamsNames(t *testing.T) {
	d := newDriver(t)
	d.start()
	r := start(t, Config{CSIAddress: d.path, ProbeTimeout: testWait})
	r.expect(200, "ok")
	d.answer(func(context.Context) (*csi.ProbeResponse, error) { return nil, status.Error(codes.Internal, "") })
	r.expect(500, "")
	code, text, err := r.get("/metrics")
	if code != 200 || err != nil {
		t.Fatal(code, err)
	}
	for _, line := range []string{
		`csi_sidecar_operations_seconds_count{driver_name="driver.example.com",grpc_status_code="OK",method_name="/csi.v1.Identity/Probe"} 1`,
		`csi_sidecar_operations_seconds_count{driver_name="driver.example.com",grpc_status_code="Internal",method_name="/csi.v1.Identity/Probe"} 1`,
		"process_start_time_seconds",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
}

// As upstream, the port of the health has no metrics; they have their own.
func TestMetricsAddress(t *testing.T) {
	d := newDriver(t)
	d.start()
	_, port, _ := net.SplitHostPort(freeport.Address(t))
	config := Config{CSIAddress: d.path, MetricsAddress: freeport.Address(t), MetricsPath: "/m"}
	if _, err := fmt.Sscan(port, &config.HealthPort); err != nil {
		t.Fatal(err)
	}
	l, err := New(&sidecar.Env{Log: slog.New(slog.DiscardHandler)}, config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	health := &running{Liveness: l, t: t, base: "http://127.0.0.1:" + port}
	metrics := &running{Liveness: l, t: t, base: "http://" + config.MetricsAddress}
	for _, one := range []struct {
		*running
		path string
		want int
	}{{health, "/healthz", 200}, {health, "/m", 404}, {metrics, "/m", 200}, {metrics, "/healthz", 404}} {
		one.eventually(func() error {
			if code, _, err := one.get(one.path); err != nil || code != one.want {
				return fmt.Errorf("%s%s: %d, %w", one.base, one.path, code, err)
			}
			return nil
		})
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAddressInUseIsAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	config := Config{CSIAddress: "/csi.sock", HTTPEndpoint: listener.Addr().String()}
	l, err := New(&sidecar.Env{Log: slog.New(slog.DiscardHandler)}, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), config.HTTPEndpoint) {
		t.Error(err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, config := range map[string]Config{
		"CSIAddress":                        {},
		"unknown":                           {CSIAddress: "http://csi"},
		"HealthPort is 70000":               {CSIAddress: "/csi.sock", HealthPort: 70000},
		"HealthPort is 1: must be left out": {CSIAddress: "/csi.sock", HealthPort: 1, HTTPEndpoint: ":1"},
		"MetricsAddress is":                 {CSIAddress: "/csi.sock", MetricsAddress: ":2", HTTPEndpoint: ":1"},
		"MetricsPath is":                    {CSIAddress: "/csi.sock", MetricsPath: "metrics"},
		"of the health":                     {CSIAddress: "/csi.sock", MetricsPath: "/healthz"},
		"ProbeTimeout is":                   {CSIAddress: "/csi.sock", ProbeTimeout: -1},
	} {
		if _, err := New(&sidecar.Env{Log: slog.New(slog.DiscardHandler)}, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, not %q", config, err, want)
		}
	}
	if got := (Config{}).withDefaults(); got.Address() != ":9808" || got.ProbeTimeout != time.Second || got.MetricsPath != "/metrics" {
		t.Errorf("the defaults are %+v", got)
	}
}
