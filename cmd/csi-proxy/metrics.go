package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/wire"
)

// metrics counts calls on a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	hung     prometheus.Gauge
}

// newMetrics registers every metric but those that each program has;
// docs/operations.md describes them.
func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "csi_proxy_calls_total",
			Help: "Finished calls by API group, version, method and gRPC status code.",
		}, []string{"group", "version", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "csi_proxy_call_duration_seconds",
			Help:    "Time of finished calls by API group and method.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 30, 120, 600},
		}, []string{"group", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "csi_proxy_calls_in_flight",
			Help: "Calls that have begun and are not answered yet.",
		}),
		hung: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "csi_proxy_hung_calls",
			Help: "Operating system calls that outlived the deadline of their call and still run.",
		}),
	}
	m.registry.MustRegister(m.calls, m.seconds, m.inFlight, m.hung)
	return m
}

// watchSession adds what a session with WMI says of its threads, if it counts
// them. Nil metrics count nothing.
func (m *metrics) watchSession(session cim.Session) {
	counting, ok := session.(cim.Counting)
	if m == nil || !ok {
		return
	}
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "csi_proxy_wmi_threads",
			Help: "Threads that take calls of WMI.",
		}, func() float64 { return float64(counting.Stats().Workers) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "csi_proxy_wmi_hung_threads",
			Help: "Threads that were replaced because a WMI provider does not answer.",
		}, func() float64 { return float64(counting.Stats().Hung) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "csi_proxy_wmi_hung_calls_total",
			Help: "Calls of WMI that did not come back in time.",
		}, func() float64 { return float64(counting.Stats().HungTotal) }),
	)
}

// CallStarted implements wire.Observer.
func (m *metrics) CallStarted(wire.Call) {
	if m != nil {
		m.inFlight.Inc()
	}
}

// CallEnded implements wire.Observer.
func (m *metrics) CallEnded(call wire.Call, code codes.Code, duration time.Duration) {
	if m == nil {
		return
	}
	m.inFlight.Dec()
	m.calls.WithLabelValues(call.API.Group, call.API.Version, call.Method, code.String()).Inc()
	m.seconds.WithLabelValues(call.API.Group, call.Method).Observe(duration.Seconds())
}

// CallHung implements agent.Observer.
func (m *metrics) CallHung(string, string, time.Duration) {
	if m != nil {
		m.hung.Inc()
	}
}

// HungCallEnded implements agent.Observer.
func (m *metrics) HungCallEnded(string, string, time.Duration) {
	if m != nil {
		m.hung.Dec()
	}
}
