package wire

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

//go:generate go run ./internal/apidoc -contracts ../host,../node -out ../docs/api

// Description is what one method of one version looks like on the wire, for
// documents and tests.
type Description struct {
	API API
	// Path is what travels, e.g. "/v1beta2.Disk/SetAttachState".
	Path string
	// Op is the canonical name of what the method does: the newest version's.
	Op string
	// Request and Response are the fields, e.g. "uint32 disk_number = 1". Secrets
	// are marked.
	Request, Response []string
	// Messages are the messages in request and response, in the order in which they
	// are met.
	Messages []Message
	// OldRequest and OldResponse say that the bytes differ from the newest version's.
	OldRequest, OldResponse bool
}

// Message is a message within others.
type Message struct {
	Name   string
	Fields []string
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
				Request: fields(descriptorOf(m.newRequest)), OldRequest: m.request != nil,
				Response: fields(descriptorOf(m.newResponse)), OldResponse: m.response != nil,
				Messages: messagesIn(descriptorOf(m.newResponse), messagesIn(descriptorOf(m.newRequest), nil)),
			})
		}
	}
	return all
}

func descriptorOf(create func() proto.Message) protoreflect.MessageDescriptor {
	return create().ProtoReflect().Descriptor()
}

// messagesIn adds the messages within a message to those found before.
func messagesIn(m protoreflect.MessageDescriptor, found []Message) []Message {
	for _, f := range sortedFields(m) {
		if f.IsMap() {
			f = f.MapValue()
		}
		inner := f.Message()
		if inner == nil || slices.ContainsFunc(found, func(m Message) bool { return m.Name == string(inner.Name()) }) {
			continue
		}
		found = messagesIn(inner, append(found, Message{string(inner.Name()), fields(inner)}))
	}
	return found
}

// fields prints the fields of a message, in the order of their numbers.
func fields(m protoreflect.MessageDescriptor) []string {
	var texts []string
	for _, f := range sortedFields(m) {
		text := fmt.Sprintf("%s %s = %d", typeName(f), f.Name(), f.Number())
		if isSecret(f) {
			text += " (secret)"
		}
		texts = append(texts, text)
	}
	return texts
}

func sortedFields(m protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	declared := m.Fields()
	sorted := make([]protoreflect.FieldDescriptor, declared.Len())
	for i := range sorted {
		sorted[i] = declared.Get(i)
	}
	slices.SortFunc(sorted, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	return sorted
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
