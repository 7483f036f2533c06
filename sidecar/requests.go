package sidecar

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requestMetrics are those of requests to the API server. They are counted in the
// transport: client-go's own hooks are one set for the whole program.
//
// Source: names, labels and buckets of component-base, metrics/prometheus/restclient.
type requestMetrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newRequestMetrics(register func(...prometheus.Collector)) *requestMetrics {
	m := &requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total", Help: "Requests to the API server.",
		}, []string{"code", "method", "host"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rest_client_request_duration_seconds", Help: "How long the API server takes to begin its answer.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
		}, []string{"verb", "host"}),
	}
	register(m.total, m.duration)
	return m
}

// CountRequests is a transport that counts what goes through another one. It is for
// the Wrap of a client's configuration.
func (m *Metrics) CountRequests(next http.RoundTripper) http.RoundTripper {
	return &countingTransport{m.requests, next}
}

type countingTransport struct {
	metrics *requestMetrics
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	began := time.Now()
	answer, err := t.next.RoundTrip(request)
	code := "<error>"
	if err == nil {
		code = strconv.Itoa(answer.StatusCode)
	}
	t.metrics.total.WithLabelValues(code, request.Method, request.URL.Host).Inc()
	t.metrics.duration.WithLabelValues(request.Method, request.URL.Host).Observe(time.Since(began).Seconds())
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *countingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
