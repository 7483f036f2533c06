package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	snapshotscheme "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/scheme"
	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

// How many events a process writes a second, and at once. What goes beyond it
// waits in the queue of its source, and is dropped when that is full.
const (
	eventsPerSecond = 20
	eventsBurst     = 200
)

// eventTimeout bounds the writing of one event, waiting included.
const eventTimeout = 30 * time.Second

// Events makes the recorders of a process. Events alike of one object become
// one, and an object that has very many gets fewer.
type Events struct {
	client  kubernetes.Interface
	scheme  *runtime.Scheme
	life    context.Context //nolint:containedctx // that of the process, for what recorders do behind its back
	end     context.CancelFunc
	limiter *rate.Limiter

	mu           sync.Mutex
	recorders    map[string]record.EventRecorder
	broadcasters []record.EventBroadcaster
}

// NewEvents makes recorders that write with a client and log what fails. They
// know the kinds of Kubernetes and those of snapshots.
func NewEvents(client kubernetes.Interface, log *slog.Logger) (*Events, error) {
	kinds := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(kinds), snapshotscheme.AddToScheme(kinds)); err != nil {
		return nil, fmt.Errorf("kinds of events' objects: %w", err)
	}
	life, end := context.WithCancel(logr.NewContextWithSlogLogger(context.Background(), log))
	return &Events{
		client: client, scheme: kinds, life: life, end: end,
		limiter: rate.NewLimiter(eventsPerSecond, eventsBurst), recorders: map[string]record.EventRecorder{},
	}, nil
}

// Recorder gives the recorder of a source, such as "csi-attacher".
func (e *Events) Recorder(source string) record.EventRecorder {
	e.mu.Lock()
	defer e.mu.Unlock()
	if there := e.recorders[source]; there != nil {
		return there
	}
	broadcaster := record.NewBroadcaster(record.WithContext(e.life))
	recorder := broadcaster.NewRecorder(e.scheme, v1.EventSource{Component: source})
	e.recorders[source] = recorder
	e.broadcasters = append(e.broadcasters, broadcaster)
	if e.life.Err() == nil {
		broadcaster.StartRecordingToSink(&eventSink{e})
	}
	return recorder
}

// Shutdown ends all recorders. What they have not written is dropped, and so
// is what is recorded after it.
func (e *Events) Shutdown() {
	e.end()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range e.broadcasters {
		b.Shutdown()
	}
	e.broadcasters = nil
}

// eventSink writes events, not too many, while the process lives.
type eventSink struct{ events *Events }

func (s *eventSink) wait() (context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithTimeout(s.events.life, eventTimeout)
	return ctx, cancel, s.events.limiter.Wait(ctx)
}

// Create implements record.EventSink.
func (s *eventSink) Create(event *v1.Event) (*v1.Event, error) {
	ctx, cancel, err := s.wait()
	defer cancel()
	if err != nil {
		return nil, err
	}
	return s.events.client.CoreV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
}

// Update implements record.EventSink.
func (s *eventSink) Update(event *v1.Event) (*v1.Event, error) {
	ctx, cancel, err := s.wait()
	defer cancel()
	if err != nil {
		return nil, err
	}
	return s.events.client.CoreV1().Events(event.Namespace).Update(ctx, event, metav1.UpdateOptions{})
}

// Patch implements record.EventSink.
func (s *eventSink) Patch(event *v1.Event, patch []byte) (*v1.Event, error) {
	ctx, cancel, err := s.wait()
	defer cancel()
	if err != nil {
		return nil, err
	}
	return s.events.client.CoreV1().Events(event.Namespace).Patch(ctx, event.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
}
