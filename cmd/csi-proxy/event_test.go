package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// recordedEvents is an event log that keeps what is written.
type recordedEvents struct {
	mu     sync.Mutex
	texts  []string
	closed bool
}

func (r *recordedEvents) add(level string, id uint32, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, fmt.Sprintf("%d %s %s", id, level, text))
	return nil
}

func (r *recordedEvents) Info(id uint32, text string) error    { return r.add("Info", id, text) }
func (r *recordedEvents) Warning(id uint32, text string) error { return r.add("Warning", id, text) }
func (r *recordedEvents) Error(id uint32, text string) error   { return r.add("Error", id, text) }

func (r *recordedEvents) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

func (r *recordedEvents) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.texts...)
}

// wait waits for an event that begins with one text and holds the others.
func (r *recordedEvents) wait(t *testing.T, begins string, holds ...string) {
	t.Helper()
	found := func() bool {
	next:
		for _, text := range r.all() {
			if !strings.HasPrefix(text, begins) {
				continue
			}
			for _, part := range holds {
				if !strings.Contains(text, part) {
					continue next
				}
			}
			return true
		}
		return false
	}
	for deadline := time.Now().Add(time.Minute); !found(); {
		if time.Now().After(deadline) {
			t.Fatalf("there is no event %q among %q", begins, r.all())
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestEventsOfEveryEnd(t *testing.T) {
	t.Parallel()
	cause := errors.New("a cause")
	for want, err := range map[string]error{
		"2 Info csi-proxy has stopped.":                                                        nil,
		"10 Error csi-proxy did not start; exit code 2 (flags): a cause":                       exit.Usage(cause),
		"10 Error csi-proxy did not start; exit code 3 (log): a cause":                         exit.With(stageLog, cause),
		"10 Error csi-proxy did not start; exit code 4 (node): a cause":                        exit.With(stageHost, cause),
		"10 Error csi-proxy did not start; exit code 6 (metrics address): a cause":             exit.With(stageMetrics, cause),
		"10 Error csi-proxy did not start; exit code 7 (service control manager): a cause":     exit.With(stageService, cause),
		"11 Error csi-proxy did not start, since another copy runs: pipe x is in use":          exit.With(stageListen, fmt.Errorf("pipe x is %w", pipe.ErrInUse)),
		"12 Error csi-proxy stopped by itself: a cause":                                        exit.With(stageRun, cause),
		"13 Error csi-proxy has stopped, but not cleanly: a cause":                             exit.With(stageStop, cause),
		"10 Error csi-proxy did not start; exit code 5 (pipes): pipe x is not usable: a cause": exit.With(stageListen, fmt.Errorf("pipe x is not usable: %w", cause)),
	} {
		var recorded recordedEvents
		all := newEvents(&recorded)
		all.reportEnd(err)
		all.close()
		if got := recorded.all(); len(got) != 1 || got[0] != want || !recorded.closed {
			t.Errorf("%v: %q, want %q; closed %v", err, got, want, recorded.closed)
		}
	}
}

// A program without an event log reports into nothing.
func TestNoEvents(t *testing.T) {
	t.Parallel()
	var none *events
	none.report(eventStarted, "x")
	none.reportEnd(nil)
	none.close()
}

// stuckEvents is an event log that does not come back.
type stuckEvents struct {
	recordedEvents
	release chan struct{}
}

func (s *stuckEvents) Info(id uint32, text string) error {
	<-s.release
	return s.recordedEvents.Info(id, text)
}

// Nothing waits for the event log: what is too much is dropped, and too long a text
// is cut.
func TestEventLogThatHangs(t *testing.T) {
	t.Parallel()
	stuck := &stuckEvents{release: make(chan struct{})}
	all := newEvents(stuck)
	for range 3 * eventsMax {
		all.report(eventStarted, "%s", strings.Repeat("x", 2*eventTextMax))
	}
	close(stuck.release)
	all.close()
	texts := stuck.all()
	if len(texts) < eventsMax || len(texts) > eventsMax+2 || len(texts[0]) > eventTextMax+len("1 Info ") {
		t.Errorf("%d events, the first of %d bytes", len(texts), len(texts[0]))
	}
}

// A call that hung may come back while the program ends, or after that: its worker
// goes on by itself.
func TestHungCallComesBackAfterTheEnd(t *testing.T) {
	t.Parallel()
	var recorded recordedEvents
	all := newEvents(&recorded)
	observer := hangs{nil, all}
	started, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		close(started)
		for range 1000 {
			observer.HungCallEnded("disk.v1.Format", "disk 1", time.Minute)
		}
	}()
	<-started
	all.close()
	<-ended
	before := len(recorded.all())
	observer.HungCallEnded("disk.v1.Format", "disk 1", time.Minute)
	if after := recorded.all(); len(after) != before || !recorded.closed {
		t.Errorf("%d events, then %d; closed %v", before, len(after), recorded.closed)
	}
}

// What hangs is seen by an operator, and so is its end.
func TestHungCallIsAnEvent(t *testing.T) {
	t.Parallel()
	var recorded recordedEvents
	all := newEvents(&recorded)
	t.Cleanup(all.close)
	observer := hangs{nil, all}
	observer.CallHung("FormatVolume", "volume x", 90*time.Second)
	observer.HungCallEnded("FormatVolume", "volume x", 200*time.Second)
	recorded.wait(t, "30 Warning The operating system does not come back from FormatVolume of volume x, which has run for 1m30s.")
	recorded.wait(t, "31 Info FormatVolume of volume x has come back after 3m20s.")
}

func TestOperationsPageNamesEveryEvent(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	levels := map[eventLevel]string{levelInfo: "Information", levelWarning: "Warning", levelError: "Error"}
	for _, id := range []eventID{
		eventStarted, eventStopped, eventStartFailed, eventSecondCopy, eventServingEnded, eventStopFailed,
		eventLogUnwritable, eventCallHung, eventHungCallEnded, eventCallsCutOff,
	} {
		if line := fmt.Sprintf("| %d | %s |", id, levels[id.level()]); !strings.Contains(string(page), line) {
			t.Errorf("docs/operations.md does not have %q", line)
		}
	}
}
