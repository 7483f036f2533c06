package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/host"
)

func newTestReport() (*report, *bytes.Buffer) {
	var out bytes.Buffer
	return &report{out: &out, version: func(string) string { return "v1" }}, &out
}

func TestReportCountsWhatIsNotAsItShouldBe(t *testing.T) {
	t.Parallel()
	refusal := &host.Error{Op: "FormatVolume", Kind: host.KindPrecondition, Cause: errors.New("it holds data")}
	fine := func(context.Context) error { return nil }
	harm := func(context.Context) error { return errors.New("the bytes have changed") }
	for name, test := range map[string]struct {
		err      error
		unharmed func(context.Context) error
		kinds    []host.Kind
		bad      int
		text     string
	}{
		"refused":                 {refusal, fine, []host.Kind{host.KindInvalid, host.KindPrecondition}, 0, "refused: precondition failed, it holds data"},
		"refused, but harmed":     {refusal, harm, []host.Kind{host.KindPrecondition}, 1, "DAMAGE: the bytes have changed"},
		"failed otherwise":        {&host.Error{Kind: host.KindUnavailable}, fine, []host.Kind{host.KindPrecondition}, 1, "not refused but failed"},
		"succeeded":               {nil, fine, []host.Kind{host.KindPrecondition}, 1, "the call succeeded"},
		"succeeded as it may":     {nil, fine, nil, 0, "harmless"},
		"failed where it may not": {refusal, fine, nil, 1, "not refused but failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, out := newTestReport()
			r.refuse(t.Context(), step{"Try", "volume", "FormatVolume"}, func(context.Context) error { return test.err }, test.unharmed, test.kinds...)
			if r.bad != test.bad || !strings.Contains(out.String(), test.text) {
				t.Errorf("%d bad lines and %q, want %d and %q", r.bad, out, test.bad, test.text)
			}
		})
	}
}

func TestReportStep(t *testing.T) {
	t.Parallel()
	r, out := newTestReport()
	if !r.do(t.Context(), step{"Go", "disk", "Rescan"}, func(context.Context) (string, error) { return "", nil }) {
		t.Error("a good step is reported as bad")
	}
	if r.do(t.Context(), step{"Go", "disk", "Rescan"}, func(context.Context) (string, error) { return "", errors.New("no") }) {
		t.Error("a bad step is reported as good")
	}
	if r.lines != 2 || r.bad != 1 || !strings.Contains(out.String(), "disk/v1") || !strings.Contains(out.String(), "FAILED: no") {
		t.Errorf("%d lines, %d bad:\n%s", r.lines, r.bad, out)
	}
}
