package standin

import (
	"context"
	"time"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// Devices returns the names of the devices when their generation is another than
// the given one, or when the wait is over. The connection is a driver's from then on.
func (c *Client) Devices(ctx context.Context, generation uint32, wait time.Duration) (uint32, []string, error) {
	var in body
	in.u32(generation)
	in.u32(uint32(wait.Milliseconds()))
	out, err := c.win32(ctx, OpDevices, "Devices", "", in)
	if err != nil {
		return 0, nil, err
	}
	now, names := out.u32(), out.texts()
	return now, names, finish("Devices", out)
}

// DevicesReady tells that the driver has the devices of a generation.
func (c *Client) DevicesReady(ctx context.Context, generation uint32) error {
	var in body
	in.u32(generation)
	return c.alone(ctx, OpDevicesReady, "DevicesReady", "", in)
}

// Program makes the connection that of a program, or with 0 the one by which a
// new program lives, and returns the program.
func (c *Client) Program(ctx context.Context, program uint64) (uint64, error) {
	h, err := c.opened(ctx, OpProgram, "Program", "", onHandle(win32.Handle(program)))
	return uint64(h), err
}

// ServiceStarted tells that a service runs.
func (c *Client) ServiceStarted(ctx context.Context, name string) error {
	return c.alone(ctx, OpServiceStarted, "ServiceStarted", name, about(name))
}

// ServiceStopped tells that a service has stopped.
func (c *Client) ServiceStopped(ctx context.Context, name string) error {
	return c.alone(ctx, OpServiceStopped, "ServiceStopped", name, about(name))
}

// CreateDisk makes a virtual disk and opens it.
func (c *Client) CreateDisk(ctx context.Context, sizeBytes uint64, backingPath string) (id uint64, err error) {
	var in body
	in.u64(sizeBytes)
	in.text(backingPath)
	h, err := c.opened(ctx, OpCreateDisk, "CreateVirtualDisk", backingPath, in)
	return uint64(h), err
}

// OpenDisk opens a virtual disk.
func (c *Client) OpenDisk(ctx context.Context, backingPath string) (id uint64, err error) {
	h, err := c.opened(ctx, OpOpenDisk, "OpenVirtualDisk", backingPath, about(backingPath))
	return uint64(h), err
}

// AttachDisk attaches a virtual disk and returns its number.
func (c *Client) AttachDisk(ctx context.Context, id uint64) (uint32, error) {
	return c.number(ctx, OpAttachDisk, "AttachVirtualDisk", onHandle(win32.Handle(id)))
}

// DetachDisk detaches a virtual disk.
func (c *Client) DetachDisk(ctx context.Context, id uint64) error {
	return c.alone(ctx, OpDetachDisk, "DetachVirtualDisk", "", onHandle(win32.Handle(id)))
}

// PhysicalPath is the device path of an attached virtual disk.
func (c *Client) PhysicalPath(ctx context.Context, id uint64) (string, error) {
	return c.text(ctx, OpPhysicalPath, "GetVirtualDiskPhysicalPath", onHandle(win32.Handle(id)))
}

// CloseDisk closes a virtual disk, which detaches it.
func (c *Client) CloseDisk(ctx context.Context, id uint64) error {
	return c.alone(ctx, OpCloseDisk, "CloseHandle", "", onHandle(win32.Handle(id)))
}
