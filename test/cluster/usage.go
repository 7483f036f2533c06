package cluster

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicks is how many units of processor time a second has.
// Source: proc(5), sysconf(_SC_CLK_TCK), the same on every architecture Go knows.
const clockTicks = 100

// Usage is what a process uses of the machine.
type Usage struct {
	// ResidentBytes is its memory.
	ResidentBytes int64
	// CPU is the processor time it has used, the kernel's for it included.
	CPU time.Duration
}

// Usage returns what the process uses now. It must not have ended.
func (p *Process) Usage() (Usage, error) {
	folder := fmt.Sprintf("/proc/%d/", p.ID())
	memory, err := os.ReadFile(folder + "statm")
	if err != nil {
		return Usage{}, err
	}
	stat, err := os.ReadFile(folder + "stat")
	if err != nil {
		return Usage{}, err
	}
	return parseUsage(string(memory), string(stat))
}

// parseUsage reads the second field of statm, and the 14th and 15th of stat, whose
// second may hold anything in brackets. Source: proc(5).
func parseUsage(memory, stat string) (Usage, error) {
	pages := strings.Fields(memory)
	_, rest, found := cutLast(stat, ")")
	times := strings.Fields(rest)
	if len(pages) < 2 || !found || len(times) < 13 {
		return Usage{}, fmt.Errorf("statm %q, stat %q: too few fields", memory, stat)
	}
	var numbers [3]int64
	for i, text := range []string{pages[1], times[11], times[12]} {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Usage{}, err
		}
		numbers[i] = number
	}
	return Usage{
		ResidentBytes: numbers[0] * int64(os.Getpagesize()), CPU: time.Duration(numbers[1]+numbers[2]) * time.Second / clockTicks,
	}, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
