// Package leaktest runs the tests of a package and fails when they leave a
// goroutine behind.
package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end after the last test. Goleak
// alone waits for half a second. On a busy machine that is too near: idle workers
// of the agent and connections that were closed take a part of it at any time.
const patience = 30 * time.Second

// Main is for TestMain. The options are goleak's.
func Main(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(patient{m, options}, options...)
}

// patient is a goleak.TestingM whose tests end when their goroutines have ended.
type patient struct {
	tests   goleak.TestingM
	options []goleak.Option
}

// Run runs the tests. What is left after the wait is for goleak to report.
func (p patient) Run() int {
	code := p.tests.Run()
	deadline := time.Now().Add(patience)
	for code == 0 && goleak.Find(p.options...) != nil && time.Now().Before(deadline) {
	}
	return code
}
