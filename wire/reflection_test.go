package wire_test

import (
	"slices"
	"testing"

	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// ask sends one question to a pipe's reflection service.
func ask(t *testing.T, client reflectionpb.ServerReflectionClient, question *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
	t.Helper()
	stream, err := client.ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(question); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.CloseSend()
	return answer
}

// A tool sees the pipe's own service under its name on the wire, with every
// method, and no other pipe's.
func TestReflectionKnowsOnlyThisPipe(t *testing.T) {
	t.Parallel()
	place := serve(t, &wiretest.Host{})
	methods := map[wire.API][]string{}
	services := map[wire.API]string{}
	for _, row := range wire.Rows() {
		methods[row.API] = append(methods[row.API], row.Name)
		services[row.API] = row.Service
	}
	for _, api := range wire.APIs() {
		client := reflectionpb.NewServerReflectionClient(dial(t, place, api))
		listed := ask(t, client, &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
		var names []string
		for _, s := range listed.GetListServicesResponse().GetService() {
			names = append(names, s.GetName())
		}
		if want := []string{"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", services[api]}; !slices.Equal(names, want) {
			t.Errorf("%s lists %v, want %v", api, names, want)
		}
		for other, service := range services {
			answer := ask(t, client, &reflectionpb.ServerReflectionRequest{
				MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service},
			})
			found := methodsIn(t, answer, api.Version)
			if other != api && found != nil {
				t.Errorf("%s describes %s", api, other)
			}
			if other == api && !slices.Equal(found, methods[api]) {
				t.Errorf("%s describes %v, want %v", api, found, methods[api])
			}
		}
	}
}

// methodsIn returns the methods of the service in the files of a package.
func methodsIn(t *testing.T, answer *reflectionpb.ServerReflectionResponse, pkg string) []string {
	t.Helper()
	var methods []string
	for _, raw := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
		var file descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(raw, &file); err != nil {
			t.Fatal(err)
		}
		if file.GetPackage() != pkg {
			continue
		}
		for _, method := range file.GetService()[0].GetMethod() {
			methods = append(methods, method.GetName())
		}
	}
	return methods
}
