// Package rules checks requests against what CSI says of their fields: which are
// required, how large they may be, and what they may hold. The table is made from
// the comments of csi.proto, the only place where CSI says it.
package rules

//go:generate go -C ../../../tools run ./csirules -out ../csikit/internal/rules/table.go

import (
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Sizes of fields whose comment names no other.
//
// Source: CSI spec.md, Size Limits. For a path CSI leaves the limit to the system:
// Windows has 32,767 UTF-16 units (Maximum Path Length Limitation), each of at
// most three bytes.
const (
	StringBytesMax = 128
	MapBytesMax    = 4 << 10
	PathBytesMax   = 3 * 32767
)

// rule is what csi.proto says of one field. The general limits are not repeated.
type rule struct {
	name        string
	oneof       bool // the name is that of a oneof
	required    bool
	notNegative bool
	path        bool // as long as the system has it
	text        bool // a name for people: tabs and line ends are allowed
	maxBytes    int
	totalBytes  int // of all entries of a list
}

// Violation is a field that breaks a rule.
type Violation struct {
	Field   string // as in csi.proto, e.g. "volume_capabilities[0].access_mode"
	Problem string // e.g. "required" or "129 bytes, the limit is 128"
}

// Error names the field and the rule.
func (v *Violation) Error() string { return v.Field + ": " + v.Problem }

// Checker checks requests. It is safe for concurrent use.
type Checker struct {
	plans map[protoreflect.FullName]*plan
}

// New makes a Checker of the table. mapBytesMax is the size of a map, keys and
// values together; 0 is that of CSI. It fails when the table does not fit the
// messages this program was built with.
func New(mapBytesMax int) (*Checker, error) {
	if mapBytesMax <= 0 {
		mapBytesMax = MapBytesMax
	}
	b := builder{rules: table(), mapBytesMax: mapBytesMax, plans: map[protoreflect.FullName]*plan{}}
	services := csi.File_csi_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			b.plan(methods.Get(j).Input())
		}
	}
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	return &Checker{plans: b.plans}, nil
}

// Check returns the first Violation of a request, or nil. A message that is no
// request of CSI has no rules.
func (c *Checker) Check(request proto.Message) *Violation {
	message := request.ProtoReflect()
	plan := c.plans[message.Descriptor().FullName()]
	if plan == nil {
		return nil
	}
	return plan.check(message)
}

// builder makes the plans of messages, each once.
type builder struct {
	rules       map[string][]rule
	mapBytesMax int
	plans       map[protoreflect.FullName]*plan
	errs        []error
}

func (b *builder) plan(message protoreflect.MessageDescriptor) *plan {
	name := message.FullName()
	if p := b.plans[name]; p != nil {
		return p
	}
	p := &plan{isRange: name == "csi.v1.CapacityRange"}
	b.plans[name] = p
	rules, known := b.rules[string(name)]
	if !known && message.ParentFile() == csi.File_csi_proto {
		b.errs = append(b.errs, fmt.Errorf("no rules for %s: the table is of another version of CSI", name))
	}
	byName := map[protoreflect.Name]rule{}
	for _, r := range rules {
		if !r.oneof {
			byName[protoreflect.Name(r.name)] = r
			continue
		}
		if oneof := message.Oneofs().ByName(protoreflect.Name(r.name)); oneof != nil {
			p.oneofs = append(p.oneofs, oneof)
		} else {
			b.errs = append(b.errs, fmt.Errorf("%s has no oneof %s", name, r.name))
		}
	}
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		if f, needed := b.field(field, byName[field.Name()]); needed {
			p.fields = append(p.fields, f)
		}
		delete(byName, field.Name())
	}
	for left := range byName {
		b.errs = append(b.errs, fmt.Errorf("%s has no field %s", name, left))
	}
	return p
}

// field joins the general limits with the rule of a field; needed is false when
// there is nothing to check.
func (b *builder) field(field protoreflect.FieldDescriptor, r rule) (f fieldPlan, needed bool) {
	f = fieldPlan{rule: r, field: field, name: string(field.Name()), maxBytes: StringBytesMax}
	switch {
	case r.path:
		f.maxBytes = PathBytesMax
	case r.totalBytes > 0:
		f.maxBytes = r.totalBytes
	case r.maxBytes > 0:
		f.maxBytes = r.maxBytes
	}
	switch {
	case field.IsMap():
		f.kind, f.maxBytes = mapKind, b.mapBytesMax
	case field.Kind() == protoreflect.MessageKind:
		f.kind, f.nested = messageKind, b.plan(field.Message())
	case field.Kind() == protoreflect.StringKind:
		f.kind = stringKind
	case field.Kind() == protoreflect.EnumKind:
		f.kind = enumKind
		return f, r.required
	default:
		f.kind = numberKind
		return f, r.notNegative
	}
	return f, true
}
