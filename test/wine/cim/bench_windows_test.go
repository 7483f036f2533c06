package cim

import (
	"math"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/winos/cim"
)

// BenchmarkQuery compares a query of a session that is there with one that connects
// for itself, as an agent without a pool does. They take turns, a few queries each,
// and neither finds COM in use by the other. The metric "pooled/connect" is the
// ratio of their best turns: those that other programs disturbed least.
func BenchmarkQuery(b *testing.B) {
	const turn = 20 // queries
	query := func(session cim.Session) {
		if rows, err := disks.Rows(b.Context(), session, cim.Equal("Number", uint32(0))); err != nil || len(rows) > 1 {
			b.Fatalf("%d rows, %v", len(rows), err)
		}
	}
	open := func() cim.Session {
		session, err := cim.Connect()
		if err != nil {
			b.Fatal(err)
		}
		return session
	}
	finish := func(session cim.Session) {
		if err := session.Close(); err != nil {
			b.Fatal(err)
		}
	}
	pooled, connecting := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for b.Loop() {
		session := open()
		query(session) // the first one connects
		started := time.Now()
		for range turn {
			query(session)
		}
		pooled = min(pooled, time.Since(started))
		finish(session)
		started = time.Now()
		for range turn {
			session := open()
			query(session)
			finish(session)
		}
		connecting = min(connecting, time.Since(started))
	}
	b.ReportMetric(float64(pooled)/float64(connecting), "pooled/connect")
	b.ReportMetric(float64(pooled.Microseconds())/turn, "µs/pooled")
	b.ReportMetric(float64(connecting.Microseconds())/turn, "µs/connect")
	b.ReportMetric(0, "ns/op") // a turn of both is no unit of anything
}
