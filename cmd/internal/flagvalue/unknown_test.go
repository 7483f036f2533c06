package flagvalue_test

import (
	"errors"
	"flag"
	"io"
	"testing"

	"github.com/csi-windows/csi-windows/cmd/internal/flagvalue"
)

// parse is how package flag fails.
func parse(args ...string) error {
	fs := flag.NewFlagSet("p", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Int("count", 0, "")
	return fs.Parse(args)
}

func TestAnUnknownFlagIsToldWhereTheFlagsAre(t *testing.T) {
	for arg, want := range map[string]string{
		"-timeout":    "unknown flag -timeout; p -help lists the flags",
		"--time=1s":   "unknown flag -time; p -help lists the flags",
		"-count=many": `invalid value "many" for flag -count: parse error`,
	} {
		if err := flagvalue.WithHelp(parse(arg), "p -help"); err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %s", arg, err, want)
		}
	}
	if err := flagvalue.WithHelp(parse("-help"), "p -help"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-help: %v", err)
	}
	if err := flagvalue.WithHelp(nil, "p -help"); err != nil {
		t.Error(err)
	}
}
