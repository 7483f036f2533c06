package provider

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/test/wine/standin"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// space is a namespace that only the script has.
const space = `root\lab`

// script is what the provider says. A nil function is a provider that lacks the
// operation; an error of errGone ends the connection.
type script struct {
	class func(name string) (body, error)
	query func(wql string) (body, error)
	exec  func(path, method string, in []byte) (body, error)
}

// status is a failure of the provider.
type status struct {
	hresult, win32 uint32
	text           string
}

func (s status) Error() string { return fmt.Sprintf("0x%08X", s.hresult) }

var errGone = errors.New("the provider is gone")

// provider is the one server of this process: the stand-in keeps its address.
type provider struct {
	mu    sync.Mutex
	now   script
	count map[standin.Op]int
}

var scripted provider

func TestMain(m *testing.M) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	os.Setenv("CSI_STANDIN", listener.Addr().String())
	go scripted.serve(listener)
	code := m.Run()
	listener.Close()
	os.Exit(code)
}

// play gives the provider a script and returns a session with it.
func play(t *testing.T, s script) cim.Session {
	t.Helper()
	scripted.mu.Lock()
	scripted.now, scripted.count = s, map[standin.Op]int{}
	scripted.mu.Unlock()
	return bed.Session(t)
}

// asked is how often the provider was asked for an operation since play.
func asked(op standin.Op) int {
	scripted.mu.Lock()
	defer scripted.mu.Unlock()
	return scripted.count[op]
}

func (p *provider) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for p.answerOne(conn) == nil {
			}
		}()
	}
}

func (p *provider) answerOne(conn net.Conn) error {
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return err
	}
	frame := make([]byte, binary.LittleEndian.Uint32(length[:]))
	if _, err := io.ReadFull(conn, frame); err != nil {
		return err
	}
	answer, err := p.answer(standin.Op(binary.LittleEndian.Uint16(frame)), request(frame[2:]))
	var code uint32
	var failure status
	switch {
	case errors.As(err, &failure):
		code, answer = failure.hresult, body{}.u32(failure.win32).text(failure.text)
	case err != nil:
		return err
	}
	head := body{}.u32(uint32(len(answer) + 4)).u32(code)
	_, err = conn.Write(append(head, answer...))
	return err
}

func (p *provider) answer(op standin.Op, in request) (body, error) {
	p.mu.Lock()
	s := p.now
	p.count[op]++
	p.mu.Unlock()
	if op == standin.OpProgram { // every connection begins with it
		return body{}.u64(1), nil
	}
	if namespace := in.text(); namespace != space {
		return nil, status{hresult: cim.InvalidNamespace}
	}
	switch {
	case op == standin.OpNamespace:
		return nil, nil
	case op == standin.OpClass && s.class != nil:
		return s.class(in.text())
	case op == standin.OpQuery && s.query != nil:
		return s.query(in.text())
	case op == standin.OpExec && s.exec != nil:
		return s.exec(in.text(), in.text(), in)
	}
	return nil, errGone
}

// request is what is left of a request.
type request []byte

func (r *request) text() string {
	size := binary.LittleEndian.Uint32(*r)
	text := string((*r)[4 : 4+size])
	*r = (*r)[4+size:]
	return text
}

func (r request) count() uint32 { return binary.LittleEndian.Uint32(r) }

// declaration is the name and the type of a written value.
func declaration(value body) body {
	return value[:4+request(value).count()+2]
}

// body is an answer being written.
type body []byte

func (b body) u8(v uint8) body     { return append(b, v) }
func (b body) u16(v uint16) body   { return binary.LittleEndian.AppendUint16(b, v) }
func (b body) u32(v uint32) body   { return binary.LittleEndian.AppendUint32(b, v) }
func (b body) u64(v uint64) body   { return binary.LittleEndian.AppendUint64(b, v) }
func (b body) f64(v float64) body  { return b.u64(math.Float64bits(v)) }
func (b body) text(v string) body  { return append(b.u32(uint32(len(v))), v...) }
func (b body) then(more body) body { return append(b, more...) }
func (b body) list(all ...body) body {
	b = b.u32(uint32(len(all)))
	for _, one := range all {
		b = b.then(one)
	}
	return b
}

// value is a property or parameter that is not NULL.
func value(name string, t cim.Type, bits body) body {
	return body{}.text(name).u16(uint16(t)).u8(0).then(bits)
}

func null(name string, t cim.Type) body { return body{}.text(name).u16(uint16(t)).u8(1) }

// mistyped is a value of another type than the property says.
func mistyped(name string, declared, actual cim.Type, bits body) body {
	return body{}.text(name).u16(uint16(declared)).u8(2).u16(uint16(actual)).u8(0).then(bits)
}

func number(name string, t cim.Type, v uint64) body { return value(name, t, body{}.u64(v)) }
func text(name, v string) body                      { return value(name, cim.TypeString, body{}.text(v)) }

// object is an instance.
func object(class, path string, properties ...body) body {
	return body{}.text(class).text(path).list(properties...)
}

// parameter is a name and a type, without a value.
func parameter(name string, t cim.Type) body { return body{}.text(name).u16(uint16(t)) }

// classWith is the answer to a question for a class with one method. A method
// without parameters has no in-signature.
func classWith(method string, in ...body) func(string) (body, error) {
	return func(name string) (body, error) {
		has := uint8(min(len(in), 1))
		one := body{}.text(method).u8(has).list(in...)
		return body{}.text(name).list(one).list(), nil
	}
}

// rows is the answer to every query.
func rows(all ...body) func(string) (body, error) {
	return func(string) (body, error) { return body{}.list(all...), nil }
}

// out is the answer to every call of a method.
func out(parameters ...body) func(string, string, []byte) (body, error) {
	return func(string, string, []byte) (body, error) { return body{}.u8(1).list(parameters...), nil }
}

// failure checks that err is one of the provider's class or method, and returns it.
func failure(t *testing.T, err error, hresult uint32, object, said string) {
	t.Helper()
	var e *cim.Error
	if !errors.As(err, &e) || e.HRESULT != hresult || e.Object != object || !strings.Contains(e.Text, said) {
		t.Errorf("error %v, want 0x%08X of %s that says %q", err, hresult, object, said)
	}
}
