package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-windows/csi-windows/test/cluster"
)

const (
	namespace = "default"
	zoneKey   = "topology.plain.example.com/zone"
	// settleTime is how long the world may take to come to rest: a back-off of the
	// attach-detach controller grows to two minutes, and several may follow one another.
	settleTime = 10 * time.Minute
)

var (
	snapshotKind = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
	contentKind  = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotcontents"}
)

// objects that everything uses: a class for each mode of binding, one for snapshots.
const objects = `
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: plain.example.com}
spec: {attachRequired: true}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: immediate}
provisioner: plain.example.com
volumeBindingMode: Immediate
allowVolumeExpansion: true
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: plain.example.com
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: plain}
driver: plain.example.com
deletionPolicy: Delete
`

// capabilities are those of the driver: all that need nothing done on a node.
const capabilities = "-capabilities=controller,attach,readonly,list,published,expand,snapshot,list-snapshots,clone,topology,capacity,modify,multi-writer"

// sidecarFlags let everything be tried again soon.
var sidecarFlags = []string{
	"--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s", "--leader-election-retry-period=500ms",
	"--provisioner-timeout=2s", "--provisioner-retry-interval-start=200ms", "--provisioner-retry-interval-max=5s",
	"--provisioner-enable-capacity", "--provisioner-capacity-ownerref-level=-1", "--provisioner-capacity-poll-interval=5s",
	"--attacher-timeout=2s", "--attacher-retry-interval-start=200ms", "--attacher-retry-interval-max=5s", "--attacher-reconcile-sync=5s",
	"--resizer-timeout=2s", "--resizer-retry-interval-start=200ms", "--resizer-retry-interval-max=5s",
	"--snapshotter-timeout=2s", "--snapshotter-retry-interval-start=200ms", "--snapshotter-retry-interval-max=5s",
}

// world is a cluster with the driver and the sidecar, both of which may be killed.
type world struct {
	*cluster.Cluster
	t       *testing.T
	rand    *rand.Rand // of what happens to the processes
	driver  *cluster.Driver
	sidecar *cluster.Process
	flags   []string // further ones of the sidecar
}

func newWorld(t *testing.T, seed uint64, driverFlags, sidecarFlags []string) *world {
	t.Helper()
	c := cluster.Start(t, cluster.Options{SnapshotController: true, Flags: map[string][]string{
		"kube-controller-manager": {"--kube-api-qps=200", "--kube-api-burst=400", "--pvclaimbinder-sync-period=3s"},
		"snapshot-controller":     {"--retry-interval-start=200ms", "--retry-interval-max=5s"},
	}})
	w := &world{Cluster: c, t: t, rand: rand.New(rand.NewPCG(seed, 0)), flags: sidecarFlags}
	t.Cleanup(w.keepEvidence)
	c.Apply([]byte(objects))
	for i, name := range []string{"win1", "win2"} {
		c.FakeWindowsNode(name, cluster.NodeOptions{
			Labels:  map[string]string{zoneKey: fmt.Sprint("zone-", i+1)},
			Drivers: []storagev1.CSINodeDriver{{Name: cluster.PlainDriverName, NodeID: name, TopologyKeys: []string{zoneKey}}},
		})
	}
	w.startDriver(driverFlags...)
	w.startSidecar()
	return w
}

// keepEvidence keeps what tells how a failure came about, beside the logs.
func (w *world) keepEvidence() {
	folder := os.Getenv("CSI_CLUSTER_LOGS")
	if folder == "" || !w.t.Failed() {
		return
	}
	folder = filepath.Join(folder, strings.ReplaceAll(w.t.Name(), "/", "_"))
	err := os.MkdirAll(folder, 0o755)
	for _, name := range []string{"plain/calls.jsonl", "plain/state.json", "audit.log"} {
		data, failure := os.ReadFile(filepath.Join(w.Dir, name))
		err = errors.Join(err, failure, os.WriteFile(filepath.Join(folder, filepath.Base(name)), data, 0o600))
	}
	if err != nil {
		w.t.Log(err)
	}
}

func (w *world) startDriver(flags ...string) {
	w.t.Helper()
	w.driver = w.PlainDriver(append([]string{capabilities}, flags...)...)
}

func (w *world) startSidecar() {
	w.t.Helper()
	w.sidecar = w.ControllerSidecar(w.driver, append(sidecarFlags, w.flags...)...)
}

// between is a time from the world's chance.
func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rand.Int64N(int64(most-least)))
}

// settles waits until something holds. A failure is what was wrong before time ran out.
func (w *world) settles(what string, holds func(context.Context) error) {
	w.t.Helper()
	var last error
	w.Wait(what, settleTime, func(ctx context.Context) error {
		err := holds(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return errors.Join(last, err)
		}
		last = err
		select { // a look is many requests
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
		return err
	})
}

// notForbidden fails the test if the sidecar has asked for more than it may.
func (w *world) notForbidden() {
	w.t.Helper()
	for _, r := range w.Requests(cluster.AccountUser(cluster.Namespace, cluster.SidecarAccount)) {
		if r.Code == 403 || r.Code == 401 {
			w.t.Errorf("forbidden: %+v", r)
		}
	}
}

// noEntries fails while the provisioner's journal has an entry.
func (w *world) noEntries(ctx context.Context) error {
	entries, err := w.entries(ctx)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("the journal has %s", strings.Join(entries, " "))
	}
	return err
}
