package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// phrase is what the specification says, and what it means here. Nothing is left
// of a comment that is understood but words without meaning for a check.
type phrase struct {
	text    string
	meaning string // a line of the rule; empty when it means nothing for a request
}

// phrases are tried in this order; each is taken out of the comment.
func phrases() []phrase {
	const path = "This field overrides the general CSI size limit. SP SHOULD support the maximum path length allowed by the operating " +
		"system/filesystem, but, at a minimum, SP MUST accept a max path length of at least 128 bytes."
	return []phrase{
		{path, "path: true"},
		{"This field overrides the general CSI size limit. The size of this field SHALL NOT exceed 256 bytes.", "maxBytes: 256"},
		// Who returns an id of 256 bytes gets it back.
		{"match the node ID returned by `NodeGetInfo`", "maxBytes: 256"},
		{"The total size of this repeated field SHALL NOT exceed 4 KiB.", "totalBytes: 4096"},
		{"except those containing the following banned characters: U+0000-U+0008, U+000B, U+000C, U+000E-U+001F, U+007F-U+009F.", "text: true"},
		{"Any Unicode string that conforms to the length limit is allowed", ""},
		{"The value of this field MUST NOT be negative.", "notNegative: true"},
		{"The general CSI size limit, 128 byte, is RECOMMENDED for best backwards compatibility.", ""},
		{"One of the following fields MUST be specified.", "required: true"},
		{"This field is REQUIRED", "required: true"},
		{"This is a REQUIRED field", "required: true"},
		{"Plugin is REQUIRED to support creating", ""},
		// Sizes of what is answered, of storage, and of pages.
		{"the Plugin MUST NOT return more entries than this number", ""},
		{"if non-zero it specifies the maximum number of tuples to be returned", "notNegative: true"},
		{"the zero based starting byte position", "notNegative: true"},
		{"(S < B0.byte_offset + B0.size_bytes) must be true", ""},
		{"the maximum capacity to which the volume can be expanded", ""},
		{"MAY expand the volume to its maximum capacity", ""},
		{"inspect the file system of the volume to determine the maximum capacity", ""},
	}
}

// leftovers are words that make a rule; one that is left is a rule nobody knows.
var leftovers = []string{"REQUIRED", "size limit", "SHALL NOT exceed", "bytes", "KiB", "characters or less", "banned", "maximum", "MUST NOT be negative", "fields MUST be specified"}

// meanings reads a comment.
func meanings(d protoreflect.Descriptor) ([]string, error) {
	said := comment(d)
	var found []string
	for _, p := range phrases() {
		if strings.Contains(said, p.text) {
			said = strings.ReplaceAll(said, p.text, "")
			if p.meaning != "" {
				found = append(found, p.meaning)
			}
		}
	}
	for _, word := range leftovers {
		if strings.Contains(said, word) {
			return nil, fmt.Errorf("%s: %q is not understood in: %s", d.FullName(), word, said)
		}
	}
	return found, nil
}

// oneofLine is the rule of a oneof of which one field has to be set.
func oneofLine(oneof protoreflect.OneofDescriptor) ([]string, error) {
	found, err := meanings(oneof)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("name: %q, oneof: true, %s", oneof.Name(), strings.Join(found, ", "))}, nil
}

// fieldLine is the rule of a field, or none when it has no rule but the general ones.
func fieldLine(field protoreflect.FieldDescriptor) ([]string, error) {
	found, err := meanings(field)
	if err != nil {
		return nil, err
	}
	var kept []string
	for _, meaning := range found {
		if meaning == "required: true" && !canBeMissing(field) {
			continue
		}
		kept = append(kept, meaning)
	}
	if len(kept) == 0 {
		return nil, nil
	}
	return []string{fmt.Sprintf("name: %q, %s", field.Name(), strings.Join(kept, ", "))}, nil
}

// canBeMissing reports whether a missing value differs from one that was meant.
// Numbers and bools of proto3 have no presence. The lists of snapshots in calls on
// a group are the specification's own exception: they are for plugins that cannot
// know the group without them, and csi-sanity leaves them out.
func canBeMissing(field protoreflect.FieldDescriptor) bool {
	if strings.Contains(comment(field), "If SP does not need to rely on this field") {
		return false
	}
	switch field.Kind() {
	case protoreflect.StringKind, protoreflect.MessageKind, protoreflect.EnumKind:
		return true
	default:
		return field.IsList() || field.IsMap()
	}
}
