package standin

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// request makes a frame of an operation and its body.
func request(op Op, b body) []byte {
	var frame body
	frame.count(2 + len(b.data))
	frame.u16(uint16(op))
	frame.raw(b.data)
	return frame.data
}

// A frame that makes no sense ends its connection, without an answer and
// without harm to others.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	l := open(t)
	other := l.dial()
	short := about("root\\cimv2")
	short.u32(1 << 30) // a text that is not there
	tooMany := about("root\\cimv2")
	tooMany.u8(1)
	manyValues := about(cim.NamespaceStorage, "MSFT_Disk", "Refresh")
	manyValues.u32(0xFFFFFFFF)
	deep := about(cim.NamespaceStorage, "MSFT_Disk", "Refresh")
	deep.count(1)
	for range nestingMax + 2 {
		deep.text("in")
		deep.u16(13)
		deep.u8(0)
		deep.text("")
		deep.text("")
		deep.count(1)
	}
	oddType := about(cim.NamespaceStorage, "MSFT_Disk", "Refresh")
	oddType.count(1)
	oddType.text("x")
	oddType.u16(999)
	oddType.u8(0)
	oddType.u64(1)
	oddArray := body{data: append([]byte(nil), oddType.data...)}
	binary.LittleEndian.PutUint16(oddArray.data[len(oddArray.data)-11:], 0x2000|999)
	for name, frame := range map[string][]byte{
		"no operation":      {1, 0, 0, 0, 1},
		"empty":             {0, 0, 0, 0},
		"huge":              {0xFF, 0xFF, 0xFF, 0xFF, 1, 0},
		"unknown operation": request(999, body{}),
		"missing body":      request(OpQuery, body{}),
		"short text":        request(OpQuery, short),
		"bytes left over":   request(OpNamespace, tooMany),
		"too many values":   request(OpExec, manyValues),
		"nested too deep":   request(OpExec, deep),
		"unknown type":      request(OpExec, oddType),
		"unknown array":     request(OpExec, oddArray),
	} {
		conn, err := net.Dial("tcp", l.addr)
		l.ok(err)
		l.ok(conn.SetDeadline(time.Now().Add(time.Minute)))
		_, err = conn.Write(frame)
		l.ok(err)
		if n, err := conn.Read(make([]byte, 1)); n != 0 || errors.Is(err, net.ErrClosed) || isTimeout(err) {
			t.Errorf("%s: %d bytes, %v; want the end", name, n, err)
		}
		l.ok(conn.Close())
	}
	l.one(other, everyDisk)
}

func isTimeout(err error) bool {
	var failure net.Error
	return errors.As(err, &failure) && failure.Timeout()
}

// A connection that ends in the middle of a frame, or says nothing, costs nothing.
func TestSilentAndBrokenConnections(t *testing.T) {
	t.Parallel()
	l := open(t)
	silent, err := net.Dial("tcp", l.addr)
	l.ok(err)
	broken, err := net.Dial("tcp", l.addr)
	l.ok(err)
	_, err = broken.Write(request(OpQuery, about("a", "b"))[:7])
	l.ok(err)
	l.ok(broken.Close())
	c := l.dial()
	l.one(c, everyDisk)
	for l.server.Stats().Connections > 2 {
		time.Sleep(time.Millisecond)
	}
	l.ok(silent.Close())
}

// Requests of one connection that are sent at once are answered in their order.
func TestRequestsInOrder(t *testing.T) {
	t.Parallel()
	l := open(t)
	conn, err := net.Dial("tcp", l.addr)
	l.ok(err)
	defer func() { _ = conn.Close() }()
	l.ok(conn.SetDeadline(time.Now().Add(time.Minute)))
	both := append(request(OpNamespace, about(`root\none`)), request(OpNamespace, about(`root\cimv2`))...)
	_, err = conn.Write(both)
	l.ok(err)
	for _, want := range []uint32{cim.InvalidNamespace, 0} {
		answer, err := readFrame(conn, 4, answerMaxBytes)
		l.ok(err)
		if got := binary.LittleEndian.Uint32(answer); got != want {
			t.Errorf("status %#x, want %#x", got, want)
		}
	}
}

func TestReadFrame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		data []byte
		want error
	}{
		{"nothing", nil, io.EOF},
		{"half a length", []byte{1, 0}, io.ErrUnexpectedEOF},
		{"half a frame", []byte{4, 0, 0, 0, 1}, io.ErrUnexpectedEOF},
	} {
		pipe, writer := io.Pipe()
		go func() {
			_, _ = writer.Write(c.data)
			_ = writer.Close()
		}()
		if _, err := readFrame(pipe, 2, 100); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		_ = pipe.Close()
	}
}

// What asks for too much is refused, not answered with less.
func TestLimitsOfReads(t *testing.T) {
	t.Parallel()
	l := open(t)
	c := l.dial()
	h, err := c.CreateFile(t.Context(), `\\.\PhysicalDrive0`, win32.Open{Access: win32.GenericRead, Share: shareAll})
	l.ok(err)
	_, err = c.ReadAt(t.Context(), h, make([]byte, dataMaxBytes+512), 0)
	l.code(err, win32.ErrInvalidParameter)
	n, err := c.ReadAt(t.Context(), h, make([]byte, 1<<20), 0)
	if l.ok(err); n != 1<<20 {
		t.Errorf("%d bytes", n)
	}
	_, err = c.Info(t.Context(), 12345)
	l.code(err, win32.ErrInvalidHandle)
	l.ok(c.CloseHandle(h))
}
