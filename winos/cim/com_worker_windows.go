package cim

import (
	"context"
	"math"
	"strings"
	"unsafe"

	"github.com/go-ole/go-ole"
)

// Numbers of wbemcli.h and winerror.h.
const (
	sFalse            = 1
	rpcChangedMode    = 0x80010106
	rpcTooLate        = 0x80010119
	flagsQuery        = 0x20 | 0x10 | 0x100 // forward only, return immediately, ensure locatable
	connectBounded    = 0x80                // WBEM_FLAG_CONNECT_USE_MAX_WAIT
	nextTimeoutMillis = 200
	rowsAtOnce        = 16
	authnWinNT        = 10
	authzNone         = 0
	levelPrivacy      = 6
	levelImpersonate  = 3
)

// worker is the state of one thread.
type worker struct {
	connections map[string]*connection // by namespace
}

// connection is IWbemServices of one namespace, with the in-signatures of the
// methods that were used.
type connection struct {
	services   *object
	signatures map[string]*object // by "class.method"; nil for a method without in-parameters
}

// connect returns the connection of a namespace, a new one if need be.
func (w *worker) connect(namespace string) (*connection, error) {
	if c, ok := w.connections[namespace]; ok {
		return c, nil
	}
	unknown, err := ole.CreateInstance(clsidLocator, iidLocator)
	if err != nil {
		return nil, comError("Connect", namespace, err)
	}
	locator := (*object)(unsafe.Pointer(unknown))
	defer locator.release()
	name := ole.SysAllocStringLen(namespace)
	defer freeBSTR(name)
	var services *object
	hr := locator.call(slotConnectServer, uintptr(unsafe.Pointer(name)), 0, 0, 0, connectBounded, 0, 0,
		uintptr(unsafe.Pointer(&services)))
	if failed(hr) {
		return nil, w.failure("Connect", namespace, hr)
	}
	if hr := setProxyBlanket(services); failed(hr) {
		services.release()
		return nil, w.failure("Connect", namespace, hr)
	}
	c := &connection{services: services, signatures: map[string]*object{}}
	w.connections[namespace] = c
	return c, nil
}

// disconnect releases everything of this thread.
func (w *worker) disconnect() {
	for namespace := range w.connections {
		w.drop(namespace)
	}
}

func (w *worker) drop(namespace string) {
	c, ok := w.connections[namespace]
	if !ok {
		return
	}
	for _, signature := range c.signatures {
		signature.release()
	}
	c.services.release()
	delete(w.connections, namespace)
}

// query runs a query and reads all rows. The enumeration is semi-synchronous:
// each step waits a moment only, so that the context can end it in between.
func (w *worker) query(ctx context.Context, namespace, wql string) ([]Instance, error) {
	c, err := w.connect(namespace)
	if err != nil {
		return nil, err
	}
	language, text := ole.SysAllocStringLen("WQL"), ole.SysAllocStringLen(wql)
	defer freeBSTR(language)
	defer freeBSTR(text)
	var rows *object
	hr := c.services.call(slotExecQuery, uintptr(unsafe.Pointer(language)), uintptr(unsafe.Pointer(text)),
		flagsQuery, 0, uintptr(unsafe.Pointer(&rows)))
	if failed(hr) {
		return nil, w.lost(namespace, w.failure("Query", classOfQuery(wql), hr))
	}
	defer rows.release()
	var all []Instance
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var batch [rowsAtOnce]*object
		var count uint32
		hr := rows.call(slotEnumNext, nextTimeoutMillis, rowsAtOnce,
			uintptr(unsafe.Pointer(&batch)), uintptr(unsafe.Pointer(&count)))
		if all, err = appendRows(all, batch[:count]); err != nil {
			return nil, err
		}
		switch {
		case failed(hr):
			return nil, w.lost(namespace, w.failure("Query", classOfQuery(wql), hr))
		case hr == sFalse:
			return all, nil
		}
	}
}

// appendRows reads and releases a batch. After an error the rest is only released.
func appendRows(all []Instance, batch []*object) ([]Instance, error) {
	var firstErr error
	for _, row := range batch {
		if firstErr == nil {
			instance, err := row.instance("Query", "")
			all, firstErr = append(all, instance), err
		}
		row.release()
	}
	return all, firstErr
}

