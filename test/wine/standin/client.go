package standin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// Client is one connection to a Server, from Go. It implements cim.Session, and
// those methods of win32.API that the link has. Calls take turns; for parallel
// calls there are parallel clients. After a call that ended without an answer,
// for lack of time too, the client is of no use any more.
type Client struct {
	mu   sync.Mutex
	conn net.Conn
}

var _ cim.Session = (*Client)(nil)

// Dial connects to the stand-in link at an address "host:port".
func Dial(ctx context.Context, address string) (*Client, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("stand-in link: %w", err)
	}
	return &Client{conn: conn}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// exchange sends a request and returns the status and body of the answer.
func (c *Client) exchange(ctx context.Context, op Op, in body) (uint32, *reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		return 0, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) }) // long ago: it ends at once
	defer stop()
	frame := body{}
	frame.count(2 + len(in.data))
	frame.u16(uint16(op))
	frame.raw(in.data)
	_, err := c.conn.Write(frame.data)
	var answer []byte
	if err == nil {
		answer, err = readFrame(c.conn, 4, answerMaxBytes)
	}
	if err != nil {
		_ = c.conn.Close()
		return 0, nil, errors.Join(ctx.Err(), fmt.Errorf("stand-in link: operation %d: %w", op, err))
	}
	return binary.LittleEndian.Uint32(answer), &reader{data: answer[4:]}, nil
}

// wmi runs an operation whose status is an HRESULT.
func (c *Client) wmi(ctx context.Context, op Op, name, object string, in body) (*reader, error) {
	status, out, err := c.exchange(ctx, op, in)
	if err != nil || status == 0 {
		return out, err
	}
	failure := &cim.Error{Op: name, Object: object, HRESULT: status, Win32: out.u32(), Text: out.text()}
	if err := out.end(); err != nil {
		return nil, fmt.Errorf("stand-in link: %s: %w", name, err)
	}
	return nil, failure
}

// Query implements cim.Session.
func (c *Client) Query(ctx context.Context, namespace, wql string) ([]cim.Instance, error) {
	var in body
	in.text(namespace)
	in.text(wql)
	out, err := c.wmi(ctx, OpQuery, "Query", wql, in)
	if err != nil {
		return nil, err
	}
	rows := make([]cim.Instance, 0, out.count(12))
	for range cap(rows) {
		rows = append(rows, out.instance(0))
	}
	return rows, finish("Query", out)
}

// finish is the failure of reading an answer.
func finish(name string, out *reader) error {
	if err := out.end(); err != nil {
		return fmt.Errorf("stand-in link: %s: %w", name, err)
	}
	return nil
}

// DescribeClass asks for a class's declaration.
func (c *Client) DescribeClass(ctx context.Context, namespace, name string) (sim.ClassDescription, error) {
	var in body
	in.text(namespace)
	in.text(name)
	out, err := c.wmi(ctx, OpClass, "Class", name, in)
	if err != nil {
		return sim.ClassDescription{}, err
	}
	class := sim.ClassDescription{Name: out.text()}
	for range out.count(9) {
		method := sim.MethodDescription{Name: out.text()}
		hasIn := out.flag()
		method.In = out.typedNames()
		if hasIn != (len(method.In) > 0) {
			return class, fmt.Errorf("stand-in link: Class: %s has and has no in-parameters", method.Name)
		}
		class.Methods = append(class.Methods, method)
	}
	class.Properties = out.typedNames()
	return class, finish("Class", out)
}

func (r *reader) typedNames() []sim.TypedName {
	list := make([]sim.TypedName, r.count(6))
	for i := range list {
		list[i] = sim.TypedName{Name: r.text(), Type: cim.Type(r.u16())}
	}
	return list
}

// Exec implements cim.Session.
func (c *Client) Exec(ctx context.Context, namespace, path, method string, values cim.Values) (cim.Result, error) {
	var in body
	in.text(namespace)
	in.text(path)
	in.text(method)
	in.count(len(values))
	noClass := func(string) (sim.ClassDescription, error) { return sim.ClassDescription{}, nil }
	if err := in.named(values, noClass); err != nil {
		return cim.Result{}, fmt.Errorf("stand-in link: Exec: %w", err)
	}
	out, err := c.wmi(ctx, OpExec, "Exec", path+" "+method, in)
	if err != nil {
		return cim.Result{}, err
	}
	result := cim.Result{}
	if out.flag() {
		result.Out = out.named(0)
	}
	result.ReturnValue, _ = result.Out["ReturnValue"].(uint32)
	delete(result.Out, "ReturnValue")
	return result, finish("Exec", out)
}

// CheckNamespace fails with cim.InvalidNamespace.
func (c *Client) CheckNamespace(ctx context.Context, namespace string) error {
	var in body
	in.text(namespace)
	out, err := c.wmi(ctx, OpNamespace, "Namespace", namespace, in)
	if err != nil {
		return err
	}
	return finish("Namespace", out)
}

// win32 runs an operation whose status is a Windows error number. The answer is
// there also with an error number that comes with bytes.
func (c *Client) win32(ctx context.Context, op Op, name, object string, in body) (*reader, error) {
	status, out, err := c.exchange(ctx, op, in)
	if err != nil || status == 0 {
		return out, err
	}
	return out, &win32.Error{Call: name, Object: object, Code: status}
}
