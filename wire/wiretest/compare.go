package wiretest

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// callsPerRound is how many calls one side of a comparison makes before the other
// side has its turn. Short turns that alternate keep a noisy machine fair.
const callsPerRound = 512

// Compare measures two ways to make a call with some callers at once, turn by
// turn in one run, and returns how much longer the first takes: the median over
// the rounds. Connections should be up already.
func Compare(b *testing.B, callers int, ours, theirs func() error) float64 {
	b.Helper()
	var ratios []float64
	for round := 0; b.Loop(); round++ {
		first, second := ours, theirs
		if round%2 == 1 {
			first, second = theirs, ours // neither profits from going second
		}
		a, z := timeOf(b, callers, first), timeOf(b, callers, second)
		if round%2 == 1 {
			a, z = z, a
		}
		ratios = append(ratios, a.Seconds()/z.Seconds())
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// timeOf makes a round of calls by some callers at once.
func timeOf(b *testing.B, callers int, call func() error) time.Duration {
	started := time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range callsPerRound / callers {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(started)
}
