package wiretest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/csi-windows/csi-windows/internal/leaktest"
)

// Main runs the tests of a package that uses pipes, and fails when they leave a
// goroutine behind. The one goroutine that go-winio keeps for the life of the
// process on Windows is none that is left.
func Main(m *testing.M) {
	leaktest.Main(m, goleak.IgnoreAnyFunction("github.com/Microsoft/go-winio.ioCompletionProcessor"))
}
