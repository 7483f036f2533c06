package sidecar

import (
	csimetrics "github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics"
)

// Metrics are those of a process, under the names upstream's sidecars have. A
// nil one counts nothing of the process.
type Metrics struct {
	// CSI counts the calls of the driver.
	CSI csimetrics.CSIMetricsManager
	// Queues count the work of the components.
	Queues workqueue.MetricsProvider

	registry metrics.KubeRegistry
	requests *requestMetrics
	restarts *prometheus.CounterVec
	up       *prometheus.GaugeVec
	leader   *prometheus.GaugeVec
}

// NewMetrics makes the metrics of a process in a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: metrics.NewKubeRegistry(),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "csi_sidecar_component_failures_total", Help: "How often a component failed and had to be started again.",
		}, []string{"component"}),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "csi_sidecar_component_up", Help: "1 while the component runs, 0 while it waits for its lease or has failed.",
		}, []string{"component"}),
		leader: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "leader_election_master_status", Help: "1 while this process holds the lease, 0 while it is a candidate.",
		}, []string{"name"}),
	}
	// The collector of the process has the time of its start.
	m.CSI = csimetrics.NewCSIMetricsManagerWithOptions("", csimetrics.WithCustomRegistry(m.registry), csimetrics.WithProcessStartTime(false))
	m.registry.RawMustRegister(m.restarts, m.up, m.leader,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Queues = newQueueMetrics(m.registry.RawMustRegister)
	m.requests = newRequestMetrics(m.registry.RawMustRegister)
	return m
}

// Register adds metrics of a component.
func (m *Metrics) Register(all ...prometheus.Collector) { m.registry.RawMustRegister(all...) }

// Gatherer gives the metrics.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// component counts that a component came to a phase.
func (m *Metrics) component(name string, phase Phase) {
	if m == nil {
		return
	}
	up := m.up.WithLabelValues(name)
	up.Set(0)
	restarts := m.restarts.WithLabelValues(name) // there from the beginning, with 0
	switch phase {
	case Running:
		up.Set(1)
	case Failed:
		restarts.Inc()
	case Waiting, Ended:
	}
}

// leads says whether a lease is held.
func (m *Metrics) leads(lease string, isHeld bool) {
	if m == nil {
		return
	}
	gauge := m.leader.WithLabelValues(lease)
	gauge.Set(0)
	if isHeld {
		gauge.Set(1)
	}
}

// queueMetrics are those of work queues.
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

// Source: names, helps and buckets of component-base, metrics/prometheus/workqueue.
func newQueueMetrics(register func(...prometheus.Collector)) *queueMetrics {
	label := []string{"name"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_" + name, Help: help}, label)
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_" + name, Help: help}, label)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "workqueue_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(10e-9, 10, 10),
		}, label)
	}
	q := &queueMetrics{
		depth:      gauge("depth", "Keys that wait in the queue."),
		unfinished: gauge("unfinished_work_seconds", "Sum of the times for which keys have been worked on that are not done."),
		longest:    gauge("longest_running_processor_seconds", "For how long the key has been worked on that takes longest."),
		adds:       counter("adds_total", "Keys that were put into the queue."),
		retries:    counter("retries_total", "Keys that were put into the queue again after a failure."),
		latency:    histogram("queue_duration_seconds", "How long a key waits in the queue."),
		work:       histogram("work_duration_seconds", "How long a key is worked on."),
	}
	register(q.depth, q.unfinished, q.longest, q.adds, q.retries, q.latency, q.work)
	return q
}

// NewDepthMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	gauge := q.depth.WithLabelValues(name)
	// A component that runs again has a new queue under the name of the old one.
	gauge.Set(0)
	return gauge
}

// NewAddsMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return q.adds.WithLabelValues(name)
}

// NewLatencyMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return q.latency.WithLabelValues(name)
}

// NewWorkDurationMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return q.work.WithLabelValues(name)
}

// NewUnfinishedWorkSecondsMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.unfinished.WithLabelValues(name)
}

// NewLongestRunningProcessorSecondsMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.longest.WithLabelValues(name)
}

// NewRetriesMetric implements workqueue.MetricsProvider.
func (q *queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return q.retries.WithLabelValues(name)
}
