package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// faults say how often and in which order changes go wrong.
type faults struct {
	seed uint64
	rate float64
}

type chance struct {
	mu   sync.Mutex
	rand *rand.Rand
	rate float64
}

func newChance(f faults) *chance {
	return &chance{rand: rand.New(rand.NewPCG(f.seed, 1)), rate: f.rate}
}

// kinds of faults: the work is done or not, and the answer is lost or an error.
type fault int

const (
	none         fault = iota
	lostBefore         // nothing was done, and the caller waits until it gives up
	lostAfter          // the work was done, and the caller waits until it gives up
	unavailable        // nothing was done, and the caller is told at once
	brokenAfter        // the work was done, and the connection breaks
	final              // nothing was done, for sure
	numberFaults = iota
)

func (c *chance) next() fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rand.Float64() >= c.rate {
		return none
	}
	return fault(1 + c.rand.IntN(numberFaults-1))
}

// intercept writes every call down, takes the time of a change, and lets it go wrong.
func (d *driver) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
	answer, err := d.withFaults(ctx, method, request, func() (any, error) { return handle(ctx, request) })
	if err == nil && isChange(method) {
		err = wait(ctx, d.answerDelay)
	}
	d.backend.record(method, request, err)
	return answer, err
}

func (d *driver) withFaults(ctx context.Context, method string, request any, work func() (any, error)) (any, error) {
	if !isChange(method) {
		return work()
	}
	if err := wait(ctx, d.delay); err != nil {
		return nil, err
	}
	switch d.chance.next() {
	case lostBefore:
		<-ctx.Done()
		return nil, status.Error(codes.DeadlineExceeded, "the request was lost")
	case lostAfter:
		if _, err := work(); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, status.Error(codes.DeadlineExceeded, "the answer was lost")
	case unavailable:
		return nil, status.Error(codes.Unavailable, "the back-end is not there")
	case brokenAfter:
		if _, err := work(); err != nil {
			return nil, err
		}
		return nil, status.Error(codes.Unavailable, "the connection broke")
	case final:
		if d.isMade(request) {
			return work() // a final answer would say that there is none
		}
		return nil, status.Error(codes.Internal, "the back-end refused")
	default:
		return work()
	}
}

// isMade reports whether an earlier call made what is to be made.
func (d *driver) isMade(request any) (made bool) {
	named, ok := request.(interface{ GetName() string })
	if !ok {
		return false
	}
	_ = d.backend.look(func(s *state) error {
		for _, v := range s.Volumes {
			made = made || v.Name == named.GetName()
		}
		for _, one := range s.Snapshots {
			made = made || one.Name == named.GetName()
		}
		for _, name := range s.Groups {
			made = made || name == named.GetName()
		}
		return nil
	})
	return made
}

func wait(ctx context.Context, delay time.Duration) error {
	select {
	case <-time.After(delay):
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func isChange(method string) bool {
	for _, verb := range []string{"Create", "Delete", "ControllerPublish", "ControllerUnpublish", "ControllerExpand", "ControllerModify"} {
		if strings.HasPrefix(method, verb) {
			return true
		}
	}
	return false
}

// record is one line of the file of calls.
type record struct {
	Method  string `json:"method"`
	Request any    `json:"request"`
	Code    string `json:"code"`
}

func (b *backend) record(method string, request any, err error) {
	line, _ := json.Marshal(record{method, request, status.Code(err).String()})
	b.logMu.Lock()
	defer b.logMu.Unlock()
	_, _ = b.calls.Write(append(line, '\n'))
}
