package main

import (
	"maps"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
)

// countingSession is a session of which only the counts are asked.
type countingSession struct{ cim.Session }

func (countingSession) Stats() cim.Stats { return cim.Stats{Workers: 3, Hung: 2, HungTotal: 7} }

// The threads that a sick provider holds can be seen; a session that does not
// count, and metrics that are off, are no failure.
func TestMetricsOfSession(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	m.watchSession(countingSession{})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"csi_proxy_wmi_threads": 3, "csi_proxy_wmi_hung_threads": 2, "csi_proxy_wmi_hung_calls_total": 7}
	got := map[string]float64{}
	for _, family := range families {
		if _, ok := want[family.GetName()]; ok {
			metric := family.GetMetric()[0]
			got[family.GetName()] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	newMetrics().watchSession(struct{ cim.Session }{})
	var off *metrics
	off.watchSession(countingSession{})
}
