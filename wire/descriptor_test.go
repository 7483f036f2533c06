package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	_ "github.com/csi-windows/csi-windows/test/upstream" // links csi-proxy's descriptors
	"github.com/csi-windows/csi-windows/wire"
)

// serviceOf finds csi-proxy's descriptor of a service.
func serviceOf(t *testing.T, row wire.Row) protoreflect.ServiceDescriptor {
	t.Helper()
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(row.Service))
	if err != nil {
		t.Fatalf("csi-proxy has no service %s: %v", row.Service, err)
	}
	return descriptor.(protoreflect.ServiceDescriptor)
}

// upstreamRows are the rows of the table that csi-proxy has too.
func upstreamRows() []wire.Row {
	var rows []wire.Row
	for _, row := range wire.Rows() {
		if row.API.Group != wire.GroupExtension && row.API.Group != wire.GroupNode {
			rows = append(rows, row)
		}
	}
	return rows
}

// The table holds every method that csi-proxy's descriptors hold, and no other.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	ours := map[string]bool{}
	for _, row := range upstreamRows() {
		ours[row.Service+"/"+row.Name] = true
	}
	theirs, services := map[string]bool{}, 0
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if !strings.HasSuffix(file.Path(), "/api.proto") {
			return true
		}
		for i := range file.Services().Len() {
			services++
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				theirs[string(service.FullName())+"/"+string(service.Methods().Get(j).Name())] = true
			}
		}
		return true
	})
	if services != 23 || len(theirs) != 139 {
		t.Fatalf("csi-proxy's descriptors hold %d services and %d methods, want 23 and 139", services, len(theirs))
	}
	for name := range theirs {
		if !ours[name] {
			t.Errorf("%s is missing in the table", name)
		}
	}
	for name := range ours {
		if !theirs[name] {
			t.Errorf("%s does not exist in csi-proxy", name)
		}
	}
}

// ignored are the fields of csi-proxy that are read as unknown, or never set, on
// purpose: contexts without effect, and error texts that stay empty.
var ignored = map[string]bool{
	"PathExistsRequest.context": true, "MkdirRequest.context": true,
	"MkdirResponse.error": true, "RmdirResponse.error": true, "LinkPathResponse.error": true,
	"NewSmbGlobalMappingResponse.error": true, "RemoveSmbGlobalMappingResponse.error": true,
}

// sameVarint are the fields whose types differ but whose bytes do not.
var sameVarint = map[string]bool{"VolumeDiskNumberResponse.diskNumber": true}

// mismatch compares two messages by what travels: numbers, types, nesting. It
// returns the first difference that is not listed above.
func mismatch(theirs, ours protoreflect.MessageDescriptor) string {
	for i := range theirs.Fields().Len() {
		their := theirs.Fields().Get(i)
		name := string(theirs.Name()) + "." + string(their.Name())
		our := ours.Fields().ByNumber(their.Number())
		switch {
		case ignored[name]:
			if our != nil {
				return name + " is listed as ignored and is declared"
			}
			continue
		case our == nil:
			return name + " is not declared"
		case sameVarint[name]:
			if our.Kind() != protoreflect.Uint32Kind || their.Kind() != protoreflect.Int64Kind {
				return name + " is listed as one varint and is not"
			}
			continue
		}
		if diff := fieldMismatch(name, their, our); diff != "" {
			return diff
		}
	}
	for i := range ours.Fields().Len() {
		if our := ours.Fields().Get(i); theirs.Fields().ByNumber(our.Number()) == nil {
			return fmt.Sprintf("%s has no field %d, %s has", theirs.FullName(), our.Number(), ours.FullName())
		}
	}
	return ""
}

func fieldMismatch(name string, their, our protoreflect.FieldDescriptor) string {
	switch {
	case their.Kind() != our.Kind(), their.Cardinality() != our.Cardinality(), their.IsMap() != our.IsMap():
		return fmt.Sprintf("%s is %v %v, ours is %v %v", name, their.Cardinality(), their.Kind(), our.Cardinality(), our.Kind())
	case their.Message() != nil:
		return mismatch(their.Message(), our.Message())
	case their.Enum() != nil:
		return enumMismatch(their.Enum(), our.Enum())
	default:
		return ""
	}
}

func enumMismatch(theirs, ours protoreflect.EnumDescriptor) string {
	if theirs.Values().Len() != ours.Values().Len() {
		return fmt.Sprintf("%s has %d values, ours has %d", theirs.FullName(), theirs.Values().Len(), ours.Values().Len())
	}
	for i := range theirs.Values().Len() {
		their := theirs.Values().Get(i)
		if our := ours.Values().ByNumber(their.Number()); our == nil || our.Name() != their.Name() {
			return fmt.Sprintf("%s = %d is not ours", their.FullName(), their.Number())
		}
	}
	return ""
}

