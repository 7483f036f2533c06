package driverobject

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

const (
	// settleTime is how long something has to be wrong before it is reported:
	// objects that belong together are not written together.
	settleTime = 30 * time.Second
	// perReasonMax is how many findings of one reason are reported one by one;
	// what is wrong on a thousand nodes would drown everything else.
	perReasonMax = 10
)

// ledger knows what was found when, and what of it was reported. It lives as
// long as the component, so that a new run does not report all again.
type ledger struct {
	since    map[finding]time.Time
	reported map[finding]bool
}

// enter takes what is wrong now. It gives what is to be reported, and after
// how long to look again; 0 for not before something changes.
func (l *ledger) enter(found []finding, now time.Time) (report []finding, again time.Duration) {
	since, reported := map[finding]time.Time{}, map[finding]bool{}
	for _, one := range shorten(found) {
		first, known := l.since[one]
		if !known {
			first = now
		}
		since[one] = first
		switch left := settleTime - now.Sub(first); {
		case l.reported[one]:
			reported[one] = true
		case left <= 0:
			reported[one] = true
			report = append(report, one)
		case again == 0 || left < again:
			again = left
		}
	}
	l.since, l.reported = since, reported
	return report, again
}

// shorten puts one finding in the place of those beyond perReasonMax.
func shorten(found []finding) []finding {
	count := map[string]int{}
	var short []finding
	for _, one := range found {
		switch count[one.reason]++; {
		case count[one.reason] <= perReasonMax:
			short = append(short, one)
		case count[one.reason] == perReasonMax+1:
			short = append(short, finding{one.reason, "The same on more nodes"})
		}
	}
	return short
}

// report says each finding once. object is nil when there is none: the event
// then has its name only.
func (r *run) report(ctx context.Context, object *storagev1.CSIDriver, found []finding) {
	if object == nil {
		object = &storagev1.CSIDriver{}
		object.Name = r.driver
	}
	for _, one := range found {
		r.log.WarnContext(ctx, "Found something wrong", "driver", r.driver, "reason", one.reason, "finding", one.text)
		r.events.Event(object, v1.EventTypeWarning, one.reason, one.text)
	}
}

// count sets the metric: how many findings there are by reason.
func (d *DriverObject) count(found []finding) {
	d.findings.Reset()
	for _, one := range found {
		d.findings.WithLabelValues(one.reason).Inc()
	}
}
