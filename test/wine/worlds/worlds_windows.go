package worlds

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/sim/control"
	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/wire"
)

// Root is the working folder that the csi-proxy must have been started with.
const Root = root

// Bed is a running csi-proxy and the simulated node it works on.
type Bed struct {
	// Ctx ends when the csi-proxy does.
	Ctx     context.Context
	Control *control.Client
	Client  *client.Client
	// Folder is a real folder for images and shares, as this process names it.
	// The node may keep files in it open.
	Folder string
	// NodePath is a path below Folder as the node's process names it.
	NodePath func(path string) string
	Services Services
}

// Services are the services of the node, wherever their manager is.
type Services interface {
	// SetInitiator starts or stops the iSCSI initiator's service, and removes
	// what AddDependent and AddDescribed have added.
	SetInitiator(t *testing.T, run bool)
	// AddDependent adds a running service that needs the initiator's.
	AddDependent(t *testing.T) (name string)
	// AddDescribed makes a service with a display name beyond ASCII, and returns
	// what the words of the case for it stand for.
	AddDescribed(t *testing.T) (words []string)
	// State is a service's state with winsvc.h's number.
	State(t *testing.T, name string) uint32
}

// callTime bounds a call: a program that has died answers none.
const callTime = 30 * time.Second

// States of services. Source: winsvc.h.
const (
	stopped = 1
	running = 4
	paused  = 7
)

// Run calls every method, each in a subtest.
func Run(t *testing.T, bed Bed) {
	n := &node{t, bed}
	n.ok(n.Control.MakeDir(t.Context(), root))
	n.reset()
	arrangers, called := worlds(), 0
	for api, cases := range upstream.CasesByAPI() {
		stub, err := upstream.Client(api.Group, api.Version)
		if err != nil {
			t.Errorf("%s: %v", api, err)
			continue
		}
		for _, c := range cases {
			called++
			t.Run(c.Name(), func(t *testing.T) { runCase(n.on(t), c, stub, arrangers[worldOf(c)]) })
		}
		if err := stub.Close(); err != nil {
			t.Errorf("%s: close: %v", api, err)
		}
	}
	want := 0
	for _, d := range wire.Describe() {
		if !slices.Contains([]string{wire.GroupExtension, wire.GroupNode}, d.API.Group) { // ours
			want++
		}
	}
	if called != want {
		t.Errorf("%d methods were called, want %d", called, want)
	}
}

// runCase arranges the node, makes the call and looks at what has changed.
func runCase(n *node, c upstream.Case, stub io.Closer, arrange func(*node) world) {
	if arrange == nil {
		n.Fatalf("nothing is known of %s", worldOf(c))
	}
	defer n.reset()
	w := arrange(n)
	words := strings.NewReplacer(w.words...)
	c.Request, c.Response = words.Replace(c.Request), words.Replace(c.Response)
	ctx, cancel := context.WithTimeout(n.Context(), callTime)
	defer cancel()
	messages, err := c.Do(ctx, stub)
	if err != nil {
		n.Fatal(err)
	}
	if diff, err := c.Check(messages.Response); err != nil || diff != "" {
		n.Errorf("answer (-want +got), error %v:\n%s", err, diff)
	}
	w.check()
}
