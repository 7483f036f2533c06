// Package queue runs the work of a controller: keys go in, a handler is called
// for each, never twice at once for one key, and a key whose handler failed
// comes back after a delay that grows with each failure of that key.
package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Config says how a queue works.
type Config struct {
	// Name is the queue's name in metrics.
	Name string
	// Workers is how many keys are handled at once.
	Workers int
	// RetryMin and RetryMax bound the delay before a failed key comes back.
	RetryMin, RetryMax time.Duration
	// Metrics counts the work; nil counts nothing.
	Metrics workqueue.MetricsProvider
	// Clock is the time; nil is the real one.
	Clock clock.WithTicker
	Log   *slog.Logger
}

// Handler handles one key. An error brings the key back later. A handler logs
// nothing of an error it returns.
type Handler func(ctx context.Context, key string) error

// Queue holds keys that wait for their handler.
type Queue struct {
	config Config
	queue  workqueue.TypedRateLimitingInterface[string]
}

// New makes a queue. It is used for one Run only, and holds a goroutine until
// that Run, or Drop where there is none.
func New(config Config) *Queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](config.RetryMin, config.RetryMax)
	return &Queue{config: config, queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[string]{Name: config.Name, MetricsProvider: config.Metrics, Clock: config.Clock})}
}

// Add puts a key in the queue unless it waits there already.
func (q *Queue) Add(key string) { q.queue.Add(key) }

// AddAfter puts a key in the queue after a delay.
func (q *Queue) AddAfter(key string, delay time.Duration) { q.queue.AddAfter(key, delay) }

// AddLimited puts a key in the queue after the delay of its failures so far,
// and counts one more.
func (q *Queue) AddLimited(key string) { q.queue.AddRateLimited(key) }

// Forget drops the failures of a key.
func (q *Queue) Forget(key string) { q.queue.Forget(key) }

// AddObject puts the key of an object in the queue, be it the last known state
// of one that is gone.
func (q *Queue) AddObject(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		q.Add(key)
	}
}

// Run handles keys until ctx ends, and returns when the last handler has. Keys
// that still wait then are dropped.
func (q *Queue) Run(ctx context.Context, handle Handler) {
	var workers sync.WaitGroup
	for range q.config.Workers {
		workers.Go(func() {
			for q.next(ctx, handle) {
			}
		})
	}
	<-ctx.Done()
	q.queue.ShutDown()
	workers.Wait()
}

// Drop ends a queue that is not run.
func (q *Queue) Drop() { q.queue.ShutDown() }

func (q *Queue) next(ctx context.Context, handle Handler) bool {
	key, ended := q.queue.Get()
	if ended {
		return false
	}
	defer q.queue.Done(key)
	if ctx.Err() != nil {
		return true // what is left is dropped: the next run finds it again
	}
	err := q.safely(ctx, handle, key)
	switch again := (*later)(nil); {
	case err == nil:
		q.queue.Forget(key)
	case ctx.Err() != nil:
	case errors.As(err, &again):
		q.queue.Forget(key)
		q.queue.AddAfter(key, again.delay)
	default:
		q.config.Log.WarnContext(ctx, "Will be tried again", "queue", q.config.Name, "key", key,
			"failures", q.queue.NumRequeues(key)+1, "error", err)
		q.queue.AddRateLimited(key)
	}
	return true
}

// safely makes an error of a panic: one object that a handler cannot cope with
// must not end the work on all others.
func (q *Queue) safely(ctx context.Context, handle Handler, key string) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
			q.config.Log.ErrorContext(ctx, "A handler panicked", "queue", q.config.Name, "key", key, "error", err, "stack", string(debug.Stack()))
		}
	}()
	return handle(ctx, key)
}

type later struct{ delay time.Duration }

func (l *later) Error() string { return "not yet: again in " + l.delay.String() }

// After is the error of a handler that has not failed and wants its key back
// after a delay, with nothing logged and no failure counted.
func After(delay time.Duration) error { return &later{delay} }