// exec calls a method. In-parameters are put by name with the types of the
// method's in-signature; what is not given stays unset. The method itself is
// run only when begin allows it.
func (w *worker) exec(namespace, path, method string, in Values, begin func() bool) (Result, error) {
	m := methodCall{worker: w, class: classOfPath(path), method: method}
	var err error
	if m.connection, err = w.connect(namespace); err != nil {
		return Result{}, err
	}
	parameters, err := m.parameters(in)
	if err != nil {
		return Result{}, w.lost(namespace, err)
	}
	defer parameters.release()
	if !begin() {
		return Result{}, context.Canceled // the caller has gone
	}
	objectPath, methodName := ole.SysAllocStringLen(path), ole.SysAllocStringLen(method)
	defer freeBSTR(objectPath)
	defer freeBSTR(methodName)
	var out *object
	hr := m.connection.services.call(slotExecMethod, uintptr(unsafe.Pointer(objectPath)), uintptr(unsafe.Pointer(methodName)),
		0, 0, uintptr(unsafe.Pointer(parameters)), uintptr(unsafe.Pointer(&out)), 0)
	if failed(hr) {
		return Result{}, w.lost(namespace, m.failure(hr))
	}
	defer out.release()
	return m.result(out)
}

// methodCall is a method on its way.
type methodCall struct {
	worker     *worker
	connection *connection
	class      string
	method     string
}

func (m *methodCall) name() string { return m.class + "." + m.method }

func (m *methodCall) failure(hr uint32) error { return m.worker.failure("Exec", m.name(), hr) }

// bad is a failure that was found on this side.
func (m *methodCall) bad(hresult uint32, text string) error {
	return &Error{Op: "Exec", Object: m.name(), HRESULT: hresult, Text: text}
}

// result reads the out-parameters. Every method we know returns a number, so
// that a provider which leaves it out has not said that it did its work.
func (m *methodCall) result(out *object) (Result, error) {
	if out == nil {
		return Result{}, m.bad(ProviderFailure, "no out-parameters")
	}
	answer, err := out.instance("Exec", m.name())
	if err != nil {
		return Result{}, err
	}
	code, ok := Uint64(answer.Props, "ReturnValue")
	if !ok || code > math.MaxUint32 {
		return Result{}, m.bad(ProviderFailure, "no return value")
	}
	delete(answer.Props, "ReturnValue")
	return Result{ReturnValue: uint32(code), Out: answer.Props}, nil
}

// parameters makes the in-parameters object; nil for a method that has none.
func (m *methodCall) parameters(in Values) (*object, error) {
	signature, err := m.signature()
	if err != nil {
		return nil, err
	}
	if signature == nil {
		if len(in) != 0 {
			return nil, m.bad(InvalidMethodParam, "it takes no parameters")
		}
		return nil, nil
	}
	var parameters *object
	if hr := signature.call(slotSpawnInstance, 0, uintptr(unsafe.Pointer(&parameters))); failed(hr) {
		return nil, m.failure(hr)
	}
	for name, value := range in {
		if hr := parameters.put(name, value); failed(hr) {
			parameters.release()
			return nil, m.bad(hr, "parameter "+name)
		}
	}
	return parameters, nil
}

// signature returns the in-signature of the method, which only the class has.
func (m *methodCall) signature() (*object, error) {
	key := strings.ToLower(m.name())
	if signature, ok := m.connection.signatures[key]; ok {
		return signature, nil
	}
	name := ole.SysAllocStringLen(m.class)
	defer freeBSTR(name)
	var definition *object
	hr := m.connection.services.call(slotGetObject, uintptr(unsafe.Pointer(name)), 0, 0, uintptr(unsafe.Pointer(&definition)), 0)
	if failed(hr) {
		return nil, m.failure(hr)
	}
	defer definition.release()
	var in, out *object
	hr = definition.call(slotGetMethod, uintptr(unsafe.Pointer(wide(m.method))), 0,
		uintptr(unsafe.Pointer(&in)), uintptr(unsafe.Pointer(&out)))
	if failed(hr) {
		return nil, m.failure(hr)
	}
	out.release()
	m.connection.signatures[key] = in
	return in, nil
}

// lost drops the connection when the failure says that WMI went away, so that
// the next call connects again.
func (w *worker) lost(namespace string, err error) error {
	if code, ok := hresult(err); ok && isConnectionLoss(code) {
		w.drop(namespace)
	}
	return err
}

// classOfPath returns the class of an object path, or of a class path.
func classOfPath(path string) string {
	if i := strings.IndexAny(path, ".="); i >= 0 {
		return path[:i]
	}
	return path
}

// classOfQuery names a query in errors without the values in it.
func classOfQuery(wql string) string {
	if _, after, ok := strings.Cut(wql, " FROM "); ok {
		class, _, _ := strings.Cut(after, " ")
		return class
	}
	if _, after, ok := strings.Cut(wql, "ResultClass = "); ok {
		return after
	}
	return "WQL"
}
