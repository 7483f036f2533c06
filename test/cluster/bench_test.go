package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/test/cluster"
)

// usage is what processes have used so far.
type usage struct {
	rssMiB, cpuSeconds float64
}

// used sums up processes.
func used(t testing.TB, processes []*cluster.Process) (sum usage) {
	t.Helper()
	for _, p := range processes {
		one, err := p.Usage()
		if err != nil {
			t.Fatal(err)
		}
		sum.cpuSeconds += one.CPU.Seconds()
		sum.rssMiB += float64(one.ResidentBytes) / (1 << 20)
	}
	return sum
}

const plainObjects = `
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: plain.example.com}
spec: {attachRequired: true}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: plain}
provisioner: plain.example.com
volumeBindingMode: Immediate
`

// side is one way to have the work of sidecars done.
type side struct {
	name  string
	start func(*testing.B, *cluster.Cluster, *cluster.Driver) []*cluster.Process
}

// ours is one process with all six components, registrar and liveness probe included,
// which upstream's side has not.
func ours(flags ...string) func(*testing.B, *cluster.Cluster, *cluster.Driver) []*cluster.Process {
	return func(b *testing.B, c *cluster.Cluster, d *cluster.Driver) []*cluster.Process {
		whole := c.WholeSidecar(d, append([]string{"--leader-election=false"}, flags...)...)
		if err := errors.Join(whole.Register(b.Context()), whole.Probe(b.Context())); err != nil {
			b.Fatal(err)
		}
		return []*cluster.Process{whole.Process}
	}
}

func upstreams(flags ...string) func(*testing.B, *cluster.Cluster, *cluster.Driver) []*cluster.Process {
	return func(b *testing.B, c *cluster.Cluster, d *cluster.Driver) (all []*cluster.Process) {
		folder, err := filepath.Abs("../../bin/upstream")
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"} {
			all = append(all, c.Start(name, filepath.Join(folder, name), append([]string{
				"--csi-address=" + d.SocketPath, "--kubeconfig=" + c.SidecarKubeconfig(), "-v=2",
			}, flags...)...))
		}
		return all
	}
}

const benchClaims = 100

// BenchmarkSidecars has a hundred claims live and die with upstream's sidecars and
// with ours.
func BenchmarkSidecars(b *testing.B) {
	for _, s := range []side{
		{"upstream", upstreams()},
		{"upstream-raised", upstreams("--kube-api-qps=100", "--kube-api-burst=200")},
		{"ours", ours()},
	} {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				cycle(b, s)
			}
		})
	}
}

func cycle(b *testing.B, s side) {
	c := cluster.Start(b, cluster.Options{SnapshotController: true, Flags: map[string][]string{
		"kube-controller-manager": {"--kube-api-qps=200", "--kube-api-burst=400"},
	}})
	c.Config.QPS, c.Config.Burst = -1, 0
	c.Apply([]byte(plainObjects))
	c.FakeWindowsNode("win1", cluster.NodeOptions{Drivers: []storagev1.CSINodeDriver{{Name: cluster.PlainDriverName, NodeID: "win1"}}})
	d := c.PlainDriver("-capabilities=controller,attach,readonly,expand,snapshot,list-snapshots,clone,modify")
	processes := s.start(b, c, d)
	defer func() {
		for _, p := range processes {
			p.Kill()
		}
	}()
	time.Sleep(45 * time.Second) // a leader of half a minute asks no longer whether a claim is an old one
	idle := used(b, processes)
	user := cluster.AccountUser(cluster.Namespace, cluster.SidecarAccount)
	before := len(c.Requests(user))
	report := func(value float64, unit string) { b.ReportMetric(value, unit) }
	phase := func(name string, work func()) {
		start := time.Now()
		work()
		report(time.Since(start).Seconds(), "s-"+name)
	}
	class := "plain"
	each(b, 20, benchClaims, func(i int) error {
		_, err := c.Client.CoreV1().PersistentVolumeClaims("default").Create(b.Context(), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("claim-", i)},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
			},
		}, metav1.CreateOptions{})
		return err
	})
	var names []string
	phase("bind", func() {
		c.Wait("claims are bound", 5*time.Minute, func(ctx context.Context) error {
			list, err := c.Client.CoreV1().PersistentVolumeClaims("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			names = names[:0]
			for _, one := range list.Items {
				if one.Status.Phase == corev1.ClaimBound {
					names = append(names, one.Spec.VolumeName)
				}
			}
			return count(len(names), benchClaims)
		})
	})
	attachments := c.Client.StorageV1().VolumeAttachments()
	phase("attach", func() {
		each(b, 20, benchClaims, func(i int) error {
			_, err := attachments.Create(b.Context(), &storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("attachment-", i)},
				Spec:       storagev1.VolumeAttachmentSpec{Attacher: cluster.PlainDriverName, NodeName: "win1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &names[i]}},
			}, metav1.CreateOptions{})
			return err
		})
		c.Wait("volumes are attached", 5*time.Minute, func(ctx context.Context) error {
			list, err := attachments.List(ctx, metav1.ListOptions{})
			attached := 0
			for i := range list.Items {
				if list.Items[i].Status.Attached {
					attached++
				}
			}
			return errors.Join(err, count(attached, benchClaims))
		})
	})
	phase("detach", func() {
		each(b, 20, benchClaims, func(i int) error {
			return attachments.Delete(b.Context(), fmt.Sprint("attachment-", i), metav1.DeleteOptions{})
		})
		c.Wait("volumes are detached", 5*time.Minute, func(ctx context.Context) error {
			list, err := attachments.List(ctx, metav1.ListOptions{})
			return errors.Join(err, count(len(list.Items), 0))
		})
	})
	phase("delete", func() {
		each(b, 20, benchClaims, func(i int) error {
			return c.Client.CoreV1().PersistentVolumeClaims("default").Delete(b.Context(), fmt.Sprint("claim-", i), metav1.DeleteOptions{})
		})
		c.Wait("volumes are gone", 5*time.Minute, func(ctx context.Context) error {
			list, err := c.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
			return errors.Join(err, count(len(list.Items), 0))
		})
	})
	after := used(b, processes)
	requests := c.Requests(user)[before:]
	kinds := map[string]int{}
	for _, r := range requests {
		kinds[r.Verb+" "+r.Resource]++
	}
	b.Logf("%s: %v", s.name, kinds)
	report(idle.rssMiB, "MiB-idle")
	report(after.rssMiB, "MiB-after")
	report(after.cpuSeconds-idle.cpuSeconds, "cpu-s")
	report(float64(len(requests)), "requests")
}

func count(got, want int) error {
	if got != want {
		return fmt.Errorf("%d, not %d", got, want)
	}
	return nil
}

// each does work for every number below count, a few at a time.
func each(b *testing.B, workers, count int, work func(i int) error) {
	b.Helper()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < count; i += workers {
				if err := work(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
}
