package stress

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"

	e2e "github.com/csi-windows/csi-windows/test/e2e/stack"
)

// hostileTexts are what somebody sends who hopes for a shell, or for a way out of the
// kubelet's folder.
func hostileTexts() []string {
	const canary = `echo x > C:\canary.txt`
	return []string{
		"; " + canary, "& " + canary, "| " + canary, "$(" + canary + ")", "`" + canary + "`", `" ; ` + canary, "' ; " + canary,
		"\n" + canary, "a\x00b", "%PATH%", "\u202e\ufeff", `..\..\..\outside`, `C:\outside`, `\\evil\share`, `C:\var\lib\kubelet\..\..\..\outside`,
		`\\.\PhysicalDrive0`, `C:\var\lib\kubelet\a:stream`, strings.Repeat("x", 3000), strings.Repeat("x", 200_000),
	}
}

// nodeCalls are requests for every method of a node, of one volume.
func (v *volume) nodeCalls() map[string]proto.Message {
	secret := map[string]string{"username": user, "password": password}
	return map[string]proto.Message{
		"NodeStageVolume": &csi.NodeStageVolumeRequest{
			VolumeId: v.id, StagingTargetPath: v.staging(), VolumeCapability: capability(), Secrets: secret,
			VolumeContext: map[string]string{"csi-windows/label": "label"}, PublishContext: map[string]string{"key": "value"},
		},
		"NodePublishVolume": &csi.NodePublishVolumeRequest{
			VolumeId: v.id, StagingTargetPath: v.staging(), TargetPath: v.target(), VolumeCapability: capability(), Secrets: secret,
		},
		"NodeGetVolumeStats":  &csi.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: v.target(), StagingTargetPath: v.staging()},
		"NodeExpandVolume":    &csi.NodeExpandVolumeRequest{VolumeId: v.id, VolumePath: v.target(), StagingTargetPath: v.staging(), Secrets: secret},
		"NodeUnpublishVolume": &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target()},
		"NodeUnstageVolume":   &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging()},
	}
}

// eachText calls use with a copy of a request for every text in it, which then is value.
func eachText(request proto.Message, value string, use func(field string, request proto.Message)) {
	var walk func(m protoreflect.Message, at string, send func())
	walk = func(m protoreflect.Message, at string, send func()) {
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			name := at + string(field.Name())
			switch {
			case field.IsMap():
				values := m.Mutable(field).Map()
				for _, entry := range [][2]string{{"key", value}, {value, "value"}} {
					values.Set(protoreflect.ValueOf(entry[0]).MapKey(), protoreflect.ValueOf(entry[1]))
					send()
					values.Clear(protoreflect.ValueOf(entry[0]).MapKey())
				}
			case field.IsList() && field.Kind() == protoreflect.StringKind:
				m.Mutable(field).List().Append(protoreflect.ValueOf(value))
				send()
				m.Clear(field)
			case field.Kind() == protoreflect.StringKind && !field.IsList():
				before := m.Get(field)
				m.Set(field, protoreflect.ValueOf(value))
				send()
				m.Set(field, before)
			case field.Kind() == protoreflect.MessageKind && m.Has(field):
				walk(m.Mutable(field).Message(), name+".", send)
			}
		}
	}
	copied := proto.Clone(request)
	walk(copied.ProtoReflect(), "", func() { use(fmt.Sprintf("%T", request), copied) })
}

// Every text of every request to a node service is refused or is data: no process is
// started for it, nothing outside the kubelet's folder is touched, no handler panics,
// and what may never be in a text is told to the caller as its mistake.
func TestC094_C095_HostileTexts(t *testing.T) {
	s := newStack(t, 4)
	s.ok(s.node.WriteFile(t.Context(), `C:\canary\file`, []byte("as it was")))
	before, err := s.node.ListDir(t.Context(), `C:\`)
	s.ok(err)
	sent := 0
	for _, v := range s.volumes(1) {
		for method, request := range v.nodeCalls() {
			for _, value := range hostileTexts() {
				eachText(request, value, func(field string, request proto.Message) {
					sent++
					err := s.conn.Invoke(t.Context(), "/csi.v1.Node/"+method, request, &emptypb.Empty{})
					code := status.Code(err)
					if code == codes.Internal || code == codes.Unknown || code == codes.Unimplemented || code == codes.DeadlineExceeded {
						t.Errorf("%s with %.60q: %.300v", field, value, err)
					}
					if len(status.Convert(err).Message()) > 4096 {
						t.Errorf("%s with %.60q: the error has %d bytes", field, value, len(status.Convert(err).Message()))
					}
				})
			}
			for range 2 { // the volume goes on being a volume
				s.ok(v.stage(t.Context()))
				s.ok(v.publish(t.Context()))
			}
		}
		s.ok(v.unpublish(t.Context()))
		s.ok(v.unstage(t.Context()))
	}
	t.Log("requests sent:", sent)
	after, err := s.node.ListDir(t.Context(), `C:\`)
	s.ok(err)
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("in the drive there was %q, and is %q", before, after)
	}
	if data, err := s.node.ReadFile(t.Context(), `C:\canary\file`); err != nil || string(data) != "as it was" {
		t.Errorf("the canary is %q (%v)", data, err)
	}
	e2e.NoChildren(t)
	e2e.NoLivingChildren(t)
}
