package cim

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/go-ole/go-ole"
)

const (
	// workersMax bounds the threads that talk to WMI at one time; a call that
	// hangs in a provider keeps its thread until the provider lets go.
	workersMax = 16
	// closeTimeout bounds how long Close waits for calls in flight.
	closeTimeout = 5 * time.Second
)

var errClosed = errors.New("cim: session is closed")

// comSession is WMI through IWbemServices. Each call runs on a worker: a
// goroutine that is locked to its thread, is in the multithreaded apartment for
// its whole life, and uses only objects that it made itself.
type comSession struct {
	jobs chan func(*worker)
	stop chan struct{}
	once sync.Once

	mu      sync.Mutex
	workers int
	group   sync.WaitGroup
}

// Connect returns a session with the WMI service of this machine. Namespaces are
// connected when they are first used, and again after WMI was restarted. Source:
// "Creating a WMI Application Using C++".
func Connect() (Session, error) {
	s := &comSession{jobs: make(chan func(*worker)), stop: make(chan struct{})}
	started := make(chan error, 1)
	s.mu.Lock()
	s.addWorkerLocked(started)
	s.mu.Unlock()
	if err := <-started; err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the workers. A call that hangs is not waited for longer than 5 s.
func (s *comSession) Close() error {
	s.once.Do(func() {
		s.mu.Lock() // no worker is added from here on
		defer s.mu.Unlock()
		close(s.stop)
	})
	ended := make(chan struct{})
	go func() {
		s.group.Wait()
		close(ended)
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return errors.New("cim: a call in flight did not end")
	}
}

// Query implements Session.
func (s *comSession) Query(ctx context.Context, namespace, wql string) (rows []Instance, err error) {
	type answer struct {
		rows []Instance
		err  error
	}
	done := make(chan answer, 1)
	err = s.run(ctx, func(w *worker) {
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

// Exec implements Session. When the context ends first, the method goes on in its
// thread and nobody learns how it ended: WMI has no way to stop one.
func (s *comSession) Exec(ctx context.Context, namespace, path, method string, in Values) (Result, error) {
	type answer struct {
		result Result
		err    error
	}
	done := make(chan answer, 1)
	err := s.run(ctx, func(w *worker) {
		result, err := w.exec(namespace, path, method, in)
		done <- answer{result, err}
	})
	if err != nil {
		return Result{}, err
	}
	select {
	case a := <-done:
		return a.result, a.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// run hands a job to an idle worker, or to a new one while there are not too many.
func (s *comSession) run(ctx context.Context, job func(*worker)) error {
	select {
	case <-s.stop:
		return errClosed
	case s.jobs <- job:
		return nil
	default:
	}
	s.growPool()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stop:
		return errClosed
	case s.jobs <- job:
		return nil
	}
}

// growPool adds a worker while the session is open and there are not too many.
func (s *comSession) growPool() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stop:
	default:
		if s.workers < workersMax {
			s.addWorkerLocked(nil)
		}
	}
}

// addWorkerLocked starts a worker and, if wanted, reports how its start went.
func (s *comSession) addWorkerLocked(started chan<- error) {
	s.workers++
	s.group.Add(1)
	go func() {
		defer s.group.Done()
		err := s.work(started)
		s.mu.Lock()
		s.workers--
		s.mu.Unlock()
		if err != nil && started != nil {
			started <- err
		}
	}()
}

// work is the life of a worker.
func (s *comSession) work(started chan<- error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED); err != nil && !isHRESULT(err, sFalse) {
		return err
	}
	defer ole.CoUninitialize()
	// Once per process; the second call is told that it is too late.
	const authenticationDefault, impersonate, noCapabilities = 0, 3, 0
	err := ole.CoInitializeSecurity(-1, authenticationDefault, impersonate, noCapabilities)
	if err != nil && !isHRESULT(err, rpcTooLate) {
		return err
	}
	w := &worker{connections: map[string]*connection{}}
	defer w.disconnect()
	if started != nil {
		started <- nil
	}
	for {
		select {
		case <-s.stop:
			return nil
		case job := <-s.jobs:
			job(w)
		}
	}
}

func isHRESULT(err error, code uint32) bool {
	var e *ole.OleError
	return errors.As(err, &e) && uint32(e.Code()) == code
}
