package sidecar_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/csi-windows/csi-windows/sidecar"
)

// Requests of every client are counted, and two processes in one program do not
// count each other's.
func TestRequestsToTheAPIServerAreCounted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	host := strings.TrimPrefix(server.URL, "http://")
	counted, idle := sidecar.NewMetrics(), sidecar.NewMetrics()
	config := &rest.Config{Host: server.URL}
	config.Wrap(counted.CountRequests)
	clients, err := sidecar.NewClients(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		_, err := clients.Kube.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
		_, leaseErr := clients.Leases.Leases("csi").Get(t.Context(), "l", metav1.GetOptions{})
		_, snapshotErr := clients.Snapshots.SnapshotV1().VolumeSnapshotContents().Get(t.Context(), "c", metav1.GetOptions{})
		if err == nil || leaseErr == nil || snapshotErr == nil {
			t.Errorf("a request was answered: %v, %v, %v", err, leaseErr, snapshotErr)
		}
	}
	ask()
	server.Close()
	ask()
	for metrics, isThere := range map[*sidecar.Metrics]bool{counted: true, idle: false} {
		_, text := get(t, serve(t, &sidecar.HTTP{Metrics: metrics, Log: slog.New(slog.DiscardHandler)})+"/metrics")
		for _, line := range []string{
			`rest_client_requests_total{code="403",host="` + host + `",method="GET"} 3`,
			`rest_client_requests_total{code="<error>",host="` + host + `",method="GET"} `,
			`rest_client_request_duration_seconds_count{host="` + host + `",verb="GET"} `,
		} {
			if strings.Contains(text, line) != isThere {
				t.Errorf("%s there: %t", line, !isThere)
			}
		}
	}
}
