package wire

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

//go:generate go run ./internal/apidoc -host ../host -out ../docs/api

// Description is what one method of one version looks like on the wire, for
// documents and tests.
type Description struct {
	API API
	// Path is what travels, e.g. "/v1beta2.Disk/SetAttachState".
	Path string
	// Op is the canonical name of what the method does: the newest version's.
	Op string
	// Request and Response are the fields, e.g. "uint32 disk_number = 1".
	Request, Response []string
	// OldRequest and OldResponse say that the bytes differ from the newest version's.
	OldRequest, OldResponse bool
}

// Name is the method's own name, the last part of Path.
func (d Description) Name() string { return d.Path[strings.LastIndexByte(d.Path, '/')+1:] }

// Describe returns every method of the table, in table order.
func Describe() []Description {
	var all []Description
	for _, v := range table() {
		for _, m := range v.methods {
			all = append(all, Description{
				API: v.api, Path: "/" + v.serviceName() + "/" + m.name, Op: m.op,
				Request: fields(m.request, m.job.newRequest), OldRequest: m.request != nil,
				Response: fields(m.response, m.job.newResponse), OldResponse: m.response != nil,
			})
		}
	}
	return all
}

// fields prints the fields of a message, in the order of their numbers.
func fields(old *shape, newest func() proto.Message) []string {
	create := newest
	if old != nil {
		create = old.new
	}
	declared := create().ProtoReflect().Descriptor().Fields()
	sorted := make([]protoreflect.FieldDescriptor, declared.Len())
	for i := range sorted {
		sorted[i] = declared.Get(i)
	}
	slices.SortFunc(sorted, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	texts := make([]string, len(sorted))
	for i, f := range sorted {
		texts[i] = fmt.Sprintf("%s %s = %d", typeName(f), f.Name(), f.Number())
	}
	return texts
}

// typeName writes a field's type as a .proto file does.
func typeName(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return "map<" + typeName(f.MapKey()) + ", " + typeName(f.MapValue()) + ">"
	case f.IsList():
		return "repeated " + elementName(f)
	default:
		return elementName(f)
	}
}

// elementName is the type of one value of a field.
func elementName(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return string(f.Message().Name())
	case protoreflect.EnumKind:
		return string(f.Enum().Name())
	default:
		return f.Kind().String()
	}
}
