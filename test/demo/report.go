package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/host"
)

// stepTime bounds one line of the table.
const stepTime = 15 * time.Second

// report runs steps, prints a line for each, and counts those that did not end
// as they should.
type report struct {
	out io.Writer
	// version tells which API version the client uses for a group.
	version func(group string) string
	lines   int
	bad     int
}

// step is one line: what the node plugin does, by which call of which API group.
type step struct {
	what  string
	group string // "" for what no API is called for
	call  string
}

// head prints a title and the column names.
func (r *report) head(title string) {
	fmt.Fprintf(r.out, "\n%s\n\n%-46s %-34s %-20s %9s  %s\n%s\n", title, "STEP", "CALL", "API", "TIME", "RESULT", strings.Repeat("-", 132))
}

// do runs a step that has to succeed. It returns false when it did not, so that
// the rest of a chain can be left out.
func (r *report) do(ctx context.Context, s step, call func(context.Context) (string, error)) bool {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	started := time.Now()
	result, err := call(ctx)
	took := time.Since(started)
	if err != nil {
		r.line(s, took, "FAILED: "+err.Error())
		r.bad++
		return false
	}
	r.line(s, took, cmp.Or(result, "done"))
	return true
}

// refuse runs an attempt to do damage. The call has to fail with one of the kinds
// (or may succeed harmlessly when there are none), and afterwards unharmed has to
// find everything as it was.
func (r *report) refuse(ctx context.Context, s step, call func(context.Context) error, unharmed func(context.Context) error, kinds ...host.Kind) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	started := time.Now()
	err := call(ctx)
	took := time.Since(started)
	verdict := judge(err, kinds)
	if harm := unharmed(ctx); harm != nil {
		verdict = errors.Join(verdict, fmt.Errorf("DAMAGE: %w", harm))
	}
	if verdict != nil {
		r.line(s, took, "FAILED: "+strings.ReplaceAll(verdict.Error(), "\n", "; "))
		r.bad++
		return
	}
	if err == nil {
		r.line(s, took, "harmless: nothing beyond the link was touched")
		return
	}
	r.line(s, took, "refused: "+reason(err))
}

// judge compares how an attempt ended with how it had to end.
func judge(err error, kinds []host.Kind) error {
	if err == nil {
		if len(kinds) == 0 {
			return nil
		}
		return errors.New("the call succeeded")
	}
	for _, kind := range kinds {
		if host.IsKind(err, kind) {
			return nil
		}
	}
	return fmt.Errorf("not refused but failed: %w", err)
}

// reason is why a call was refused, without the long path it was refused for.
func reason(err error) string {
	var e *host.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := e.Kind.String()
	if e.Cause != nil {
		text += ", " + e.Cause.Error()
	}
	return text
}

// line prints one line of the table.
func (r *report) line(s step, took time.Duration, result string) {
	r.lines++
	api := "-"
	if s.group != "" {
		api = s.group + "/" + r.version(s.group)
	}
	fmt.Fprintf(r.out, "%-46s %-34s %-20s %6.1f ms  %s\n", s.what, s.call, api, float64(took.Microseconds())/1000, result)
}
