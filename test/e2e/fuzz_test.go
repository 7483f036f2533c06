package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/test/upstream"
)

// stringField is one string field of one request of one version, and the request
// without it.
type stringField struct {
	upstream.Case
	path    []protoreflect.FieldDescriptor // from the request down to the field
	service string
	rest    []byte
}

func (f stringField) String() string {
	names := make([]string, len(f.path))
	for i, step := range f.path {
		names[i] = string(step.Name())
	}
	return f.Name() + " " + strings.Join(names, ".")
}

// request is the request with a value in the field. A value that is no text can be
// put there only by hand: no protobuf library writes it.
func (f stringField) request(value string) []byte {
	field := []byte(value)
	for i := len(f.path) - 1; i >= 0; i-- {
		tag := protowire.AppendTag(nil, f.path[i].Number(), protowire.BytesType)
		field = protowire.AppendBytes(tag, field)
	}
	// Of a field that comes twice the last counts, and of a message the two are merged.
	return append(f.rest[:len(f.rest):len(f.rest)], field...)
}

// serviceName is the name of an API's service on the wire.
func serviceName(group, version string) string {
	return version + "." + strings.ToUpper(group[:1]) + group[1:]
}

// stringFields are all string fields of all requests of all versions.
func stringFields(words *strings.Replacer) ([]stringField, error) {
	var fields []stringField
	for _, c := range upstream.Cases() {
		service := serviceName(c.Group, c.Version)
		descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
		if err != nil {
			return nil, err
		}
		method := descriptor.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(c.Method))
		for _, path := range stringPaths(method.Input()) {
			request := dynamicpb.NewMessage(method.Input())
			if err := protojson.Unmarshal([]byte(words.Replace(c.Request)), request); err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name(), err)
			}
			holder := request.ProtoReflect()
			for _, step := range path[:len(path)-1] {
				holder = holder.Mutable(step).Message()
			}
			holder.Clear(path[len(path)-1])
			rest, err := proto.Marshal(request)
			if err != nil {
				return nil, err
			}
			fields = append(fields, stringField{c, path, service, rest})
		}
	}
	return fields, nil
}

// stringPaths are the ways to the string fields of a message and those below it.
func stringPaths(message protoreflect.MessageDescriptor) (paths [][]protoreflect.FieldDescriptor) {
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		switch field.Kind() {
		case protoreflect.StringKind:
			paths = append(paths, []protoreflect.FieldDescriptor{field})
		case protoreflect.MessageKind:
			for _, below := range stringPaths(field.Message()) {
				paths = append(paths, append([]protoreflect.FieldDescriptor{field}, below...))
			}
		}
	}
	return paths
}

// rawBytes passes requests as they are.
type rawBytes struct{}

func (rawBytes) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (rawBytes) Unmarshal([]byte, any) error   { return nil }
func (rawBytes) Name() string                  { return "proto" }

// victim is a stack on which every request of the upstream table has something to
// work on, and the string fields of those requests.
func victim(t testing.TB) (*stack.Stack, []stringField) {
	t.Helper()
	s := stack.New(t)
	s.Canaries()
	ctx := context.Background()
	disk, id := s.Mounted(mountPath)
	words := append(volumeWords(disk, id), targets(s)...)
	s.OK(s.OS.AddTargetPortal(ctx, portalOf()))
	s.Share(`dom\u`, `p'w"d`)
	s.OK(s.Node.SetService(ctx, sim.Service{Name: "MSiSCSI", StartType: 2, State: serviceRunning}))
	fields, err := stringFields(strings.NewReplacer(words...))
	s.OK(err)
	if len(fields) != 150 {
		t.Fatalf("%d string fields; csi-proxy's requests have 150", len(fields))
	}
	return s, fields
}

// isOutcome reports whether a code may be the answer to a bad value: the request
// is refused, or the value was taken for the name of something.
func isOutcome(code codes.Code) bool {
	switch code {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition,
		codes.PermissionDenied, codes.Unauthenticated, codes.Unavailable:
		return true
	default:
		return false
	}
}

// invoke makes a call with a value in one field.
func invoke(s *stack.Stack, f stringField, value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), stack.CallTimeout)
	defer cancel()
	return s.Conn(f.Group, f.Version).Invoke(ctx, "/"+f.service+"/"+f.Method, f.request(value), nil, grpc.ForceCodec(rawBytes{}))
}

