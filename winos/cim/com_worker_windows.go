package cim

import (
	"context"
	"strings"
	"unsafe"

	"github.com/go-ole/go-ole"
)

// Numbers of wbemcli.h and winerror.h.
const (
	sFalse            = 1
	sTimedOut         = 0x40004
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
			instance, err := row.instance()
			all, firstErr = append(all, instance), err
		}
		row.release()
	}
	return all, firstErr
}

// exec calls a method. In-parameters are put by name with the types of the
// method's in-signature; what is not given stays unset.
func (w *worker) exec(namespace, path, method string, in Values) (Result, error) {
	called := classOfPath(path) + "." + method
	c, err := w.connect(namespace)
	if err != nil {
		return Result{}, err
	}
	parameters, err := w.parameters(c, classOfPath(path), method, in)
	if err != nil {
		return Result{}, w.lost(namespace, err)
	}
	defer parameters.release()
	objectPath, methodName := ole.SysAllocStringLen(path), ole.SysAllocStringLen(method)
	defer freeBSTR(objectPath)
	defer freeBSTR(methodName)
	var out *object
	hr := c.services.call(slotExecMethod, uintptr(unsafe.Pointer(objectPath)), uintptr(unsafe.Pointer(methodName)),
		0, 0, uintptr(unsafe.Pointer(parameters)), uintptr(unsafe.Pointer(&out)), 0)
	if failed(hr) {
		return Result{}, w.lost(namespace, w.failure("Exec", called, hr))
	}
	if out == nil {
		return Result{}, nil
	}
	defer out.release()
	answer, err := out.instance()
	if err != nil {
		return Result{}, err
	}
	result := Result{Out: answer.Props}
	if code, ok := Uint64(answer.Props, "ReturnValue"); ok {
		result.ReturnValue = uint32(code)
	}
	delete(result.Out, "ReturnValue")
	return result, nil
}

// parameters makes the in-parameters object; nil for a method that has none.
func (w *worker) parameters(c *connection, class, method string, in Values) (*object, error) {
	signature, err := w.signature(c, class, method)
	if err != nil {
		return nil, err
	}
	if signature == nil {
		if len(in) != 0 {
			return nil, &Error{Op: "Exec", Object: class + "." + method, HRESULT: InvalidMethodParam}
		}
		return nil, nil
	}
	var parameters *object
	if hr := signature.call(slotSpawnInstance, 0, uintptr(unsafe.Pointer(&parameters))); failed(hr) {
		return nil, w.failure("Exec", class+"."+method, hr)
	}
	for name, value := range in {
		if err := parameters.put(name, value); err != nil {
			parameters.release()
			return nil, err
		}
	}
	return parameters, nil
}

// signature returns the in-signature of a method, which only the class has.
func (w *worker) signature(c *connection, class, method string) (*object, error) {
	key := strings.ToLower(class + "." + method)
	if signature, ok := c.signatures[key]; ok {
		return signature, nil
	}
	name := ole.SysAllocStringLen(class)
	defer freeBSTR(name)
	var definition *object
	hr := c.services.call(slotGetObject, uintptr(unsafe.Pointer(name)), 0, 0, uintptr(unsafe.Pointer(&definition)), 0)
	if failed(hr) {
		return nil, w.failure("Exec", class, hr)
	}
	defer definition.release()
	var in, out *object
	hr = definition.call(slotGetMethod, uintptr(unsafe.Pointer(wide(method))), 0,
		uintptr(unsafe.Pointer(&in)), uintptr(unsafe.Pointer(&out)))
	if failed(hr) {
		return nil, w.failure("Exec", class+"."+method, hr)
	}
	out.release()
	c.signatures[key] = in
	return in, nil
}

// lost drops the connection when the failure says that WMI went away, so that
// the next call connects again.
func (w *worker) lost(namespace string, err error) error {
	if code, ok := hresult(err); ok && (code == RPCDisconnected || code == RPCServerUnvail || code == rpcServerDied ||
		code == rpcServerDiedNotRun || code == rpcCallFailed || code == rpcCallFailedNotRun || code == TransportFailure) {
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
