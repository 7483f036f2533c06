package liveness

import (
	"net/http"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/metrics"
)

// meter counts calls to the driver under upstream's names. Its calls never
// overlap, but for those of the handler.
type meter struct {
	manager metrics.CSIMetricsManager
	hasName bool
}

func newMeter() *meter { return &meter{manager: metrics.NewCSIMetricsManagerForSidecar("")} }

func (m *meter) setName(driver string) {
	m.manager.SetDriverName(driver)
	m.hasName = true
}

func (m *meter) record(method string, err error, took time.Duration) {
	m.manager.RecordMetrics(method, err, took)
}

func (m *meter) register(mux *http.ServeMux, path string) { m.manager.RegisterToServer(mux, path) }