// send makes a call with a value in one field, and checks the answer.
func send(t testing.TB, s *stack.Stack, f stringField, value string) {
	t.Helper()
	err := invoke(s, f, value)
	code := status.Code(err)
	if !isOutcome(code) {
		t.Errorf("%s = %.200q: %v", f, value, err)
	}
	if !utf8.ValidString(value) && code != codes.InvalidArgument {
		t.Errorf("%s = %.200q, which is no text: %v", f, value, err)
	}
}

// harmless fails the test when bad values have done harm: what is outside the
// working folder is not as it was, a process was started, or something panicked.
func harmless(t testing.TB, s *stack.Stack, outside, after string) {
	t.Helper()
	if now := s.Outside(); now != outside {
		t.Errorf("%s: outside the working folder there was\n%s\nand is\n%s", after, outside, now)
	}
	stack.NoChildren(t)
	if log := s.Log.Take(); strings.Contains(log, "panic") {
		t.Errorf("%s: %s", after, log)
	}
}

// sameFields are the fields that mean the same in several versions, with those of
// the newest version last.
func sameFields(fields []stringField) [][]stringField {
	same := map[string][]stringField{}
	for _, field := range fields {
		key := worldOf(field.Case)
		for _, step := range field.path {
			key += fmt.Sprint(" ", step.Number())
		}
		same[key] = append(same[key], field)
	}
	var all [][]stringField
	for _, key := range slices.Sorted(maps.Keys(same)) {
		all = append(all, same[key])
	}
	return all
}

// Every string field of every request takes any text: it is refused, or it is
// data. Where several versions have the same field, each gets its share of the texts.
func TestC094_HostileTexts(t *testing.T) {
	t.Parallel()
	s, fields := victim(t)
	outside := s.Outside()
	for i, value := range hostileTexts() {
		for _, versions := range sameFields(fields) {
			send(t, s, versions[i%len(versions)], value)
		}
		harmless(t, s, outside, fmt.Sprintf("%.200q", value))
	}
	stack.NoLivingChildren(t)
}

// FuzzC094_StringFields puts any bytes into any string field of any version.
func FuzzC094_StringFields(f *testing.F) {
	s, fields := victim(f)
	fuzzFields(f, s, fields, send)
}

// fuzzFields sends any bytes in any of the fields, and looks for damage after each.
func fuzzFields(f *testing.F, s *stack.Stack, fields []stringField, send func(testing.TB, *stack.Stack, stringField, string)) {
	f.Helper()
	texts := hostileTexts()
	for i := range max(len(fields), len(texts)) {
		f.Add(uint16(i%len(fields)), []byte(texts[i%len(texts)]))
	}
	outside := s.Outside()
	f.Cleanup(func() { s.TB = f }) // the stack ends with the target, not with an input
	f.Fuzz(func(t *testing.T, field uint16, value []byte) {
		s.TB = t
		at := fields[int(field)%len(fields)]
		send(t, s, at, string(value))
		harmless(t, s, outside, fmt.Sprintf("%s = %.200q", at, value))
	})
}

// The canaries of the fuzz target sing: what it watches for is seen.
func TestCanariesAreSeen(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Canaries()
	before := s.Outside()
	for name, damage := range map[string]func() error{
		"a changed file":  func() error { return s.Node.WriteFile(context.Background(), `C:\canary.txt`, []byte("x")) },
		"a new file":      func() error { return s.Node.WriteFile(context.Background(), `C:\pwned`, nil) },
		"a removed file":  func() error { return s.Node.RemoveFile(context.Background(), `C:\k-x\canary.txt`) },
		"a new folder":    func() error { return s.Node.MakeDir(context.Background(), `C:\folder`) },
		"a link":          func() error { return s.Node.MakeLink(context.Background(), `C:\link`, `C:\k`) },
		"a swapped place": func() error { _, err := s.Node.SwapForLink(context.Background(), `C:\outside`, `C:\k`); return err },
	} {
		if err := damage(); err != nil {
			t.Fatal(errors.Join(errors.New(name), err))
		}
		after := s.Outside()
		if after == before {
			t.Errorf("%s was not seen", name)
		}
		before = after
	}
}
