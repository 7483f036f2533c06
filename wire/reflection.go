package wire

import (
	"sync"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// registerReflection lets tools ask the pipe what it serves. They see this
// pipe's service with its name on the wire and the messages it uses, and no other
// pipe's.
func registerReflection(server *grpc.Server, v version) {
	reflectionpb.RegisterServerReflectionServer(server, reflection.NewServerV1(reflection.ServerOptions{
		Services:           server,
		DescriptorResolver: &pipeFiles{load: sync.OnceValues(func() (*protoregistry.Files, error) { return describe(v) })},
		ExtensionResolver:  new(protoregistry.Types),
	}))
}

// pipeFiles is the descriptors of one pipe, made when somebody asks.
type pipeFiles struct {
	load func() (*protoregistry.Files, error)
}

// FindFileByPath implements protodesc.Resolver.
func (f *pipeFiles) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	files, err := f.load()
	if err != nil {
		return nil, err
	}
	return files.FindFileByPath(path)
}

// FindDescriptorByName implements protodesc.Resolver.
func (f *pipeFiles) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	files, err := f.load()
	if err != nil {
		return nil, err
	}
	return files.FindDescriptorByName(name)
}

// describe makes the descriptors of a pipe: a file with its service, which exists
// nowhere else, and the files that this one needs.
func describe(v version) (*protoregistry.Files, error) {
	file, err := protodesc.NewFile(serviceFile(v), protoregistry.GlobalFiles)
	if err != nil {
		return nil, err
	}
	files := new(protoregistry.Files)
	for _, f := range []protoreflect.FileDescriptor{
		file, healthpb.File_grpc_health_v1_health_proto, reflectionpb.File_grpc_reflection_v1_reflection_proto,
	} {
		if err := registerWithImports(files, f); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// serviceFile is the .proto file of a version, as if it had been written.
func serviceFile(v version) *descriptorpb.FileDescriptorProto {
	service := &descriptorpb.ServiceDescriptorProto{Name: proto.String(v.service)}
	file := &descriptorpb.FileDescriptorProto{
		Name:    proto.String("csiwindows/pipe/" + v.api.String() + ".proto"),
		Package: proto.String(v.api.Version),
		Syntax:  proto.String("proto3"),
		Service: []*descriptorpb.ServiceDescriptorProto{service},
	}
	imported := map[string]bool{}
	typeName := func(m proto.Message) *string {
		descriptor := m.ProtoReflect().Descriptor()
		if path := descriptor.ParentFile().Path(); !imported[path] {
			imported[path] = true
			file.Dependency = append(file.Dependency, path)
		}
		return proto.String("." + string(descriptor.FullName()))
	}
	for _, m := range v.methods {
		service.Method = append(service.Method, &descriptorpb.MethodDescriptorProto{
			Name: proto.String(m.name), InputType: typeName(m.newRequest()), OutputType: typeName(m.newResponse()),
		})
	}
	return file
}

func registerWithImports(files *protoregistry.Files, file protoreflect.FileDescriptor) error {
	if _, err := files.FindFileByPath(file.Path()); err == nil {
		return nil
	}
	if err := files.RegisterFile(file); err != nil {
		return err
	}
	for i := range file.Imports().Len() {
		if err := registerWithImports(files, file.Imports().Get(i).FileDescriptor); err != nil {
			return err
		}
	}
	return nil
}
