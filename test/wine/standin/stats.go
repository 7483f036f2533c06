package standin

import (
	"maps"
	"sync"
)

// Stats are counts since the server's start or the last reset.
type Stats struct {
	// Calls are answered calls by operation, Failed those of them that failed or
	// got no answer.
	Calls  map[string]int `json:"calls"`
	Failed map[string]int `json:"failed"`
	// Connections, Running calls, Handles, calls Hanging in a fault of the link, and
	// Drivers are how many there are now.
	Connections int `json:"connections"`
	Running     int `json:"running"`
	Handles     int `json:"handles"`
	Hanging     int `json:"hanging"`
	Drivers     int `json:"drivers"`
	// Faults is how many faults are armed, Fired how often one applied.
	Faults int `json:"faults"`
	Fired  int `json:"fired"`
	// Generation is that of the devices, Ready the one the driver has.
	Generation uint32   `json:"generation"`
	Ready      uint32   `json:"ready"`
	Devices    []string `json:"devices"`
}

type stats struct {
	mu            sync.Mutex
	calls, failed map[string]int
	connections   int
	running       int
}

func (s *stats) connected(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections += change
}

func (s *stats) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running++
}

func (s *stats) called(name string, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.calls == nil {
		s.calls, s.failed = map[string]int{}, map[string]int{}
	}
	s.calls[name]++
	if failed {
		s.failed[name]++
	}
}

// Stats returns the counts.
func (s *Server) Stats() Stats {
	out := Stats{Handles: s.handles.count()}
	s.stats.mu.Lock()
	out.Calls, out.Failed, out.Connections = maps.Clone(s.stats.calls), maps.Clone(s.stats.failed), s.stats.connections
	out.Running = s.stats.running
	s.stats.mu.Unlock()
	s.faults.mu.Lock()
	out.Faults, out.Fired, out.Hanging = len(s.faults.armed), s.faults.fired, s.faults.hanging
	s.faults.mu.Unlock()
	d := &s.devices
	d.mu.Lock()
	defer d.mu.Unlock()
	out.Generation, out.Ready, out.Drivers, out.Devices = d.generation, d.ready, d.drivers, d.names
	return out
}

// AddFault arms a fault.
func (s *Server) AddFault(fault Fault) error { return s.faults.add(fault) }

// Reset disarms every fault, lets hanging calls go, and counts from 0 again.
func (s *Server) Reset() {
	s.faults.reset()
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	s.stats.calls, s.stats.failed = nil, nil
}
