package main

import "golang.org/x/sys/windows/svc/eventlog"

// openEvents opens the event log, if the service control manager started us. A
// program in a console has its user to tell. Without an event log the program
// works all the same.
//
// Source: RegisterEventSourceW. A source that nobody has registered is written
// under its name too.
func openEvents(args []string) *events {
	if !asksForService(args) {
		return nil
	}
	log, err := eventlog.Open(eventSource)
	if err != nil {
		return nil
	}
	return newEvents(log)
}
