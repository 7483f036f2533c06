package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { Main(m) }

// testsWith are tests that end with a code.
type testsWith int

func (code testsWith) Run() int { return int(code) }

// A goroutine that takes longer than goleak waits is waited for.
func TestSlowGoroutine(t *testing.T) {
	const longerThanGoleak = 600 * time.Millisecond
	ended := make(chan struct{})
	time.AfterFunc(longerThanGoleak, func() { close(ended) })
	go func() { <-ended }()
	if code := (patient{tests: testsWith(0)}).Run(); code != 0 {
		t.Errorf("code %d", code)
	}
	if err := goleak.Find(); err != nil {
		t.Error(err)
	}
}

// Nobody waits when the tests have failed.
func TestFailure(t *testing.T) {
	stays := make(chan struct{})
	defer close(stays)
	go func() { <-stays }()
	started := time.Now()
	if code := (patient{tests: testsWith(3)}).Run(); code != 3 {
		t.Errorf("code %d", code)
	}
	if took := time.Since(started); took > patience/2 {
		t.Errorf("it took %v", took)
	}
}
