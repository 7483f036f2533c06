package csiclient

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// Secrets are the values of a Secret object as calls take them: CSI knows text
// only. A call with anything else never leaves this process, and gRPC has that
// look like an answer that got lost, so who has such a value must not begin it.
func Secrets(data map[string][]byte) (map[string]string, error) {
	values := make(map[string]string, len(data))
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if !utf8.Valid(data[key]) {
			return nil, fmt.Errorf("the value of %q is no text in UTF-8, and CSI takes no other", key)
		}
		values[key] = string(data[key])
	}
	return values, nil
}
