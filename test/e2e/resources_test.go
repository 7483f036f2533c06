package e2e_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
)

// Budgets of one request on the simulated node, client and server together. They are
// generous: what they catch is a process, a shell or a second started for a request.
const (
	medianBudget = 50 * time.Millisecond
	cpuBudget    = 20 * time.Millisecond
)

// settled waits until no more goroutines run than at most, and reports how many do.
func settled(atMost int) int {
	for end := time.Now().Add(stack.CallTimeout); runtime.NumGoroutine() > atMost && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

// C006: a drive whose control code fails, asked for a thousand times in every version,
// leaves no handle open.
func TestC006_ListDiskIDsLeavesNoHandle(t *testing.T) { // counts goroutines, so alone
	s := stack.New(t)
	bad := s.Attach(sim.DiskSpec{Serial: "BAD"})
	s.Attach(sim.DiskSpec{Serial: "GOOD"})
	versions := []string{"v1beta1", "v1beta2", "v1beta3", "v1"}
	for _, version := range versions { // connects
		s.Must("disk", version, "ListDiskIDs", `{}`)
	}
	s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "win32.DeviceIoControl*", Object: fmt.Sprintf("*PhysicalDrive%d", bad), Count: -1, Win32: 1117}))
	handles, goroutines := s.Handles(), runtime.NumGoroutine()
	for i := range 1000 {
		s.Must("disk", versions[i%len(versions)], "ListDiskIDs", `{}`)
	}
	if now := s.Handles(); now != handles {
		t.Errorf("%d handles were open, and now %d", handles, now)
	}
	if now := settled(goroutines); now > goroutines {
		t.Errorf("%d goroutines ran, and now %d", goroutines, now)
	}
	calls := s.Calls(func() { s.Must("disk", "v1", "ListDiskIDs", `{}`) })
	opened, closed := countPrefix(calls, "win32.CreateFile"), countPrefix(calls, "win32.CloseHandle")
	if opened == 0 || opened != closed {
		t.Errorf("%d handles opened and %d closed", opened, closed)
	}
}

// C056: a hundred times a volume is staged, published, taken back and unstaged. No
// process is started, nothing is left open or running, and a request costs little.
func TestC056_HundredStageCycles(t *testing.T) { // measures, so alone
	s := stack.New(t)
	const name = "eui.0025"
	s.Attach(sim.DiskSpec{Bus: "SAS", IDs: []sim.DeviceID{{CodeSet: 2, Type: 8, ID: []byte(name)}}})
	s.OK(stage(s, name))
	id := s.Disk(1).Volumes[0]
	unstageByAPI(s, id)
	handles, goroutines, cpu := s.Handles(), runtime.NumGoroutine(), cpuTime(t)
	var durations []time.Duration
	for range 100 {
		begun := time.Now()
		s.OK(stage(s, name))
		s.WriteFile(`C:\k\pods\volume\file`, "x")
		durations = append(durations, time.Since(begun)/time.Duration(len(stageSteps())))
		begun = time.Now()
		calls := unstageByAPI(s, id)
		durations = append(durations, time.Since(begun)/time.Duration(calls))
	}
	requests := 100 * (len(stageSteps()) + 4)
	slices.Sort(durations)
	if median := durations[len(durations)/2]; median > medianBudget {
		t.Errorf("the median request took %v, the budget is %v", median, medianBudget)
	}
	if each := (cpuTime(t) - cpu) / time.Duration(requests); each > cpuBudget {
		t.Errorf("a request took %v of the processors, the budget is %v", each, cpuBudget)
	}
	if now := s.Handles(); now != handles {
		t.Errorf("%d handles were open, and now %d", handles, now)
	}
	if now := settled(goroutines); now > goroutines {
		t.Errorf("%d goroutines ran, and now %d", goroutines, now)
	}
	stack.NoChildren(t)
	stack.NoLivingChildren(t)
	mustHave(s, stack.Root, "plugins", "pods")
	if d := s.Disk(1); !d.Offline {
		t.Errorf("the disk is %+v", d)
	}
}

// unstageByAPI takes back what stage has done, but for folders, and returns how many
// calls that took.
func unstageByAPI(s *stack.Stack, id string) int {
	s.Helper()
	s.Must("filesystem", "v1beta1", "Rmdir", `{"path":"C:\\k\\pods\\volume"}`)
	s.Must("volume", "v1", "WriteVolumeCache", fmt.Sprintf(`{"volume_id":%q}`, id))
	s.Must("volume", "v1beta1", "DismountVolume", fmt.Sprintf(`{"volume_id":%q,"path":"C:\\k\\plugins\\stage"}`, id))
	s.Must("disk", "v1beta2", "SetAttachState", `{"diskID":"1"}`)
	return 4
}

// cpuTime is what this process has used of the processors.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	used, err := stack.CPUTime()
	if err != nil {
		t.Fatal(err)
	}
	return used
}
