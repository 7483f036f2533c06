package rules

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// filled makes a message in which every field is set.
func filled(t testing.TB, name string) protoreflect.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatal(err)
	}
	message := kind.New()
	fill(message, 0)
	return message
}

func fill(message protoreflect.Message, depth int) {
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case depth > 5:
		case field.IsMap():
			message.Mutable(field).Map().Set(protoreflect.ValueOfString("k").MapKey(), protoreflect.ValueOfString("v"))
		case field.IsList() && field.Kind() == protoreflect.MessageKind:
			fill(message.Mutable(field).List().AppendMutable().Message(), depth+1)
		case field.IsList():
			message.Mutable(field).List().Append(protoreflect.ValueOfString("x"))
		case field.Kind() == protoreflect.MessageKind:
			fill(message.Mutable(field).Message(), depth+1)
		case field.Kind() == protoreflect.StringKind:
			message.Set(field, protoreflect.ValueOfString("x"))
		case field.Kind() == protoreflect.EnumKind:
			message.Set(field, protoreflect.ValueOfEnum(1))
		}
	}
}

// FuzzCheck checks requests of arbitrary bytes: none panics, and one that passes
// holds to the limits where a second, plain look sees them.
func FuzzCheck(f *testing.F) {
	checker := newChecker(f)
	for _, request := range []proto.Message{filled(f, "csi.v1.CreateVolumeRequest").Interface(), filled(f, "csi.v1.NodePublishVolumeRequest").Interface()} {
		bytes, err := proto.Marshal(request)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var publish csi.NodePublishVolumeRequest
		if proto.Unmarshal(bytes, &publish) == nil && checker.Check(&publish) == nil {
			id := publish.GetVolumeId()
			if id == "" || len(id) > 128 || !utf8.ValidString(id) || publish.GetTargetPath() == "" || publish.GetVolumeCapability() == nil {
				t.Errorf("passed: %v", &publish)
			}
			for _, r := range id + publish.GetTargetPath() + publish.GetStagingTargetPath() {
				if unicode.IsControl(r) {
					t.Errorf("passed: %q", r)
				}
			}
		}
		var create csi.CreateVolumeRequest
		if proto.Unmarshal(bytes, &create) == nil && checker.Check(&create) == nil {
			r := create.GetCapacityRange()
			if r.GetRequiredBytes() < 0 || r.GetLimitBytes() < 0 || r.GetLimitBytes() > 0 && r.GetLimitBytes() < r.GetRequiredBytes() {
				t.Errorf("passed: %v", r)
			}
		}
	})
}

// BenchmarkCheck is what the rules cost of a call of each size.
func BenchmarkCheck(b *testing.B) {
	checker := newChecker(b)
	for _, name := range []string{"csi.v1.ProbeRequest", "csi.v1.DeleteVolumeRequest", "csi.v1.NodePublishVolumeRequest", "csi.v1.CreateVolumeRequest"} {
		b.Run(name, func(b *testing.B) {
			request := filled(b, name).Interface()
			b.ReportAllocs()
			for b.Loop() {
				if v := checker.Check(request); v != nil {
					b.Fatal(v)
				}
			}
		})
	}
}
