package sidecar_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/sidecartest"
)

func TestMain(m *testing.M) {
	// Nothing may go on once the components, servers and recorders have ended.
	goleak.VerifyTestMain(m)
}

// serve runs a server of health and metrics and gives its address.
func serve(t *testing.T, server *sidecar.HTTP) (url string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	address, ended := make(chan net.Addr, 1), make(chan error, 1)
	server.Address = "127.0.0.1:0"
	server.OnListening = func(a net.Addr) { address <- a }
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("end: %v", err)
		}
	})
	select {
	case a := <-address:
		return "http://" + a.String()
	case err := <-ended:
		ended <- err
		t.Fatal(err)
		return ""
	}
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}

func TestProfilesAreServedWhenAskedFor(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	extra := map[string]http.Handler{"/extra": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("here")) })}
	for path, want := range map[string][2]int{"/debug/pprof/": {404, 200}, "/extra": {200, 200}, "/metrics": {404, 404}, "/m": {200, 200}} {
		for i, pprof := range []bool{false, true} {
			url := serve(t, &sidecar.HTTP{Pprof: pprof, MetricsPath: "/m", Metrics: sidecar.NewMetrics(), Handlers: extra, Log: quiet})
			if status, _ := get(t, url+path); status != want[i] {
				t.Errorf("%s with profiles %t: %d", path, pprof, status)
			}
		}
	}
}

func TestServersThatAreRefused(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	for want, server := range map[string]*sidecar.HTTP{
		"/healthz is there twice": {Health: &sidecar.Health{}, Metrics: sidecar.NewMetrics(), MetricsPath: "/healthz"},
		"must begin with /":       {Metrics: sidecar.NewMetrics(), MetricsPath: "metrics"},
		"missing port":            {Address: "nowhere"},
	} {
		server.Log = quiet
		if err := server.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestEventsAreWrittenOnceAndRepeatsAreCounted(t *testing.T) {
	client := fake.NewSimpleClientset()
	events, err := sidecar.NewEvents(client, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	recorder := events.Recorder("csi-attacher")
	if events.Recorder("csi-attacher") != recorder {
		t.Error("a source has two recorders")
	}
	claim := sidecartest.PVC("one")
	for range 3 {
		recorder.Event(claim, v1.EventTypeWarning, "Failed", "no luck")
	}
	b := &sidecartest.Bed{TB: t, Kube: client}
	b.Eventually(func() error { return wrote(client, "create", "patch", "patch") })
	events.Shutdown()
	recorder.Event(claim, v1.EventTypeWarning, "Failed", "too late")
	events.Recorder("another").Event(claim, v1.EventTypeWarning, "Failed", "too late")
}

func TestKubeconfigsThatNeedAProgramAreRefused(t *testing.T) {
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]\n" +
		"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers:\n- name: u\n  user:\n"
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	sound := write(head + "    token: secret\n")
	t.Setenv("KUBECONFIG", write("nonsense"))
	config, err := sidecar.NewKubeConfig(sidecar.KubeOptions{Kubeconfig: sound, UserAgent: "csi-sidecar/1"})
	if err != nil || config.Host != "https://127.0.0.1:6443" || config.UserAgent != "csi-sidecar/1" || config.QPS != -1 ||
		!strings.Contains(config.ContentType, "protobuf") {
		t.Fatalf("%v, %v", config, err)
	}
	if clients, err := sidecar.NewClients(config); err != nil || clients.Kube == nil || clients.Snapshots == nil || clients.Leases == nil {
		t.Errorf("clients: %v", err)
	}
	if config, err := sidecar.NewKubeConfig(sidecar.KubeOptions{Kubeconfig: sound, Master: "https://other:1", QPS: 5}); err != nil ||
		config.Host != "https://other:1" || config.QPS != 5 || config.Burst != 10 {
		t.Errorf("%v, %v", config, err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for want, options := range map[string]sidecar.KubeOptions{
		`program "aws"`: {Kubeconfig: write(head + "    exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}\n")},
		// What is refused is refused first: nobody is to put the entry right before.
		`program "gke"`:                                            {Kubeconfig: write(head + "    exec: {command: gke}\n")},
		"current-context is missing":                               {Kubeconfig: write(strings.Replace(head, "current-context: c\n", "", 1) + "    token: secret\n")},
		`"d", which is none of`:                                    {Kubeconfig: write(strings.Replace(head, "current-context: c", "current-context: d", 1) + "    token: secret\n")},
		`cluster "e", which is none of`:                            {Kubeconfig: write(strings.Replace(head, "cluster: c,", "cluster: e,", 1) + "    token: secret\n")},
		`user "v", which is none of`:                               {Kubeconfig: write(strings.Replace(head, "user: u}", "user: v}", 1) + "    token: secret\n")},
		`cluster "c" has no server`:                                {Kubeconfig: write(strings.Replace(head, "{server: 'https://127.0.0.1:6443'}", "{}", 1) + "    token: secret\n")},
		"current-context is missing; the file has the contexts []": {Kubeconfig: write("")},
		`auth provider "gcp"`:                                      {Kubeconfig: write(head + "    auth-provider: {name: gcp}\n")},
		"no such file":                                             {Kubeconfig: filepath.Join(t.TempDir(), "none")},
		"kubeconfig is needed":                                     {},
		"must not be below 0":                                      {Kubeconfig: sound, QPS: -1},
		"burst -1 must not be ":                                    {Kubeconfig: sound, Burst: -1},
	} {
		if _, err := sidecar.NewKubeConfig(options); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
