// Added to package runtime/coverage when the measured programs are built, and to
// nothing else: it keeps the counters on disk while a program runs, so that one which
// a test kills is measured too. What a program does in its last moments is written by
// Go itself, when it ends by itself. The package is that of Go, since the compiler's
// counting leaves it alone.
package coverage

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func init() {
	if folder := os.Getenv("GOCOVERDIR"); folder != "" {
		go keepCounters(folder)
	}
}

func keepCounters(folder string) {
	started := time.Now().UnixNano() // process ids are used again
	for range time.Tick(200 * time.Millisecond) {
		writeCounters(folder, started)
	}
}

// writeCounters replaces the file of this process. Its name has the hash that the
// file with the names of functions has; that hash follows magic and version.
func writeCounters(folder string, started int64) {
	var b bytes.Buffer
	if err := WriteCounters(&b); err != nil {
		panic(err) // it is built wrongly, and nothing would be measured
	}
	temporary := filepath.Join(folder, fmt.Sprintf("tmp.%d", os.Getpid()))
	if os.WriteFile(temporary, b.Bytes(), 0o644) == nil {
		name := fmt.Sprintf("covcounters.%s.%d.%d", hex.EncodeToString(b.Bytes()[8:24]), os.Getpid(), started)
		_ = os.Rename(temporary, filepath.Join(folder, name))
	}
}
