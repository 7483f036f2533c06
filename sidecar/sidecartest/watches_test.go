package sidecartest

import (
	"fmt"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

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

// TestAWatchTellsWhatHasGoneSinceItsList: a cache lists first and watches then.
func TestAWatchTellsWhatHasGoneSinceItsList(t *testing.T) {
	t.Parallel()
	b := New(t, csiclient.Info{}, PV("gone"), PV("anew"), PV("stays"))
	volumes := b.Kube.CoreV1().PersistentVolumes()
	listed, err := volumes.List(b.Ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gone", "anew"} {
		if err := volumes.Delete(b.Ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"anew", "made"} {
		if _, err := volumes.Create(b.Ctx, PV(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	watched, err := volumes.Watch(b.Ctx, metav1.ListOptions{ResourceVersion: listed.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	watched.Stop() // what is there before it stays in the queue
	got := map[string]watch.EventType{}
	for event := range watched.ResultChan() {
		got[nameOf(event.Object)] = event.Type
	}
	if want := map[string]watch.EventType{"gone": watch.Deleted, "anew": watch.Added, "made": watch.Added}; !maps.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}
