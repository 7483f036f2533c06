// Package flagvalue holds the flag values that more than one program has.
package flagvalue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// List is a flag that may be given several times. With Commas set, one
// value may hold several items.
type List struct {
	Items  *[]string
	Commas bool
}

// String prints the items as they are given.
func (v List) String() string {
	if v.Items == nil {
		return ""
	}
	return strings.Join(*v.Items, ",")
}

// Set adds one value.
func (v List) Set(value string) error {
	items := []string{value}
	if v.Commas {
		items = strings.Split(value, ",")
	}
	for _, item := range items {
		if item == "" {
			return errors.New("must not be empty")
		}
		if !slices.Contains(*v.Items, item) {
			*v.Items = append(*v.Items, item)
		}
	}
	return nil
}

// Duration is a duration between two limits, both included.
type Duration struct {
	Value    *time.Duration
	Min, Max time.Duration
}

// String prints the duration.
func (v Duration) String() string {
	if v.Value == nil {
		return ""
	}
	return v.Value.String()
}

// Set parses and checks the duration.
func (v Duration) Set(value string) error {
	d, err := time.ParseDuration(value)
	if err != nil {
		return fmt.Errorf("want a duration such as 30s, from %s to %s", v.Min, v.Max)
	}
	if d < v.Min || d > v.Max {
		return fmt.Errorf("must be from %s to %s", v.Min, v.Max)
	}
	*v.Value = d
	return nil
}
