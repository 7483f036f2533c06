package csikit

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// strippedRequest is a request for the log, without its secrets. It is made only
// when somebody writes it down.
type strippedRequest struct{ proto.Message }

// LogValue returns the fields of the request that are set.
func (r strippedRequest) LogValue() slog.Value {
	return slog.GroupValue(attrsOf(r.ProtoReflect(), secretsOf(r.Message))...)
}

func attrsOf(message protoreflect.Message, known secrets) []slog.Attr {
	var attrs []slog.Attr
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if message.Has(field) {
			attrs = append(attrs, attrOf(field, message.Get(field), known))
		}
	}
	return attrs
}

func attrOf(field protoreflect.FieldDescriptor, value protoreflect.Value, known secrets) slog.Attr {
	name, secret := string(field.Name()), isSecretField(field)
	switch {
	case field.IsMap():
		return slog.Attr{Key: name, Value: slog.GroupValue(mapAttrs(value.Map(), secret, known)...)}
	case field.IsList() && field.Kind() == protoreflect.MessageKind:
		var items []slog.Attr
		for i := range value.List().Len() {
			items = append(items, slog.Attr{Key: name, Value: slog.GroupValue(attrsOf(value.List().Get(i).Message(), known)...)})
		}
		return slog.Attr{Key: name, Value: slog.GroupValue(items...)}
	case field.IsList():
		var items []string
		for i := range value.List().Len() {
			items = append(items, known.text(value.List().Get(i).String(), secret))
		}
		return slog.String(name, strings.Join(items, ","))
	case field.Kind() == protoreflect.MessageKind:
		return slog.Attr{Key: name, Value: slog.GroupValue(attrsOf(value.Message(), known)...)}
	case field.Kind() == protoreflect.StringKind:
		return slog.String(name, known.text(value.String(), secret))
	case field.Kind() == protoreflect.EnumKind:
		if known := field.Enum().Values().ByNumber(value.Enum()); known != nil {
			return slog.String(name, string(known.Name()))
		}
		return slog.Int(name, int(value.Enum()))
	default:
		return slog.Any(name, value.Interface())
	}
}

func mapAttrs(m protoreflect.Map, secret bool, known secrets) []slog.Attr {
	entries := map[string]string{}
	m.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		entries[key.String()] = known.text(value.String(), secret || isSecretKey(key.String()))
		return true
	})
	var attrs []slog.Attr
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		attrs = append(attrs, slog.String(key, entries[key]))
	}
	return attrs
}

// text is a value for the log.
func (s secrets) text(value string, secret bool) string {
	if secret {
		return stripped
	}
	return s.scrub(value)
}
