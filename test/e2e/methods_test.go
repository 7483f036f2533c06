package e2e_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/wire"
)

// world is a stack on which one case of the upstream table is to run: the node is
// in the state before the call.
type world struct {
	// words are what texts of the case stand for on this node, in pairs of old and
	// new, as strings.NewReplacer takes them.
	words []string
	// check looks at the node, beside the API, whether the call has done what it says.
	check func()
}

// worlds are by what the host is asked for; see worldOf.
func worlds() map[string]func(*stack.Stack) world {
	all := map[string]func(*stack.Stack) world{}
	for _, group := range []map[string]func(*stack.Stack) world{
		diskWorlds(), volumeWorlds(), filesystemWorlds(), networkWorlds(), systemWorlds(),
	} {
		for name, arrange := range group {
			all[name] = arrange
		}
	}
	return all
}

// worldOf is the name of the world of a case: the operation the host is asked for.
func worldOf(c upstream.Case) string {
	if c.Method == "GetDiskNumberByName" { // it has no operation of its own
		return c.Method
	}
	op, arguments, _ := strings.Cut(c.Call, "(")
	if op == "Rmdir" && strings.HasSuffix(arguments, "true)") {
		return "Rmdir with force"
	}
	return op
}

// every method of every version of csi-proxy's own descriptors, "disk/v1/Rescan".
func everyMethod() map[string]bool {
	methods := map[string]bool{}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if !strings.HasSuffix(file.Path(), "/api.proto") {
			return true
		}
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			version, group, _ := strings.Cut(string(service.FullName()), ".")
			for j := range service.Methods().Len() {
				methods[strings.ToLower(group)+"/"+version+"/"+string(service.Methods().Get(j).Name())] = true
			}
		}
		return true
	})
	return methods
}

// Every method of every version, called through csi-proxy's own stubs on a node of
// its own: the driver gets the right answer and the node is changed as it says.
func TestEveryMethodOfEveryVersion(t *testing.T) {
	t.Parallel()
	missing, arrangers := everyMethod(), worlds()
	if len(missing) != 139 {
		t.Fatalf("csi-proxy has %d methods, want 139", len(missing))
	}
	for _, c := range upstream.Cases() {
		delete(missing, c.Name())
		arrange := arrangers[worldOf(c)]
		if arrange == nil {
			t.Errorf("%s: nothing is known of %s", c.Name(), worldOf(c))
			continue
		}
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			runCase(t, c, arrange)
		})
	}
	for name := range missing {
		t.Errorf("%s is called by no case", name)
	}
}

// runCase serves the case's API only, and makes its call.
func runCase(t *testing.T, c upstream.Case, arrange func(*stack.Stack) world) {
	s := stack.New(t, func(cfg *stack.Config) {
		cfg.APIs = []wire.API{{Group: c.Group, Version: c.Version}}
		cfg.Node.BIOSSerial = "VMware-56 4d"
	})
	s.Canaries()
	w := arrange(s)
	before := s.Outside()
	words := strings.NewReplacer(w.words...)
	c.Request, c.Response = words.Replace(c.Request), words.Replace(c.Response)
	ctx, cancel := context.WithTimeout(context.Background(), stack.CallTimeout)
	defer cancel()
	messages, err := c.Do(ctx, upstream.Stub(c.Group, c.Version, s.Conn(c.Group, c.Version)))
	if err != nil {
		t.Fatal(err)
	}
	if diff, err := c.Check(messages.Response); err != nil || diff != "" {
		t.Errorf("answer (-want +got), error %v:\n%s", err, diff)
	}
	w.check()
	if after := s.Outside(); after != before {
		t.Errorf("outside the working folder there was\n%s\nand is\n%s", before, after)
	}
}
