package cim

import (
	"context"
	"errors"
	"time"
)

// HRESULTs of a provider that is out of reach for a moment, beside those in
// cim.go. Source: winerror.h.
const (
	rpcServerDied       = 0x80010007
	rpcServerDiedNotRun = 0x80010012
	rpcServerBusy       = 0x800706BB
	rpcCallFailed       = 0x800706BE
	rpcCallFailedNotRun = 0x800706BF
	defaultAttempts     = 4
	defaultFirstDelay   = 50 * time.Millisecond
	defaultLongestDelay = time.Second
	delayGrowth         = 2
)

// RetryPolicy bounds how often and how slowly a call is repeated. The zero
// value is four attempts, 50 ms apart at first and doubling up to 1 s.
type RetryPolicy struct {
	Attempts     int           // calls in all; 1 means no repetition
	FirstDelay   time.Duration // before the second call
	LongestDelay time.Duration
}

// Transient reports whether err is a failure that passes by itself: WMI busy,
// restarting, or its provider timed out.
func Transient(err error) bool {
	code, ok := hresult(err)
	if !ok {
		return false
	}
	switch code {
	case ShuttingDown, ProviderTimedOut, TransportFailure, RPCDisconnected, rpcServerDied, rpcCallFailed:
		return true
	}
	return notRun(code)
}

// NotRun reports whether err says that the call never reached the provider, so
// that repeating it cannot do anything twice.
func NotRun(err error) bool {
	code, ok := hresult(err)
	return ok && notRun(code)
}

func notRun(code uint32) bool {
	switch code {
	case ServerTooBusy, RPCServerUnvail, rpcServerBusy, rpcCallFailedNotRun, rpcServerDiedNotRun:
		return true
	}
	return false
}

func hresult(err error) (code uint32, ok bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.HRESULT, true
	}
	return 0, false
}

// Retrying returns a session that repeats what fails for a moment: queries
// after every transient failure, methods only when they did not run. It honours
// the context while it waits.
func Retrying(s Session, policy RetryPolicy) Session {
	if policy.Attempts == 0 {
		policy.Attempts = defaultAttempts
	}
	if policy.FirstDelay == 0 {
		policy.FirstDelay = defaultFirstDelay
	}
	if policy.LongestDelay == 0 {
		policy.LongestDelay = defaultLongestDelay
	}
	return &retrying{Session: s, policy: policy}
}

type retrying struct {
	Session
	policy RetryPolicy
}

func (r *retrying) Query(ctx context.Context, namespace, wql string) (rows []Instance, err error) {
	err = r.repeat(ctx, Transient, func() error {
		rows, err = r.Session.Query(ctx, namespace, wql)
		return err
	})
	return rows, err
}

func (r *retrying) Exec(ctx context.Context, namespace, path, method string, in Values) (result Result, err error) {
	err = r.repeat(ctx, NotRun, func() error {
		result, err = r.Session.Exec(ctx, namespace, path, method, in)
		return err
	})
	return result, err
}

// repeat calls until success, a final failure or the last attempt. When the
// context ends while it waits, the failure of the last call is returned: it
// says more than the context does.
func (r *retrying) repeat(ctx context.Context, again func(error) bool, call func() error) error {
	delay := r.policy.FirstDelay
	for attempt := 1; ; attempt++ {
		err := call()
		if err == nil || attempt >= r.policy.Attempts || !again(err) {
			return err
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
		delay = min(delay*delayGrowth, r.policy.LongestDelay)
	}
}

// isConnectionLoss reports whether an HRESULT is one of COM's or RPC's own, after
// which the connection is of no use: RPC_E_…, CO_E_… and RPC_S_…. Source: winerror.h.
func isConnectionLoss(code uint32) bool {
	const (
		rpcE      = 0x8001_0000
		comOwn    = 0x8004_0000 // up to 0x80040FFF; WBEM_E_… begin above
		rpcSFirst = 0x8007_0000 + 1700
		rpcSLast  = 0x8007_0000 + 1999
	)
	return code&0xFFFF_0000 == rpcE || code&0xFFFF_F000 == comOwn || rpcSFirst <= code && code <= rpcSLast || code == TransportFailure
}
