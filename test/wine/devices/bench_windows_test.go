package devices

import (
	"testing"
	"time"
	"unsafe"
)

// compare runs two ways to one end by turns, so that a busy machine burdens both, and
// reports the times of each, by its name, and their ratio.
func compare(b *testing.B, oneName, otherName string, one, other func()) {
	b.Helper()
	var first, second time.Duration
	for b.Loop() {
		begin := time.Now()
		one()
		middle := time.Now()
		other()
		first += middle.Sub(begin)
		second += time.Since(middle)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(first)/float64(second), oneName+"/"+otherName)
	b.ReportMetric(float64(first.Nanoseconds())/float64(b.N), oneName+"-ns")
	b.ReportMetric(float64(second.Nanoseconds())/float64(b.N), otherName+"-ns")
}

func ptr[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }
