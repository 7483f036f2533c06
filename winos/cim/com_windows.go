package cim

import (
	"context"
	"errors"
	"runtime"
	"sync"

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

// Connect returns a session with the WMI service of this machine, which is
// Counting. Namespaces are connected when they are first used, and again after
// WMI was restarted. Source: "Creating a WMI Application Using C++".
func Connect() (Session, error) {
	workers, err := newPool(workersMax, enterApartment)
	if err != nil {
		return nil, comError("Connect", "COM", err)
	}
	return &comSession{workers: workers}, nil
}

// Close ends the workers. A call that hangs is not waited for longer than 5 s.
func (s *comSession) Close() error { return s.workers.close() }

// Stats implements Counting.
func (s *comSession) Stats() Stats { return s.workers.stats() }

// answer is what a worker has to say.
type answer[T any] struct {
	value T
	err   error
}

// Query implements Session.
func (s *comSession) Query(ctx context.Context, namespace, wql string) ([]Instance, error) {
	done := make(chan answer[[]Instance], 1)
	err := s.workers.start(ctx, func(w *worker) {
		rows, err := w.query(ctx, namespace, wql)
		done <- answer[[]Instance]{rows, err}
	}, func(err error) {
		done <- answer[[]Instance]{err: comError("Query", classOfQuery(wql), err)}
	})
	if err != nil {
		return nil, err
	}
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Exec implements Session. A method that has begun is waited for, even when the
// context ends first: WMI has no way to stop it, and whoever holds the object's
// lock must not let go of it while it is being changed. What comes before, the
// reading of its signature, is not waited for.
func (s *comSession) Exec(ctx context.Context, namespace, path, method string, in Values) (Result, error) {
	var begun sync.Once // by whoever comes first: the worker to run, the caller to leave
	first := func() (mine bool) {
		begun.Do(func() { mine = true })
		return mine
	}
	done := make(chan answer[Result], 1)
	err := s.workers.start(ctx, func(w *worker) {
		result, err := w.exec(namespace, path, method, in, first)
		done <- answer[Result]{result, err}
	}, func(err error) {
		done <- answer[Result]{err: comError("Exec", classOfPath(path)+"."+method, err)}
	})
	if err != nil {
		return Result{}, err
	}
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		if first() {
			return Result{}, ctx.Err()
		}
	}
	a := <-done
	return a.value, a.err
}

// enterApartment makes the state of a worker in its own thread. A thread that
// somebody left in a single-threaded apartment ends with its goroutine.
func enterApartment() (w *worker, leave func(), err error) {
	runtime.LockOSThread()
	err = ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED)
	switch {
	case isHRESULT(err, rpcChangedMode):
		return nil, nil, errOtherThread
	case err != nil && !isHRESULT(err, sFalse):
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
