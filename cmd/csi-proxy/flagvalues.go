package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/wire"
)

// apiValue is a list of API versions: disk/v1, or volume/* for a whole group.
type apiValue struct{ apis *[]wire.API }

// String prints the APIs as they are given.
func (v apiValue) String() string {
	if v.apis == nil {
		return ""
	}
	var texts []string
	for _, api := range *v.apis {
		texts = append(texts, api.String())
	}
	return strings.Join(texts, ",")
}

// Set adds one or several items, keeping each API once.
func (v apiValue) Set(value string) error {
	for text := range strings.SplitSeq(value, ",") {
		apis, err := wire.ParseAPIs(strings.TrimSuffix(text, "/*"))
		if err != nil {
			return fmt.Errorf("%w; want a group or GROUP/VERSION, groups are %s", err, strings.Join(wire.Groups(), ", "))
		}
		for _, api := range apis {
			if !slices.Contains(*v.apis, api) {
				*v.apis = append(*v.apis, api)
			}
		}
	}
	return nil
}

// driveValue maps drive letters onto folders of the machine, `C=/srv/node`.
type driveValue map[byte]string

// String prints the drives in no special order.
func (v driveValue) String() string {
	var drives []string
	for letter, folder := range v {
		drives = append(drives, string(letter)+"="+folder)
	}
	slices.Sort(drives)
	return strings.Join(drives, ",")
}

// Set adds one drive.
func (v driveValue) Set(value string) error {
	name, folder, found := strings.Cut(value, "=")
	name = strings.ToUpper(strings.TrimSuffix(name, ":"))
	if !found || len(name) != 1 || name[0] < 'A' || name[0] > 'Z' {
		return errors.New("want LETTER=FOLDER with a letter from A to Z")
	}
	if !filepath.IsAbs(folder) {
		return fmt.Errorf("folder %q is not an absolute path", folder)
	}
	if _, twice := v[name[0]]; twice {
		return fmt.Errorf("drive %s is given twice", name)
	}
	v[name[0]] = folder
	return nil
}

// countValue is a number between two limits, both included.
type countValue struct {
	count    *int
	min, max int
}

// String prints the number.
func (v countValue) String() string {
	if v.count == nil {
		return ""
	}
	return strconv.Itoa(*v.count)
}

// Set parses and checks the number.
func (v countValue) Set(value string) error {
	count, err := strconv.Atoi(value)
	if err != nil || count < v.min || count > v.max {
		return fmt.Errorf("must be a number from %d to %d", v.min, v.max)
	}
	*v.count = count
	return nil
}
