package sidecar

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// Phase is what a component does at a time.
type Phase string

// The phases of a component.
const (
	// Waiting is for a lease another process has.
	Waiting Phase = "waiting"
	Running Phase = "running"
	// Failed is between a failure and the next start.
	Failed Phase = "failed"
	Ended  Phase = "ended"
)

// ComponentHealth is how a component is.
type ComponentHealth struct {
	Name  string
	Phase Phase
	// Since is when the phase began.
	Since time.Time
	// Failures counts those of the process' life, LastError is the last one.
	Failures  int
	LastError error
}

// Health knows how the components of a process are. Its zero value knows of
// none; a nil one takes reports and keeps nothing.
type Health struct {
	mu         sync.Mutex
	components []*ComponentHealth
	leases     map[string]*leaderelection.LeaderElector
}

// Components are all components, in the order of their first reports.
func (h *Health) Components() []ComponentHealth {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []ComponentHealth
	for _, c := range h.components {
		all = append(all, *c)
	}
	return all
}

// CheckLeases is the error when a lease that is held was not renewed in time.
func (h *Health) CheckLeases() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []error
	for name, elector := range h.leases {
		if err := elector.Check(leaseOverdueMax); err != nil {
			all = append(all, fmt.Errorf("lease %s: %w", name, err))
		}
	}
	return errors.Join(all...)
}

func (h *Health) set(s Supervised, phase Phase, err error, now time.Time) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.components, func(c *ComponentHealth) bool { return c.Name == s.Name() })
	if i < 0 {
		i = len(h.components)
		h.components = append(h.components, &ComponentHealth{Name: s.Name()})
	}
	c := h.components[i]
	c.Phase, c.Since = phase, now
	if err != nil {
		c.LastError = err
		c.Failures++
	}
}

// watch has CheckLeases ask a campaign, or no more when it is nil.
func (h *Health) watch(lease string, elector *leaderelection.LeaderElector) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if elector == nil {
		delete(h.leases, lease)
		return
	}
	if h.leases == nil {
		h.leases = map[string]*leaderelection.LeaderElector{}
	}
	h.leases[lease] = elector
}

// serveProcess answers that the process is alive, and how its components are.
// One that fails does not make it unhealthy: the kubelet would end the others.
func (h *Health) serveProcess(w http.ResponseWriter, _ *http.Request) {
	text := "ok\n"
	for _, c := range h.Components() {
		text += fmt.Sprintf("%s: %s since %s", c.Name, c.Phase, c.Since.UTC().Format(time.RFC3339))
		if c.Failures > 0 {
			text += fmt.Sprintf(", failures: %d, the last: %s", c.Failures, strings.ReplaceAll(c.LastError.Error(), "\n", "; "))
		}
		text += "\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text)) // who asked has gone if it fails
}

func (h *Health) serveLeases(w http.ResponseWriter, _ *http.Request) {
	if err := h.CheckLeases(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte("ok"))
}
