package rules

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// plan is what is checked of one type of message.
type plan struct {
	fields  []fieldPlan
	oneofs  []protoreflect.OneofDescriptor // of which one field has to be set
	isRange bool                           // CapacityRange, whose two fields have to fit
}

type fieldKind uint8

const (
	stringKind fieldKind = iota
	mapKind
	messageKind
	enumKind
	numberKind
)

// fieldPlan is what is checked of one field.
type fieldPlan struct {
	rule
	name     string
	field    protoreflect.FieldDescriptor
	kind     fieldKind
	maxBytes int
	nested   *plan
}

func (p *plan) check(message protoreflect.Message) *Violation {
	for _, oneof := range p.oneofs {
		if message.WhichOneof(oneof) == nil {
			return &Violation{Field: string(oneof.Name()), Problem: "required"}
		}
	}
	for i := range p.fields {
		if v := p.fields[i].check(message); v != nil {
			return v
		}
	}
	if p.isRange {
		return checkRange(message)
	}
	return nil
}

// checkRange compares the two ends of a range of sizes; a limit of 0 is none.
func checkRange(message protoreflect.Message) *Violation {
	fields := message.Descriptor().Fields()
	required := message.Get(fields.ByName("required_bytes")).Int()
	limit := message.Get(fields.ByName("limit_bytes")).Int()
	if limit > 0 && limit < required {
		return &Violation{Field: "limit_bytes", Problem: fmt.Sprintf("%d is less than required_bytes, %d", limit, required)}
	}
	return nil
}

func (f *fieldPlan) check(message protoreflect.Message) *Violation {
	if f.field.IsList() {
		return f.checkList(message.Get(f.field).List())
	}
	switch f.kind {
	case stringKind:
		return f.checkString(message.Get(f.field).String(), f.required)
	case mapKind:
		return f.checkMap(message.Get(f.field).Map())
	case messageKind:
		if message.Has(f.field) {
			return within(f.name, f.nested.check(message.Get(f.field).Message()))
		}
		return f.missing(f.required)
	case enumKind:
		return f.missing(message.Get(f.field).Enum() == 0)
	default:
		if n := message.Get(f.field).Int(); n < 0 {
			return f.violation("%d is negative", n)
		}
	}
	return nil
}

func (f *fieldPlan) checkList(list protoreflect.List) *Violation {
	if list.Len() == 0 {
		return f.missing(f.required)
	}
	total := 0
	for i := range list.Len() {
		var v *Violation
		switch f.kind {
		case messageKind:
			v = f.nested.check(list.Get(i).Message())
			v = within(fmt.Sprintf("%s[%d]", f.name, i), v)
		case stringKind:
			text := list.Get(i).String()
			total += len(text)
			v = f.checkString(text, f.required)
			if v != nil {
				v.Field = fmt.Sprintf("%s[%d]", f.name, i)
			}
		}
		if v != nil {
			return v
		}
	}
	if f.totalBytes > 0 && total > f.totalBytes {
		return f.violation("%d bytes in all, the limit is %d", total, f.totalBytes)
	}
	return nil
}

func (f *fieldPlan) checkString(text string, required bool) *Violation {
	if text == "" {
		return f.missing(required)
	}
	if len(text) > f.maxBytes {
		return f.violation("%d bytes, the limit is %d", len(text), f.maxBytes)
	}
	if at := controlCharacter(text, f.text); at >= 0 {
		return f.violation("control character at byte %d", at)
	}
	return nil
}

func (f *fieldPlan) checkMap(m protoreflect.Map) *Violation {
	if m.Len() == 0 {
		return f.missing(f.required)
	}
	total := 0
	m.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		total += len(key.String()) + len(value.String())
		return true
	})
	if total > f.maxBytes {
		return f.violation("%d bytes of keys and values, the limit is %d", total, f.maxBytes)
	}
	return nil
}

func (f *fieldPlan) missing(isMissing bool) *Violation {
	if !isMissing || !f.required {
		return nil
	}
	return f.violation("required")
}

func (f *fieldPlan) violation(format string, args ...any) *Violation {
	return &Violation{Field: f.name, Problem: fmt.Sprintf(format, args...)}
}

// within puts the field of an outer message before that of an inner one.
func within(name string, v *Violation) *Violation {
	if v != nil {
		v.Field = name + "." + v.Field
	}
	return v
}

// IsPlain reports whether a text may be an id, a token or a path: what a driver answers
// comes back in a request, which would be refused if it were not.
func IsPlain(text string) bool { return utf8.ValidString(text) && controlCharacter(text, false) < 0 }

// controlCharacter returns where the first control character of a text is, or -1.
// Names may have the usual white space in them.
//
// Source: csi.proto, CreateVolumeRequest.name: U+0000-U+001F without tab, line feed
// and carriage return, and U+007F-U+009F, which begin with C2 in UTF-8.
func controlCharacter(text string, spaceAllowed bool) int {
	for i := range len(text) {
		switch c := text[i]; {
		case spaceAllowed && (c == '\t' || c == '\n' || c == '\r'):
		case c < 0x20 || c == 0x7f:
			return i
		case c == 0xc2 && i+1 < len(text) && text[i+1] < 0xa0:
			return i
		}
	}
	return -1
}
