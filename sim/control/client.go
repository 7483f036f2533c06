package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/csi-windows/csi-windows/sim"
)

// Client drives a node in another process. It implements sim.Controller; errors
// of Windows keep their type.
type Client struct {
	http    *http.Client
	address string
}

var _ sim.Controller = (*Client)(nil)

// NewClient makes a client of the control that listens on an address, see
// Listen. It connects when it is used.
func NewClient(address string) *Client {
	var dialer net.Dialer
	return &Client{address: address, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, networkOf(address), address)
		},
	}}}
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call runs a method of the node.
func call[R any](ctx context.Context, c *Client, method string, args ...any) (R, error) {
	var result R
	body := struct {
		Args []any `json:"args"`
	}{args}
	data, err := json.Marshal(body)
	if err != nil {
		return result, fmt.Errorf("control %s: %w", method, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node/"+method, bytes.NewReader(data))
	if err != nil {
		return result, fmt.Errorf("control %s: %w", method, err)
	}
	reply, err := c.http.Do(req)
	if err != nil {
		return result, fmt.Errorf("control %s at %s: %w", method, c.address, err)
	}
	defer func() { _ = reply.Body.Close() }()
	var out response
	err = json.NewDecoder(reply.Body).Decode(&out)
	switch {
	case reply.StatusCode != http.StatusOK && (err != nil || out.Error == nil):
		return result, fmt.Errorf("control %s at %s: %s", method, c.address, reply.Status) // no control of ours
	case reply.StatusCode != http.StatusOK:
		return result, fmt.Errorf("control %s at %s: %w", method, c.address, out.Error.err())
	case err != nil:
		return result, fmt.Errorf("control %s: %w", method, err)
	}
	if out.Error != nil {
		return result, out.Error.err()
	}
	if len(out.Result) > 0 {
		err = json.Unmarshal(out.Result, &result)
	}
	return result, err
}

func (c *Client) do(ctx context.Context, method string, args ...any) error {
	_, err := call[any](ctx, c, method, args...)
	return err
}

// AttachDisk implements sim.DiskController.
func (c *Client) AttachDisk(ctx context.Context, spec sim.DiskSpec) (uint32, error) {
	return call[uint32](ctx, c, "AttachDisk", spec)
}

// DetachDisk implements sim.DiskController.
func (c *Client) DetachDisk(ctx context.Context, number uint32) error {
	return c.do(ctx, "DetachDisk", number)
}

// GrowDisk implements sim.DiskController.
func (c *Client) GrowDisk(ctx context.Context, number uint32, sizeBytes int64) error {
	return c.do(ctx, "GrowDisk", number, sizeBytes)
}

// CorruptDisk implements sim.DiskController.
func (c *Client) CorruptDisk(ctx context.Context, number uint32, offsetBytes int64, data []byte) error {
	return c.do(ctx, "CorruptDisk", number, offsetBytes, data)
}

// Disks implements sim.DiskController.
func (c *Client) Disks(ctx context.Context) ([]sim.DiskStatus, error) {
	return call[[]sim.DiskStatus](ctx, c, "Disks")
}

// SetSMBServer implements sim.NetworkController.
func (c *Client) SetSMBServer(ctx context.Context, server sim.SMBServer) error {
	return c.do(ctx, "SetSMBServer", server)
}

// RemoveSMBServer implements sim.NetworkController.
func (c *Client) RemoveSMBServer(ctx context.Context, name string) error {
	return c.do(ctx, "RemoveSMBServer", name)
}

// SetISCSITarget implements sim.NetworkController.
func (c *Client) SetISCSITarget(ctx context.Context, target sim.ISCSITarget) error {
	return c.do(ctx, "SetISCSITarget", target)
}

// RemoveISCSITarget implements sim.NetworkController.
func (c *Client) RemoveISCSITarget(ctx context.Context, iqn string) error {
	return c.do(ctx, "RemoveISCSITarget", iqn)
}

// AddFault implements sim.FaultController; a Hook cannot cross processes.
func (c *Client) AddFault(ctx context.Context, fault sim.Fault) error {
	if fault.Hook != nil {
		return errors.New("control AddFault: a hook runs only in the node's own process")
	}
	return c.do(ctx, "AddFault", fault)
}

// ClearFaults implements sim.FaultController.
func (c *Client) ClearFaults(ctx context.Context) error { return c.do(ctx, "ClearFaults") }

// RecordCalls implements sim.FaultController.
func (c *Client) RecordCalls(ctx context.Context, on bool) error {
	return c.do(ctx, "RecordCalls", on)
}

// CallLog implements sim.FaultController.
func (c *Client) CallLog(ctx context.Context) ([]sim.Call, error) {
	return call[[]sim.Call](ctx, c, "CallLog")
}

// HandleCount implements sim.FaultController.
func (c *Client) HandleCount(ctx context.Context) (int, error) {
	return call[int](ctx, c, "HandleCount")
}

// WriteFile implements sim.FileController.
func (c *Client) WriteFile(ctx context.Context, path string, data []byte) error {
	return c.do(ctx, "WriteFile", path, data)
}

// ReadFile implements sim.FileController.
func (c *Client) ReadFile(ctx context.Context, path string) ([]byte, error) {
	return call[[]byte](ctx, c, "ReadFile", path)
}

// ListDir implements sim.FileController.
func (c *Client) ListDir(ctx context.Context, path string) ([]string, error) {
	return call[[]string](ctx, c, "ListDir", path)
}

// MakeDir implements sim.FileController.
func (c *Client) MakeDir(ctx context.Context, path string) error { return c.do(ctx, "MakeDir", path) }

// MakeLink implements sim.FileController.
func (c *Client) MakeLink(ctx context.Context, path, target string) error {
	return c.do(ctx, "MakeLink", path, target)
}

// RemoveFile implements sim.FileController.
func (c *Client) RemoveFile(ctx context.Context, path string) error {
	return c.do(ctx, "RemoveFile", path)
}

// SwapForLink implements sim.FileController.
func (c *Client) SwapForLink(ctx context.Context, path, target string) (string, error) {
	return call[string](ctx, c, "SwapForLink", path, target)
}

// SetService implements sim.SystemController.
func (c *Client) SetService(ctx context.Context, service sim.Service) error {
	return c.do(ctx, "SetService", service)
}

// Services implements sim.SystemController.
func (c *Client) Services(ctx context.Context) ([]sim.Service, error) {
	return call[[]sim.Service](ctx, c, "Services")
}

// PowerCut implements sim.SystemController.
func (c *Client) PowerCut(ctx context.Context) error { return c.do(ctx, "PowerCut") }

// Boot implements sim.SystemController.
func (c *Client) Boot(ctx context.Context) error { return c.do(ctx, "Boot") }

// Reboot implements sim.SystemController.
func (c *Client) Reboot(ctx context.Context) error { return c.do(ctx, "Reboot") }
