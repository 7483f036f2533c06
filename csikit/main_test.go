package csikit_test

import (
	"testing"

	"go.uber.org/goleak"
)

// The one goroutine that go-winio keeps for the life of the process on Windows is
// none that is left.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/Microsoft/go-winio.ioCompletionProcessor"))
}
