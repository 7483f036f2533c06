package sidecar

import (
	"log/slog"

	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// Env is what the components of a process share. All of it may be used from
// several goroutines.
type Env struct {
	// Kube is the client of the API server. Nil for components that need none.
	Kube kubernetes.Interface
	// Snapshots is the client of the snapshot objects.
	Snapshots snapshots.Interface
	// Informers are the caches, one for each kind of object however many
	// components read it.
	Informers *Informers
	// Driver is the connection to the CSI driver.
	Driver *csiclient.Driver
	// Events gives the recorder of a component, under the name its events
	// have as their source.
	Events func(source string) record.EventRecorder
	// QueueMetrics counts the work in queues; nil counts nothing.
	QueueMetrics workqueue.MetricsProvider
	// Log is the process' log. A component adds its name to it once.
	Log *slog.Logger
	// Clock is the time; tests give their own.
	Clock clock.WithTicker
	// Namespace is the one the process lives in, for leases and its own objects.
	Namespace string
	// Identity tells this process from others of the same driver: the name of
	// the pod, or of the host.
	Identity string
	// Running are the components of this process. The provisioner puts the
	// attacher's finalizer on new volumes when both run here, for instance.
	Running []string
}
