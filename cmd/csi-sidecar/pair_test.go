package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/csi-windows/csi-windows/sidecar"
)

// half is a component that runs as it is told.
type half func(context.Context) error

func (half) Name() string                    { return "half" }
func (h half) Run(ctx context.Context) error { return h(ctx) }

// A driver that cannot tell its capacity has its volumes made nevertheless; whatever
// else ends one half ends the other.
func TestHalfOfAPairRests(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		name  string
		other error
		want  error
	}{
		{"nothing to do", fmt.Errorf("half: %w", sidecar.ErrNothingToDo), nil},
		{"broken", broken, broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := false
			volumes := half(func(running context.Context) error {
				if test.want == nil {
					cancel() // it was told to end, and by nothing else
				}
				<-running.Done()
				ended = ctx.Err() == nil
				return nil
			})
			other := half(func(context.Context) error { return test.other })
			if err := (pair{volumes, other, slog.New(slog.DiscardHandler)}).Run(ctx); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if ended != (test.want != nil) {
				t.Errorf("the other half ended it: %v", ended)
			}
		})
	}
}
