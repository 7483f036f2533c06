package standin

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// deviceWaitMax bounds how long a driver may wait for news in one request.
const deviceWaitMax = time.Minute

// devices are the names a driver has to make, with a generation that grows with
// every change, and how far the driver has come.
type devices struct {
	wait time.Duration

	mu         sync.Mutex
	names      []string
	generation uint32
	ready      uint32 // the generation the driver has
	drivers    int    // connections that ask for devices
	// late is set when the driver did not become ready in time: nobody waits for
	// it again until it does.
	late    bool
	changed chan struct{} // closed at every change of the above
}

func (d *devices) init(wait time.Duration) {
	d.wait, d.changed = wait, make(chan struct{})
}

func (d *devices) notifyLocked() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// settle takes the present names, and waits until the driver has them; false
// when it took too long.
func (d *devices) settle(ctx context.Context, names []string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.generation == 0 || !slices.Equal(d.names, names) {
		d.names = slices.Clone(names)
		d.generation++
		d.notifyLocked()
	}
	want := d.generation
	for timer := (*time.Timer)(nil); d.drivers > 0 && !d.late && d.ready < want; {
		if timer == nil {
			timer = time.NewTimer(d.wait)
			defer timer.Stop()
		}
		if !d.awaitLocked(ctx, timer.C) {
			d.late = ctx.Err() == nil
			return false
		}
	}
	return true
}

// awaitLocked waits for a change; false when the time or ctx ended first.
func (d *devices) awaitLocked(ctx context.Context, end <-chan time.Time) bool {
	changed := d.changed
	d.mu.Unlock()
	defer d.mu.Lock()
	select {
	case <-changed:
		return true
	case <-end:
	case <-ctx.Done():
	}
	return false
}

// join counts a driver's connection. A driver that is new has no device yet.
func (d *devices) join() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.drivers++; d.drivers == 1 {
		d.ready, d.late = 0, false
	}
}

func (d *devices) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drivers--
	d.notifyLocked()
}

// news waits until the list is another than that of the generation.
func (d *devices) news(ctx context.Context, generation uint32, wait time.Duration) (uint32, []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for d.generation == generation && d.awaitLocked(ctx, timer.C) {
	}
	return d.generation, d.names
}

func (d *devices) isReady(generation uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if generation > d.generation {
		return false
	}
	if generation > d.ready {
		d.ready = generation
	}
	d.late = d.late && d.ready < d.generation
	d.notifyLocked()
	return true
}

func deviceOperations() map[Op]operation {
	return map[Op]operation{
		OpDevices:        {"Devices", false, runDevices},
		OpDevicesReady:   {"DevicesReady", false, runDevicesReady},
		OpProgram:        {"Program", false, runProgram},
		OpServiceStarted: {"ServiceStarted", false, func(c *call) error { return runService(c, true) }},
		OpServiceStopped: {"ServiceStopped", false, func(c *call) error { return runService(c, false) }},
	}
}

func runDevices(c *call) error {
	generation, milliseconds := c.in.u32(), c.in.u32()
	if err := c.read(); err != nil {
		return err
	}
	if !c.conn.driver {
		c.conn.driver = true
		c.server.devices.join()
	}
	wait := min(time.Duration(milliseconds)*time.Millisecond, deviceWaitMax)
	now, names := c.server.devices.news(c.ctx, generation, wait)
	c.out.u32(now)
	c.out.texts(names)
	return nil
}

// runDevicesReady takes the driver's word; a generation to come is an error.
func runDevicesReady(c *call) error {
	generation := c.in.u32()
	if err := c.read(); err != nil {
		return err
	}
	if !c.server.devices.isReady(generation) {
		return &win32.Error{Call: "DevicesReady", Code: win32.ErrInvalidParameter}
	}
	return nil
}

func runService(c *call, running bool) error {
	name := c.in.text()
	if err := c.read(); err != nil {
		return err
	}
	return c.node.ReportService(c.ctx, name, running)
}
