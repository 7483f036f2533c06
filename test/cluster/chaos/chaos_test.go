package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	lives   = 200
	atOnce  = 30
	defects = "-faults-rate=0.2" // of the driver's changes
)

// regressionSeeds are those that once failed: 2 by a volume whose making was not known
// to have ended when the snapshot it was made of was deleted, 3 by an entry of the
// journal whose claim had gone while it was written.
var regressionSeeds = []uint64{2, 3}

// seeds are the regression seeds and those from CSI_CHAOS_FIRST on, CSI_CHAOS_SEEDS
// of them.
func seeds(t *testing.T) []uint64 {
	t.Helper()
	first, count := uint64(1), uint64(1)
	for name, value := range map[string]*uint64{"CSI_CHAOS_FIRST": &first, "CSI_CHAOS_SEEDS": &count} {
		if text := os.Getenv(name); text != "" {
			number, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			*value = number
		}
	}
	all := slices.Clone(regressionSeeds)
	for i := range count {
		if seed := first + i; !slices.Contains(all, seed) {
			all = append(all, seed)
		}
	}
	return all
}

// Whatever fails and whenever the processes are killed, in the end the back-end holds
// what the cluster holds, and when all claims are deleted both are empty.
func TestChaos(t *testing.T) {
	for _, seed := range seeds(t) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { survive(t, seed) })
	}
}

func survive(t *testing.T, seed uint64) {
	t.Logf("seed %d", seed)
	w := newWorld(t, seed, []string{defects, fmt.Sprint("-faults-seed=", seed)}, nil)
	over := w.beginLives(seed)
	count := w.wreak(seed, over)
	t.Logf("%v", count)
	// The driver is sound from now on. The sidecar goes on as it is, or is started
	// once more: what is in its memory must not matter.
	w.driver.Process.Kill()
	w.startDriver()
	if seed%2 == 0 {
		w.sidecar.Kill()
		w.startSidecar()
	}
	w.settles("the world comes to rest", w.isAtRest)
	w.must(w.deleteAll(t.Context()))
	w.settles("nothing is left", w.isEmpty)
	w.notForbidden()
}

// beginLives lets the claims live, some at a time. The channel is closed when the last
// life is over.
func (w *world) beginLives(seed uint64) (over <-chan struct{}) {
	names := make(chan int, lives)
	for i := range lives {
		names <- i
	}
	close(names)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := range names {
				r := rand.New(rand.NewPCG(seed, uint64(i)+1))
				l := &life{world: w, ctx: w.t.Context(), name: fmt.Sprint("life-", i), class: "immediate", rand: r}
				if l.chance(0.3) {
					l.class = "late"
				}
				if err := l.live(); err != nil && w.t.Context().Err() == nil {
					w.t.Errorf("%s: %v", l.name, err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	w.t.Cleanup(func() { <-ended })
	return ended
}

// wreak kills and pauses processes until the lives are over, and says how often.
func (w *world) wreak(seed uint64, over <-chan struct{}) (count map[string]int) {
	count = map[string]int{}
	for start := uint64(1); ; start++ {
		if w.ends(over, w.between(1500*time.Millisecond, 4*time.Second)) {
			return count
		}
		switch w.rand.IntN(6) {
		case 0, 1, 2:
			count["sidecar killed"]++
			w.sidecar.Kill()
			w.ends(over, w.between(0, 1500*time.Millisecond))
			w.startSidecar()
		case 3, 4:
			count["driver killed"]++
			w.driver.Process.Kill()
			w.ends(over, w.between(0, time.Second))
			w.startDriver(defects, fmt.Sprint("-faults-seed=", seed<<8+start))
		default:
			count["API server paused"]++
			w.Pause()
			w.ends(over, w.between(200*time.Millisecond, 4*time.Second))
			w.Resume()
		}
	}
}

// ends waits for a time and reports whether the lives are over.
func (w *world) ends(over <-chan struct{}, after time.Duration) bool {
	select {
	case <-time.After(after):
		return false
	case <-over:
		return true
	}
}
