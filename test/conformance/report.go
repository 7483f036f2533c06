package conformance

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// linesMax and lineBytesMax bound what one case reports.
const (
	linesMax     = 50
	lineBytesMax = 4000
)

// record is a Reporter that keeps what it is told.
type record struct {
	mu       sync.Mutex
	failures []string
	notes    []string
}

var _ Reporter = (*record)(nil)

// Errorf implements Reporter.
func (r *record) Errorf(format string, args ...any) { r.add(&r.failures, format, args) }

// Notef implements Reporter.
func (r *record) Notef(format string, args ...any) { r.add(&r.notes, format, args) }

// Fatalf implements Reporter.
func (r *record) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *record) add(lines *[]string, format string, args []any) {
	line := printable(fmt.Sprintf(format, args...))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(*lines) < linesMax {
		*lines = append(*lines, line)
	}
}

// printable makes a text bounded and safe to print: paths and errors hold what a
// case put into them on purpose.
func printable(text string) string {
	if len(text) > lineBytesMax {
		text = strings.ToValidUTF8(text[:lineBytesMax], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || strconv.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// take returns what was reported so far.
func (r *record) take() (failures, notes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.failures...), append([]string(nil), r.notes...)
}

// catchPanic turns a panic of the case into a failure. It is deferred.
func (r *record) catchPanic() {
	if cause := recover(); cause != nil {
		r.Errorf("panic: %v\n%.4000s", cause, debug.Stack())
	}
}
