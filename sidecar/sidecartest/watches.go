package sidecartest

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// watchesPatience is how long a write waits for those who watch.
const watchesPatience = 10 * time.Second

// watches are those of a client's own store, which gives each a queue of a
// fixed length and panics where one is full. A real API server lets writes be
// and ends a watch that is too slow; here a write waits for it, so that a test
// means the same on a busy machine.
//
// The client in memory handles one request at a time, so no lock is needed.
type watches struct{ open []*watch.RaceFreeFakeWatcher }

// answer has the watches of a client go through w.
func (w *watches) answer(server *clienttesting.Fake, tracker clienttesting.ObjectTracker) {
	server.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		var options metav1.ListOptions
		if asked, ok := action.(clienttesting.WatchActionImpl); ok {
			options = asked.ListOptions
		}
		opened, err := tracker.Watch(action.GetResource(), action.GetNamespace(), options)
		if err != nil {
			return true, nil, err
		}
		if queue, ok := opened.(*watch.RaceFreeFakeWatcher); ok {
			w.open = append(w.open, queue)
		}
		return true, opened, nil
	})
}

// wait returns when every queue has room for what one request causes.
func (w *watches) wait() {
	w.open = slices.DeleteFunc(w.open, (*watch.RaceFreeFakeWatcher).IsStopped)
	end := time.NewTimer(watchesPatience)
	defer end.Stop()
	for slices.ContainsFunc(w.open, isBehind) {
		select {
		case <-end.C:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func isBehind(queue *watch.RaceFreeFakeWatcher) bool {
	return !queue.IsStopped() && len(queue.ResultChan()) > cap(queue.ResultChan())/2
}
