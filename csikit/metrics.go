package csikit

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// metrics are the observations of calls, under the names that CSI drivers and
// sidecars have in common, so that dashboards fit.
//
// Source: csi-lib-utils, metrics/metrics.go.
type metrics struct {
	driver  string
	seconds *prometheus.HistogramVec
}

// newMetrics makes the metrics, and registers them when there is a Registerer.
func newMetrics(registerer prometheus.Registerer, driver string, c *chain) (*metrics, error) {
	m := &metrics{driver: driver, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "csi_plugin", Name: "operations_seconds",
		Help:    "Container Storage Interface operation duration with gRPC error code status total",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
	}, []string{"driver_name", "method_name", "grpc_status_code"})}
	if registerer == nil {
		return m, nil
	}
	labels := prometheus.Labels{"driver_name": driver}
	for _, collector := range []prometheus.Collector{
		m.seconds,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "csi_plugin", Name: "operations_in_flight", ConstLabels: labels,
			Help: "Operations that have not returned, with those that hang",
		}, func() float64 { return float64(len(c.slots)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "csi_plugin", Name: "operations_hung", ConstLabels: labels,
			Help: "Operations that have not returned although their time is up",
		}, func() float64 { return float64(c.flights.hung.Load()) }),
	} {
		if err := register(registerer, collector, m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// register shares the histogram of an earlier server of this process. The gauges are
// those of the latest.
func register(registerer prometheus.Registerer, collector prometheus.Collector, m *metrics) error {
	err := registerer.Register(collector)
	var already prometheus.AlreadyRegisteredError
	if !errors.As(err, &already) {
		return err
	}
	if earlier, ok := already.ExistingCollector.(*prometheus.HistogramVec); ok && collector == m.seconds {
		m.seconds = earlier
		return nil
	}
	registerer.Unregister(already.ExistingCollector)
	return registerer.Register(collector)
}

// observe notes a call. The series of calls that succeed are looked up once: most do.
func (m *metrics) observe(of *method, code codes.Code, took time.Duration) {
	if code != codes.OK {
		m.seconds.WithLabelValues(m.driver, of.fullName, code.String()).Observe(took.Seconds())
		return
	}
	of.succeeded.Do(func() { of.successes = m.seconds.WithLabelValues(m.driver, of.fullName, code.String()) })
	of.successes.Observe(took.Seconds())
}
