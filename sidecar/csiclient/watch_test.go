package csiclient_test

import (
	"context"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// watch watches a driver until the test ends.
func watch(t *testing.T, d *csiclient.Driver) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- d.Watch(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return ended
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A driver that crashes again and again is met again each time; nobody hears of
// it unless it can something else than before.
func TestADriverThatIsBackIsMetAgain(t *testing.T) {
	t.Parallel()
	path := socket(t)
	controller := []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	first := &driver{name: "one.example.com", services: controller}
	stop := first.serve(t, path)
	d, log := connect(t, csiclient.Config{Address: path})
	ended := watch(t, d)
	changed := d.Changed()
	for i := range 3 {
		asked := len(first.called())
		stop()
		next := &driver{name: "one.example.com", services: controller, notReady: i % 2}
		stop = next.serve(t, path)
		until(t, "it is met again", func() bool { return strings.Count(log.String(), "The driver is back") == i+1 })
		if now := len(first.called()); now != asked {
			t.Errorf("the one before was asked %d times while nothing happened", now-asked)
		}
		first = next
	}
	if isClosed(changed) {
		t.Error("the capabilities are said to have changed")
	}
	stop()
	other := &driver{name: "one.example.com", services: controller, rpcs: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_LIST_VOLUMES}}
	stop = other.serve(t, path)
	until(t, "the change is seen", func() bool { return isClosed(changed) })
	if !d.Info().Controller[csi.ControllerServiceCapability_RPC_LIST_VOLUMES] || isClosed(d.Changed()) {
		t.Errorf("info: %+v", d.Info())
	}
	stop()
	(&driver{name: "two.example.com"}).serve(t, path)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), `"two.example.com" now and was "one.example.com"`) {
		t.Errorf("another driver: %v", err)
	}
}

func TestWatchingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := socket(t)
	stop := (&driver{name: "one.example.com"}).serve(t, path)
	d, log := connect(t, csiclient.Config{Address: path})
	for _, isGone := range []bool{false, true} {
		if isGone {
			stop()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Watch(ctx) }()
		if isGone {
			until(t, "the loss is seen", func() bool { return strings.Contains(log.String(), "connection is lost") })
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("gone %t: %v", isGone, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := csiclient.New(d.Conn(), csiclient.Info{}).Watch(ctx); err != nil {
		t.Errorf("one that is not watched: %v", err)
	}
}
