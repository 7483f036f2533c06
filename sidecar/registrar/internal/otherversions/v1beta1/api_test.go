// Package v1beta1_test compares a version of the kubelet's registration API with
// what the registrar serves. The versions cannot be in one program.
package v1beta1_test

import (
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1beta1"
)

func TestMessagesAreThoseTheRegistrarServes(t *testing.T) {
	text, err := os.ReadFile("../../../testdata/registration.txtpb")
	if err != nil {
		t.Fatal(err)
	}
	want := &descriptorpb.FileDescriptorProto{}
	if err := prototext.Unmarshal(text, want); err != nil {
		t.Fatal(err)
	}
	got := protodesc.ToFileDescriptorProto((&registration.PluginInfo{}).ProtoReflect().Descriptor().ParentFile())
	got.Name, got.Options = nil, nil
	if !proto.Equal(want, got) {
		t.Errorf("it is\n%s", prototext.Format(got))
	}
	if got, want := registration.Registration_GetInfo_FullMethodName, "/pluginregistration.Registration/GetInfo"; got != want {
		t.Errorf("GetInfo is called %s, served is %s", got, want)
	}
}
