package exit

import (
	"errors"
	"fmt"
	"testing"
)

func TestCode(t *testing.T) {
	cause := errors.New("no")
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"none":                      {nil, 0},
		"none with a code":          {With(5, nil), 0},
		"any":                       {cause, 1},
		"with a code":               {fmt.Errorf("serve: %w", With(5, cause)), 5},
		"the first of several":      {errors.Join(With(5, cause), With(8, cause)), 5},
		"usage":                     {fmt.Errorf("flags: %w", Usage(cause)), 2},
		"usage within another code": {With(5, Usage(cause)), 2},
	} {
		if got := Code(test.err); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
		if test.err != nil && !errors.Is(test.err, cause) {
			t.Errorf("%s: %v lost its cause", name, test.err)
		}
	}
}
