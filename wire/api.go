package wire

import (
	"fmt"
	"slices"
	"strings"
)

// The API groups.
const (
	GroupDisk       = "disk"
	GroupVolume     = "volume"
	GroupFilesystem = "filesystem"
	GroupSMB        = "smb"
	GroupISCSI      = "iscsi"
	GroupSystem     = "system"
	// GroupExtension is our own group; see docs/decisions/0001-extension-group.md.
	GroupExtension = "extension"
	// GroupNode is our own too: the tasks of package node, one call for each node
	// call of CSI; see docs/decisions/0009-node-tasks-beside-the-primitives.md.
	GroupNode = "node"
)

// API is one group in one version: what one pipe serves.
type API struct {
	Group   string
	Version string
}

// String returns "<group>/<version>".
func (a API) String() string { return a.Group + "/" + a.Version }

// ParseAPIs reads a text such as "disk/v1": a group and a version, or a group alone for
// all its versions. The result is in table order; what the table does not hold is
// an error.
func ParseAPIs(text string) ([]API, error) {
	group, version, one := strings.Cut(text, "/")
	var found []API
	for _, api := range APIs() {
		if api.Group == group && (!one || api.Version == version) {
			found = append(found, api)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no such API: %q", text)
	}
	return found, nil
}

// APIs returns every API of the table: groups in a fixed order, each from its
// oldest to its newest version.
func APIs() []API {
	var apis []API
	for _, v := range table() {
		apis = append(apis, v.api)
	}
	return apis
}

// Groups returns the groups in the order of the table.
func Groups() []string {
	var groups []string
	for _, api := range APIs() {
		if !slices.Contains(groups, api.Group) {
			groups = append(groups, api.Group)
		}
	}
	return groups
}
