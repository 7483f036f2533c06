package sidecartest

import (
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// watchesPatience is how long a write waits for those who watch.
const watchesPatience = 30 * time.Second

// firstListVersion is beyond the versions of objects and those of the store.
const firstListVersion = 1_000_000_000

// watches are those of a client's own store, which gives each a queue of a
// fixed length and panics where one is full. A real API server lets writes be
// and ends a watch that is too slow; here a write waits for it, so that a test
// means the same on a busy machine.
//
// The store tells a watch what was written since the list it follows, but not
// what was deleted: a cache whose watch came a little late would have the object
// for ever. So each list has a version of its own, and a watch from there begins
// with what has gone.
//
// The client in memory handles one request at a time, so no lock is needed.
type watches struct {
	open []*watch.RaceFreeFakeWatcher
	// lists are those that no watch has followed yet, by their versions; made
	// counts all.
	lists map[string]list
	made  int
}

// list is what a list had, and the store's own version of it.
type list struct {
	version string
	objects []runtime.Object
}

// answer has the lists and the watches of a client go through w.
func (w *watches) answer(server *clienttesting.Fake, tracker clienttesting.ObjectTracker) {
	w.lists = map[string]list{}
	store := clienttesting.ObjectReaction(tracker)
	server.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		isHandled, all, err := store(action)
		if isHandled && err == nil {
			err = w.remember(all)
		}
		return isHandled, all, err
	})
	server.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		var options metav1.ListOptions
		if asked, ok := action.(clienttesting.WatchActionImpl); ok {
			options = asked.ListOptions
		}
		opened, err := w.follow(action, options, tracker)
		return true, opened, err
	})
}

// remember gives a list a version of its own.
func (w *watches) remember(all runtime.Object) error {
	accessor, err := meta.ListAccessor(all)
	if err != nil {
		return err
	}
	objects, err := meta.ExtractList(all)
	if err != nil {
		return err
	}
	w.made++
	version := strconv.Itoa(firstListVersion + w.made)
	w.lists[version] = list{accessor.GetResourceVersion(), objects}
	accessor.SetResourceVersion(version)
	return nil
}

// follow opens a watch, from a list on where it names the version of one.
func (w *watches) follow(action clienttesting.Action, options metav1.ListOptions, tracker clienttesting.ObjectTracker) (watch.Interface, error) {
	from, isKnown := w.lists[options.ResourceVersion]
	if isKnown {
		delete(w.lists, options.ResourceVersion)
		options.ResourceVersion = from.version
	}
	opened, err := tracker.Watch(action.GetResource(), action.GetNamespace(), options)
	if err != nil {
		return nil, err
	}
	queue, ok := opened.(*watch.RaceFreeFakeWatcher)
	if !ok {
		return opened, nil
	}
	w.open = append(w.open, queue)
	for _, object := range from.objects {
		accessor := mustAccess(object)
		// One that was made anew under its name is told of as a change.
		if _, err := tracker.Get(action.GetResource(), accessor.GetNamespace(), accessor.GetName()); apierrors.IsNotFound(err) {
			queue.Delete(object)
		}
	}
	return opened, nil
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
