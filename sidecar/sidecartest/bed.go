// Package sidecartest is a place to try components in without a cluster: an
// API server in memory that treats finalizers as the real one does, a CSI
// driver that answers as the test says, and a record of every event and write.
package sidecartest

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	snapshotfake "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/fake"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/csi-windows/csi-windows/sidecar"
	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// DriverName is the name of the driver in every bed.
const DriverName = "driver.example.com"

// Bed is an API server in memory and a driver.
type Bed struct {
	testing.TB
	Env       *sidecar.Env
	Kube      *fake.Clientset
	Snapshots *snapshotfake.Clientset
	Driver    *Driver
	Ctx       context.Context //nolint:containedctx // the life of the bed

	events *recorder
	logged *logBuffer
	gate   *gate
}

// New makes a bed whose driver says info of itself, with objects of any of the
// two clients already there. The name is added to the info.
func New(t testing.TB, info csiclient.Info, objects ...runtime.Object) *Bed {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	b := &Bed{TB: t, Ctx: ctx, events: &recorder{}, logged: &logBuffer{}, gate: newGate()}
	b.Driver = newDriver(t, b.gate)
	kube, snapshots := split(objects)
	b.Kube = fake.NewSimpleClientset(kube...)
	b.Snapshots = snapshotfake.NewSimpleClientset(snapshots...) //nolint:staticcheck // the other keeps field managers, which nobody reads here
	withServerRules(&b.Kube.Fake, b.Kube.Tracker())
	withServerRules(&b.Snapshots.Fake, b.Snapshots.Tracker())
	b.gate.guard(&b.Kube.Fake)
	b.gate.guard(&b.Snapshots.Fake)
	info.Name = DriverName
	b.Env = &sidecar.Env{
		Kube:      b.Kube,
		Snapshots: b.Snapshots,
		Informers: sidecar.NewInformers(ctx, b.Kube, b.Snapshots, 0),
		Driver:    csiclient.New(b.Driver.serve(), info),
		Events:    func(string) record.EventRecorder { return b.events },
		Log:       slog.New(slog.NewTextHandler(b.logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Clock:     clock.RealClock{},
		Namespace: "csi",
		Identity:  "test",
		Running:   []string{sidecar.Provisioner, sidecar.Attacher, sidecar.Resizer, sidecar.Snapshotter},
	}
	t.Cleanup(func() {
		cancel()
		b.Env.Informers.Shutdown()
		if t.Failed() {
			t.Logf("log:\n%s", b.logged)
		}
	})
	return b
}

// split tells snapshot objects from those of Kubernetes by their Go package.
// They are copied, so that tests may share them, and have a version.
func split(objects []runtime.Object) (kube, snapshots []runtime.Object) {
	for i, object := range objects {
		object = object.DeepCopyObject()
		if accessor := mustAccess(object); accessor.GetResourceVersion() == "" {
			accessor.SetResourceVersion(strconv.Itoa(i + 1))
		}
		if name := fmt.Sprintf("%T", object); strings.Contains(name, "VolumeSnapshot") || strings.Contains(name, "VolumeGroupSnapshot") {
			snapshots = append(snapshots, object)
		} else {
			kube = append(kube, object)
		}
	}
	return kube, snapshots
}

// Run runs a component until the test ends, or until the function given back
// is called. Its error, if any, fails the test.
func (b *Bed) Run(component sidecar.Component) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := component.Run(ctx); err != nil {
			b.Errorf("%s: %v", component.Name(), err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	b.Cleanup(stop)
	return stop
}

// Eventually waits until check gives no error, and fails the test with the
// last one when it does not within 30 seconds.
func (b *Bed) Eventually(check func() error) {
	b.Helper()
	deadline := time.After(30 * time.Second)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			b.Fatalf("not within 30 s: %v\nevents: %q\nCSI calls: %q", err, b.Events(), b.Driver.CallNames())
		case <-again.C:
		}
	}
}

// Watched waits until kinds of the API server are watched. A cache is full before
// its watch is there, which is a request like any other.
func (b *Bed) Watched(resources ...string) {
	b.Helper()
	b.Eventually(func() error {
		watched := map[string]bool{}
		for _, action := range append(b.Kube.Actions(), b.Snapshots.Actions()...) {
			watched[action.GetResource().Resource] = watched[action.GetResource().Resource] || action.GetVerb() == "watch"
		}
		for _, resource := range resources {
			if !watched[resource] {
				return fmt.Errorf("%s are not watched yet", resource)
			}
		}
		return nil
	})
}

// Events are the events so far, each as "Type Reason Message".
func (b *Bed) Events() []string { return b.events.all() }

// Log is what was logged so far.
func (b *Bed) Log() string { return b.logged.String() }

// Writes are the writes to both API servers so far, each as
// "verb resource[/subresource] [namespace/]name", events and leases left out.
func (b *Bed) Writes() []string {
	var writes []string
	for _, action := range append(b.Kube.Actions(), b.Snapshots.Actions()...) {
		switch action.GetVerb() {
		case "get", "list", "watch":
			continue
		}
		if resource := action.GetResource().Resource; resource != "events" && resource != "leases" {
			writes = append(writes, describe(action))
		}
	}
	return writes
}

func describe(action clienttesting.Action) string {
	text := action.GetVerb() + " " + action.GetResource().Resource
	if action.GetSubresource() != "" {
		text += "/" + action.GetSubresource()
	}
	name := ""
	if named, ok := action.(interface{ GetName() string }); ok {
		name = named.GetName()
	}
	if created, ok := action.(clienttesting.CreateAction); ok {
		name = nameOf(created.GetObject())
	}
	if action.GetNamespace() != "" {
		name = action.GetNamespace() + "/" + name
	}
	return text + " " + name
}
