package e2e_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/test/upstream"
)

// diary writes down, in one letter each, what the agent asks of the operating system
// about one object, and takes its time over each so that calls have a chance to meet.
type diary struct {
	agent.OS
	mu      sync.Mutex
	entries map[string]string
}

func (d *diary) note(object any, letter string) {
	key := fmt.Sprint(object)
	d.mu.Lock()
	d.entries[key] += letter
	d.mu.Unlock()
	time.Sleep(200 * time.Microsecond)
}

func (d *diary) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.entries)
}

func (d *diary) of(object any) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[fmt.Sprint(object)]
}

func (d *diary) Disk(ctx context.Context, number uint32) (agent.OSDisk, error) {
	d.note(number, "D")
	return d.OS.Disk(ctx, number)
}

func (d *diary) Partitions(ctx context.Context, number uint32) ([]agent.Partition, error) {
	d.note(number, "p")
	return d.OS.Partitions(ctx, number)
}

func (d *diary) InitializeDisk(ctx context.Context, number uint32) error {
	d.note(number, "I")
	return d.OS.InitializeDisk(ctx, number)
}

func (d *diary) CreateDataPartition(ctx context.Context, number uint32) error {
	d.note(number, "C")
	return d.OS.CreateDataPartition(ctx, number)
}

func (d *diary) Volume(ctx context.Context, id string) (agent.OSVolume, error) {
	d.note(id, "V")
	return d.OS.Volume(ctx, id)
}

func (d *diary) FormatVolume(ctx context.Context, id string, options host.FormatOptions) error {
	d.note(id, "F")
	return d.OS.FormatVolume(ctx, id, options)
}

func (d *diary) Sessions(ctx context.Context) ([]agent.ISCSISession, error) {
	d.note("iscsi", "S")
	return d.OS.Sessions(ctx)
}

func (d *diary) Connect(ctx context.Context, portal host.TargetPortal, iqn string, options host.ConnectOptions) error {
	d.note("iscsi", "L")
	return d.OS.Connect(ctx, portal, iqn, options)
}

// Invariant 5: forty callers of all versions who want the same of one object are
// served one after the other. What is asked of the node about it is a row of whole
// operations: the first does the work, the others look and find it done.
func TestInvariant5_CallsOnOneObjectNeverInterleave(t *testing.T) {
	t.Parallel()
	notes := &diary{entries: map[string]string{}}
	s := stack.New(t, func(cfg *stack.Config) {
		cfg.Between = func(os agent.OS) agent.OS { notes.OS = os; return notes }
	})
	disk := s.Attach(sim.DiskSpec{Bus: "NVMe"})
	volumeDisk, id := s.Volume(64 * stack.MiB)
	words := append(volumeWords(volumeDisk, id), knownPortal(s)...)
	s.OK(s.OS.SetInitiatorSecret(context.Background(), tableSecret))
	notes.forget()
	replacer := strings.NewReplacer(append(words[:0:0], append([]string{"319", fmt.Sprint(disk)}, words...)...)...)
	var all sync.WaitGroup
	for range 8 {
		eachCase("PartitionDisk FormatVolume ConnectTarget", func(c upstream.Case) {
			request := replacer.Replace(c.Request)
			all.Go(func() {
				if _, err := s.Call(c.Group, c.Version, c.Method, request); err != nil {
					t.Errorf("%s: %v", c.Name(), err)
				}
			})
		})
	}
	all.Wait()
	for object, rows := range map[any]string{disk: `^DpICp(Dp)*$`, id: `^VFV(V)*$`, "iscsi": `^SLS*$`} {
		if row := notes.of(object); !regexp.MustCompile(rows).MatchString(row) {
			t.Errorf("%v was asked %q, want %s", object, row, rows)
		}
	}
}

// Invariants 5 and 7: while every kind of call on one object hangs in the operating
// system, calls on other objects, of every API, are answered as always.
func TestInvariant5_OtherObjectsNeverWait(t *testing.T) {
	t.Parallel()
	s := stack.New(t, func(cfg *stack.Config) { cfg.Policy.HangGrace = time.Millisecond })
	stuckDisk := s.Attach(sim.DiskSpec{Bus: "SAS"})
	disk, id := s.Mounted(mountPath)
	words := append(volumeWords(disk, id), connected(s)...)
	s.Share(`dom\u`, `p'w"d`, func(server *sim.SMBServer) { server.Shares[0].Folder = s.TempDir() })
	s.OK(s.Node.AddFault(context.Background(), sim.Fault{Call: "*", Object: fmt.Sprintf("*PhysicalDrive%d", stuckDisk), Count: -1, Hang: true}))
	// On a busy machine a caller may be gone before his call has come so far as to hang.
	for end := time.Now().Add(stack.CallTimeout); s.Agent.HungCalls() == 0 && time.Now().Before(end); {
		stuckCalls(s, stuckDisk)
	}
	replacer := strings.NewReplacer(words...)
	for _, c := range upstream.Cases() {
		if strings.HasPrefix(c.Call, "ListDisk") || c.Method == "Rescan" {
			continue // these look at every disk
		}
		if _, err := s.Call(c.Group, c.Version, c.Method, replacer.Replace(c.Request)); status.Code(err) == codes.DeadlineExceeded || status.Code(err) == codes.Aborted {
			t.Errorf("%s waits for disk %d: %v", c.Name(), stuckDisk, err)
		}
	}
	const told = "hangs in the operating system"
	for end := time.Now().Add(stack.CallTimeout); !strings.Contains(s.Log.String(), told) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := s.Agent.HungCalls(); n == 0 || !strings.Contains(s.Log.String(), told) {
		t.Errorf("%d calls count as hung, or the log does not say so", n)
	}
}

// stuckCalls makes five calls at once to a disk on which everything hangs.
func stuckCalls(s *stack.Stack, disk uint32) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var stuck sync.WaitGroup
	for range 5 {
		stuck.Go(func() {
			_, err := s.CallContext(ctx, "disk", "v1", "PartitionDisk", fmt.Sprintf(`{"disk_number":%d}`, disk))
			if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Aborted {
				s.Errorf("a call that hangs: %v", err)
			}
		})
	}
	stuck.Wait()
}
