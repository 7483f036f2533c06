package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/csi-windows/csi-windows/cmd/internal/exit"
	"github.com/csi-windows/csi-windows/wire/pipe"
)

// eventSource is the name under which events stand in the Application log.
const eventSource = "csi-proxy"

// eventID says what an event is of. The numbers are part of the interface
// (docs/operations.md) and never change their meaning. They are from 1 to 1000: the
// texts of these come with Windows.
//
// Source: eventcreate command, /id.
type eventID uint32

// The events: what an operator must see.
const (
	eventStarted       eventID = 1  // it serves
	eventStopped       eventID = 2  // it has stopped as it was asked to
	eventStartFailed   eventID = 10 // it could not start
	eventSecondCopy    eventID = 11 // it could not start, since another copy runs
	eventServingEnded  eventID = 12 // it stopped by itself
	eventStopFailed    eventID = 13 // it stopped, but not cleanly
	eventLogUnwritable eventID = 20 // records of the log are lost
	eventCallHung      eventID = 30 // the operating system does not come back from a call
	eventHungCallEnded eventID = 31 // it has come back after all
	eventCallsCutOff   eventID = 32 // calls had to be cut off at a stop
)

// eventLevel is how bad an event is.
type eventLevel int

// The levels of the event log.
const (
	levelInfo eventLevel = iota
	levelWarning
	levelError
)

// level is the level of every event with this number.
func (id eventID) level() eventLevel {
	switch id {
	case eventStarted, eventStopped, eventHungCallEnded:
		return levelInfo
	case eventLogUnwritable, eventCallHung, eventCallsCutOff:
		return levelWarning
	default:
		return levelError
	}
}

const (
	// eventsMax is how many events may wait for the log. Further ones are dropped:
	// the log of the program has them too, and nothing waits for the event log.
	eventsMax = 64
	// eventsCloseTime is how long the last ones may take.
	eventsCloseTime = 2 * time.Second
	// eventTextMax is the longest text of an event, in bytes; Windows takes 31,839
	// characters. Source: ReportEventW, lpStrings.
	eventTextMax = 16 << 10
)

// eventWriter is an event log. Its methods may take long.
type eventWriter interface {
	Info(id uint32, text string) error
	Warning(id uint32, text string) error
	Error(id uint32, text string) error
	Close() error
}

// event is one entry on its way.
type event struct {
	id   eventID
	text string
}

// events hand what happens to an event log. A nil *events is of a program that has
// none, and does nothing.
type events struct {
	queue   chan event // never closed: a hung call may come back at any time
	closing chan struct{}
	ended   chan struct{}
}

// newEvents takes the writer over.
func newEvents(writer eventWriter) *events {
	e := &events{queue: make(chan event, eventsMax), closing: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(e.ended)
		e.writeTo(writer)
		_ = writer.Close()
	}()
	return e
}

// writeTo writes events as they come, and those that still wait when it is closed.
func (e *events) writeTo(writer eventWriter) {
	write := func(next event) {
		by := [...]func(uint32, string) error{levelInfo: writer.Info, levelWarning: writer.Warning, levelError: writer.Error}
		_ = by[next.id.level()](uint32(next.id), next.text) // there is nowhere else to tell it
	}
	for {
		select {
		case next := <-e.queue:
			write(next)
		case <-e.closing:
			for len(e.queue) > 0 { // nothing else takes from it
				write(<-e.queue)
			}
			return
		}
	}
}

// report hands on one event. It never waits. After close it does nothing: a call of
// the operating system that hung may come back when everything else has ended.
func (e *events) report(id eventID, format string, args ...any) {
	if e == nil || e.isClosing() {
		return
	}
	text := fmt.Sprintf(format, args...)
	if len(text) > eventTextMax {
		text = text[:eventTextMax]
	}
	select {
	case e.queue <- event{id, text}:
	default:
	}
}

// reportEnd says how the program ended.
func (e *events) reportEnd(err error) {
	code := stage(exit.Code(err))
	switch {
	case err == nil:
		e.report(eventStopped, "csi-proxy has stopped.")
	case errors.Is(err, pipe.ErrInUse):
		e.report(eventSecondCopy, "csi-proxy did not start, since another copy runs: %v", err)
	case code == stageRun:
		e.report(eventServingEnded, "csi-proxy stopped by itself: %v", err)
	case code == stageStop:
		e.report(eventStopFailed, "csi-proxy has stopped, but not cleanly: %v", err)
	default:
		e.report(eventStartFailed, "csi-proxy did not start; exit code %d (%s): %v", int(code), code, err)
	}
}

// isClosing says whether close was called.
func (e *events) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// close waits a moment for the last events. It may be called once.
func (e *events) close() {
	if e == nil {
		return
	}
	close(e.closing)
	select {
	case <-e.ended:
	case <-time.After(eventsCloseTime):
	}
}

// hangs tells metrics and events of calls that do not come back.
type hangs struct {
	metrics *metrics
	events  *events
}

// CallHung implements agent.Observer.
func (h hangs) CallHung(op, object string, running time.Duration) {
	h.metrics.CallHung(op, object, running)
	h.events.report(eventCallHung, "The operating system does not come back from %s, which has run for %s. Its object stays locked until it does.", named(op, object), running.Round(time.Second))
}

// HungCallEnded implements agent.Observer.
func (h hangs) HungCallEnded(op, object string, ran time.Duration) {
	h.metrics.HungCallEnded(op, object, ran)
	h.events.report(eventHungCallEnded, "%s has come back after %s.", named(op, object), ran.Round(time.Second))
}

// named is an operation with its object, if it has one.
func named(op, object string) string {
	if object == "" {
		return op
	}
	return op + " of " + object
}
