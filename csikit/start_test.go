package csikit

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A process may run one server after another with the same metrics.
func TestAServerAfterAnotherSharesItsMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	for i := range 2 {
		s := serve(t, &fakeServices{}, func(c *ServerConfig) { c.Registerer = registry })
		if err := s.stage(t.Context(), "v"); err != nil {
			t.Fatal(err)
		}
		counts, gauges := gathered(t, registry)
		if n := counts["csi_plugin_operations_seconds test.csi /csi.v1.Node/NodeStageVolume OK"]; n != uint64(i+1) || len(gauges) != 2 {
			t.Errorf("after server %d: %v %v", i, counts, gauges)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	}
}
