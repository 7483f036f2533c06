package cim

import (
	"context"
	"errors"
	"runtime"

	"github.com/go-ole/go-ole"
)

// workersMax bounds the threads that talk to WMI at one time. Those whose call
// hangs in a provider come on top: they keep their thread until it lets go.
const workersMax = 16

// comSession is WMI through IWbemServices. Each call runs on a worker: a
// goroutine that is locked to its thread, is in the multithreaded apartment for
// its whole life, and uses only objects that it made itself.
type comSession struct {
	workers *pool[*worker]
}

// Connect returns a session with the WMI service of this machine. Namespaces are
// connected when they are first used, and again after WMI was restarted. Source:
// "Creating a WMI Application Using C++".
func Connect() (Session, error) {
	workers, err := newPool(workersMax, enterApartment)
	if err != nil {
		return nil, err
	}
	return &comSession{workers: workers}, nil
}

// Close ends the workers. A call that hangs is not waited for longer than 5 s.
func (s *comSession) Close() error { return s.workers.close() }

// Query implements Session.
func (s *comSession) Query(ctx context.Context, namespace, wql string) (rows []Instance, err error) {
	type answer struct {
		rows []Instance
		err  error
	}
	done := make(chan answer, 1)
	err = s.workers.start(ctx, func(w *worker) {
		rows, err := w.query(ctx, namespace, wql)
		done <- answer{rows, err}
	})
	if err != nil {
		return nil, err
	}
	select {
	case a := <-done:
		return a.rows, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Exec implements Session. A method that has begun is waited for, even when the
// context ends first: WMI has no way to stop it, and whoever holds the object's
// lock must not let go of it while it is being changed.
func (s *comSession) Exec(ctx context.Context, namespace, path, method string, in Values) (Result, error) {
	type answer struct {
		result Result
		err    error
	}
	done := make(chan answer, 1)
	err := s.workers.start(ctx, func(w *worker) {
		result, err := w.exec(namespace, path, method, in)
		done <- answer{result, err}
	})
	if err != nil {
		return Result{}, err
	}
	a := <-done
	return a.result, a.err
}

// enterApartment makes the state of a worker in its own thread.
func enterApartment() (w *worker, leave func(), err error) {
	runtime.LockOSThread()
	if err := ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED); err != nil && !isHRESULT(err, sFalse) {
		runtime.UnlockOSThread()
		return nil, nil, err
	}
	w = &worker{connections: map[string]*connection{}}
	leave = func() {
		w.disconnect()
		ole.CoUninitialize()
		runtime.UnlockOSThread()
	}
	// Once per process; the second call is told that it is too late.
	const authenticationDefault, impersonate, noCapabilities = 0, 3, 0
	err = ole.CoInitializeSecurity(-1, authenticationDefault, impersonate, noCapabilities)
	if err != nil && !isHRESULT(err, rpcTooLate) {
		leave()
		return nil, nil, err
	}
	return w, leave, nil
}

func isHRESULT(err error, code uint32) bool {
	var e *ole.OleError
	return errors.As(err, &e) && uint32(e.Code()) == code
}