// Every method's messages are csi-proxy's, byte for byte; where the table names a
// shape, the newest message really differs.
func TestMessagesAreThoseOfCsiProxy(t *testing.T) {
	t.Parallel()
	for _, row := range upstreamRows() {
		method := serviceOf(t, row).Methods().ByName(protoreflect.Name(row.Name))
		if method == nil {
			t.Errorf("%s has no method %s", row.Service, row.Name)
			continue
		}
		for _, side := range []struct {
			name         string
			theirs       protoreflect.MessageDescriptor
			ours, newest proto.Message
			old          bool
		}{
			{"request", method.Input(), row.Request(), row.NewestRequest(), row.OldRequest},
			{"response", method.Output(), row.Response(), row.NewestResponse(), row.OldResponse},
		} {
			name := row.API.String() + " " + row.Name + " " + side.name
			if diff := mismatch(side.theirs, side.ours.ProtoReflect().Descriptor()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if side.old && mismatch(side.theirs, side.newest.ProtoReflect().Descriptor()) == "" {
				t.Errorf("%s has a shape without need", name)
			}
			checkSameBytes(t, name, side.theirs, side.ours)
		}
	}
}

// checkSameBytes fills csi-proxy's message, reads it as ours, writes it again, and
// wants the same bytes but for the ignored fields.
func checkSameBytes(t *testing.T, name string, theirs protoreflect.MessageDescriptor, ours proto.Message) {
	t.Helper()
	filled := dynamicpb.NewMessage(theirs)
	fill(filled, func(f protoreflect.FieldDescriptor) bool {
		return !ignored[string(f.Parent().Name())+"."+string(f.Name())]
	})
	options := proto.MarshalOptions{Deterministic: true}
	sent, err := options.Marshal(filled)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := proto.Unmarshal(sent, ours); err != nil {
		t.Errorf("%s: read as ours: %v", name, err)
		return
	}
	if unread := ours.ProtoReflect().GetUnknown(); len(unread) > 0 {
		t.Errorf("%s: unread bytes %x", name, unread)
	}
	written, err := options.Marshal(ours)
	if err != nil || string(written) != string(sent) {
		t.Errorf("%s: sent %x, written again %x (%v)", name, sent, written, err)
	}
}

// fill sets every wanted field to a value that is not its zero value.
func fill(m protoreflect.Message, want func(protoreflect.FieldDescriptor) bool) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case !want(field):
		case field.IsMap():
			key := sample(field.MapKey()).MapKey()
			value := m.Mutable(field).Map().NewValue()
			if field.MapValue().Message() != nil {
				fill(value.Message(), want)
			} else {
				value = sample(field.MapValue())
			}
			m.Mutable(field).Map().Set(key, value)
		case field.IsList() && field.Message() != nil:
			fill(m.Mutable(field).List().AppendMutable().Message(), want)
		case field.IsList():
			m.Mutable(field).List().Append(sample(field))
		case field.Message() != nil:
			fill(m.Mutable(field).Message(), want)
		default:
			m.Set(field, sample(field))
		}
	}
}

// sample returns a value of a scalar field. Numbers differ from field to field.
func sample(field protoreflect.FieldDescriptor) protoreflect.Value {
	n := 300 + int64(field.Number())
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprint(n))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	default:
		panic("a kind of field that csi-proxy does not use: " + field.Kind().String())
	}
}

// A known number with another wire type is refused; an unknown number is not.
func TestPairCheck(t *testing.T) {
	t.Parallel()
	for _, row := range wire.Rows() {
		fields := row.Request().ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			var wrong []byte
			if field.Kind() == protoreflect.StringKind || field.Kind() == protoreflect.MessageKind {
				wrong = protowire.AppendVarint(protowire.AppendTag(nil, field.Number(), protowire.VarintType), 1)
			} else {
				wrong = protowire.AppendString(protowire.AppendTag(nil, field.Number(), protowire.BytesType), "319")
			}
			if _, err := wire.DecodeRequest(row.API, row.Name, wrong); err == nil {
				t.Errorf("%s %s: field %s with a wrong wire type was accepted", row.API, row.Name, field.Name())
			}
		}
		later := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
		request := row.Request()
		if err := proto.Unmarshal(later, request); err != nil || wire.CheckPairing(request) != nil {
			t.Errorf("%s %s: a field of a later version was refused: %v", row.API, row.Name, err)
		}
	}
}
