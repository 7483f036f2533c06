package flagvalue

import (
	"fmt"
	"strings"
)

// unknownPrefix begins what package flag says of a flag that it does not know. It
// has no type for that.
const unknownPrefix = "flag provided but not defined: -"

// Unknown returns the name of the flag that a parse has failed for because there is
// none of that name.
func Unknown(err error) (name string, ok bool) {
	if err == nil {
		return "", false
	}
	return strings.CutPrefix(err.Error(), unknownPrefix)
}

// WithHelp is the error of a parse. Where the flag is not known it tells the command
// that lists those that are.
func WithHelp(err error, help string) error {
	if name, ok := Unknown(err); ok {
		return fmt.Errorf("unknown flag -%s; %s lists the flags", name, help)
	}
	return err
}
