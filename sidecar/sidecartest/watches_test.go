package sidecartest

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// TestSlowWatchSeesEverything: the queue of a watch holds a hundred changes.
func TestSlowWatchSeesEverything(t *testing.T) {
	t.Parallel()
	const changes = 500
	b := New(t, csiclient.Info{})
	watched, err := b.Kube.CoreV1().PersistentVolumes().Watch(b.Ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	seen := make(chan int, 1)
	go func() {
		count := 0
		for ; count < changes; count++ {
			if count%50 == 0 {
				time.Sleep(5 * time.Millisecond) // slower than who writes
			}
			if _, open := <-watched.ResultChan(); !open {
				break
			}
		}
		seen <- count
	}()
	for i := range changes {
		if _, err := b.Kube.CoreV1().PersistentVolumes().Create(b.Ctx, PV(fmt.Sprint(i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-seen; got != changes {
		t.Errorf("%d changes seen, want %d", got, changes)
	}
}
