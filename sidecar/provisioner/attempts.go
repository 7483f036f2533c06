package provisioner

import (
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A stage is how far the making of one claim's volume is.
type stage int

const (
	// stageIdle: for sure no volume is being made.
	stageIdle stage = iota
	// stageFound: an earlier leader's journal says that one may be.
	stageFound
	// stageOpen: the driver was asked, and its last answer was not final.
	stageOpen
	// stageMade: the volume is there and its object is to be saved.
	stageMade
)

// attempt is what this run knows of the making of one claim's volume.
type attempt struct {
	// busy is held while the driver is asked about the volume.
	busy sync.Mutex
	uid  types.UID

	mu       sync.Mutex
	stage    stage
	intent   *intent
	former   *intent // asked before in other words, and never answered; nil for none
	want     *wanted // nil when only the journal knows
	class    *storagev1.StorageClass
	created  time.Time // the claim's
	reported bool
}

func (a *attempt) state() (stage, *intent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stage, a.intent
}

// begin notes that the driver is about to be asked.
func (a *attempt) begin(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, what *wanted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stage != stageIdle && a.former == nil && a.intent != nil && !proto.Equal(a.intent.Request, what.request) {
		a.former = a.intent
	}
	a.stage, a.intent, a.want = stageOpen, newIntent(claim, what), what
	a.class, a.created = class, claim.CreationTimestamp.Time
}

// reopen puts what was asked before, in other words, in the place of what the driver
// refuses now: it may have made the volume all the same. It gives nil for none.
func (a *attempt) reopen() *intent {
	a.mu.Lock()
	defer a.mu.Unlock()
	former := a.former
	if former != nil {
		a.intent, a.want, a.former = former, nil, nil
	}
	return former
}

// find notes that an earlier leader's journal has the intent.
func (a *attempt) find(what *intent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stage, a.intent = stageFound, what
}

func (a *attempt) enter(s stage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stage = s
	if s == stageIdle {
		a.intent, a.former, a.want, a.class = nil, nil, nil, nil
	}
}

// report notes that an event told the user of the attempt, and says whether
// one had before.
func (a *attempt) report() (before bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, a.reported = a.reported, true
	return before
}

func (a *attempt) wasReported() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reported
}

// attempts are those of all claims.
type attempts struct {
	mu  sync.Mutex
	all map[types.UID]*attempt
}

// of gives the attempt of a claim; there is one for each claim that this run
// has worked on until the claim is gone.
func (s *attempts) of(uid types.UID) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.all[uid]
	if a == nil {
		a = &attempt{uid: uid}
		s.all[uid] = a
	}
	return a
}

// hold gives the attempt of a claim with busy locked.
func (s *attempts) hold(uid types.UID) *attempt {
	for {
		a := s.of(uid)
		a.busy.Lock()
		if s.known(uid) == a {
			return a
		}
		a.busy.Unlock() // it ended while we waited
	}
}

// known gives the attempt of a claim if there is one.
func (s *attempts) known(uid types.UID) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[uid]
}

// finish ends the attempt of a claim and says when the claim was made, if that
// is known, and whether an event told of it.
func (s *attempts) finish(uid types.UID) (created time.Time, reported bool) {
	a := s.known(uid)
	if a == nil {
		return time.Time{}, false
	}
	s.mu.Lock()
	delete(s.all, uid)
	s.mu.Unlock()
	a.enter(stageIdle)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.created, a.reported
}

// forget drops the attempt of a claim that is gone, and says whether it must
// be kept because a volume may be in the making. One that is held is kept as
// well: the driver may be about to be asked.
func (s *attempts) forget(uid types.UID) (kept bool) {
	a := s.known(uid)
	if a == nil {
		return false
	}
	if !a.busy.TryLock() {
		return true
	}
	defer a.busy.Unlock()
	return s.drop(a)
}

// drop is forget for an attempt that is held by the caller.
func (s *attempts) drop(a *attempt) (kept bool) {
	if now, _ := a.state(); now != stageIdle {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[a.uid] == a {
		delete(s.all, a.uid)
	}
	return false
}

// classInUse gives a class of which a volume is in the making.
func (s *attempts) classInUse(name string) *storagev1.StorageClass {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		a.mu.Lock()
		class := a.class
		a.mu.Unlock()
		if class != nil && class.Name == name {
			return class
		}
	}
	return nil
}

// fillFrom reports whether a volume that is filled from the one given may be in the
// making.
func (s *attempts) fillFrom(handle string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		now, what := a.state()
		if (now == stageOpen || now == stageFound) && what != nil && what.Request.GetVolumeContentSource().GetVolume().GetVolumeId() == handle {
			return true
		}
	}
	return false
}
