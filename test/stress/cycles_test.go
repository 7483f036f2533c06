package stress

import (
	"runtime"
	"testing"
	"time"

	e2e "github.com/csi-windows/csi-windows/test/e2e/stack"
)

// cycles is how often every volume of TestC043_C056_HundredCycles comes and goes.
const cycles = 100

// settled waits until no more goroutines run than at most, and returns how many do.
func settled(atMost int) int {
	for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > atMost && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

// A hundred times volumes of every kind are staged, published, taken back and
// unstaged, by CSI calls through the whole driver and the pipe. No process is started
// for it, and nothing grows: no handle, no goroutine, no mapping, no session.
func TestC043_C056_HundredCycles(t *testing.T) {
	s := newStack(t, 4)
	volumes := s.volumes(1)
	cycle := func() {
		for _, v := range volumes {
			for _, do := range []call{v.stage, v.publish, v.unpublish, v.unstage} {
				s.ok(do(t.Context()))
			}
		}
	}
	cycle() // connects, and formats the disks
	goroutines := runtime.NumGoroutine()
	for range cycles {
		cycle()
	}
	if now := settled(goroutines); now > goroutines {
		t.Errorf("%d goroutines ran after one cycle, and %d after %d more", goroutines, now, cycles)
	}
	s.mustBeEmpty()
	e2e.NoChildren(t)
	e2e.NoLivingChildren(t)
}
