package csiclient

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// IsFinal reports whether a call that ended with err is over for sure: the
// driver will not go on with it, and nothing has changed that it did not say.
// After any other error the work may be under way, and only the same call,
// made again, can tell how it ended.
func IsFinal(err error) bool {
	s, ok := status.FromError(err)
	if !ok {
		// Not the driver's word: the call may have reached it.
		return false
	}
	switch s.Code() {
	case codes.Canceled, // the sidecar gave up
		codes.DeadlineExceeded,  // the driver may go on
		codes.Unavailable,       // the connection broke, maybe after the call was taken
		codes.ResourceExhausted, // by CSI: may be rate limiting while the call is under way
		codes.Aborted:           // another call on the object is under way
		return false
	default:
		return true
	}
}
