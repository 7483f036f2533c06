package capacity

import "github.com/prometheus/client_golang/prometheus"

// Collectors are the component's metrics, by upstream's names: how many objects
// there are to be, how many of these there are, and how many others wait for
// their removal. They are 0 while the component does not run.
func (c *Capacity) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func(counts) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(value(c.count())) })
	}
	return []prometheus.Collector{
		gauge("csistoragecapacities_desired_goal", "Number of CSIStorageCapacity objects that are to be there.",
			func(n counts) int { return n.wanted }),
		gauge("csistoragecapacities_desired_current", "Number of CSIStorageCapacity objects that are to be there and are.",
			func(n counts) int { return n.present }),
		gauge("csistoragecapacities_obsolete", "Number of CSIStorageCapacity objects that are to be removed.",
			func(n counts) int { return n.obsolete }),
	}
}

type counts struct{ wanted, present, obsolete int }

func (c *Capacity) count() counts {
	c.mu.Lock()
	r := c.current
	c.mu.Unlock()
	if r == nil {
		return counts{}
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	n := counts{wanted: len(r.wanted)}
	for _, key := range r.objects.GetIndexer().ListIndexFuncValues(byKey) {
		objects := len(r.objectsOf(key))
		if _, ok := r.wanted[key]; ok && objects > 0 {
			n.present++
			objects--
		}
		n.obsolete += objects
	}
	return n
}
