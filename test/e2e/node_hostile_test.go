package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// nodeRequests are requests of every node task, one for each source.
func nodeRequests() map[string][]proto.Message {
	disk := &wirepb.Source{Disk: &wirepb.DiskSource{
		SerialNumber: "D-1", Page83: "naa.1", Location: &wirepb.DiskLocation{Adapter: "0", Bus: "0", Target: "0", LUNID: "1"},
	}}
	iscsi := &wirepb.Source{Iscsi: &wirepb.ISCSISource{
		Portals: []*wirepb.TargetPortal{{TargetAddress: "10.0.0.1", TargetPort: 3261}}, Iqn: tableIQN,
		AuthType: wirepb.AuthenticationType_MUTUAL_CHAP, ChapUsername: "u", ChapSecret: tableSecret, MutualChapSecret: tableSecret,
	}}
	smb := &wirepb.Source{Smb: &wirepb.SMBSource{Path: `\\srv\share`, Username: "u", Domain: "dom", Password: `p'w"d`}}
	all := map[string][]proto.Message{
		"Publish":   {&wirepb.PublishRequest{VolumeId: nodeVolume, StagingPath: stagingPath, TargetPath: targetPath}},
		"Unpublish": {&wirepb.UnpublishRequest{VolumeId: nodeVolume, TargetPath: targetPath}},
		"Expand":    {&wirepb.ExpandRequest{VolumeId: nodeVolume, Path: stagingPath}},
		"Stats":     {&wirepb.StatsRequest{VolumeId: nodeVolume, Path: stagingPath}},
		"Health":    {&wirepb.HealthRequest{VolumeId: nodeVolume, StagingPath: stagingPath, TargetPath: targetPath}},
	}
	for _, source := range []*wirepb.Source{disk, iscsi, smb} {
		all["Stage"] = append(all["Stage"], &wirepb.StageRequest{
			VolumeId: nodeVolume, StagingPath: stagingPath, Source: source, FileSystem: "NTFS", Label: "L",
		})
		all["Unstage"] = append(all["Unstage"], &wirepb.UnstageRequest{VolumeId: nodeVolume, StagingPath: stagingPath, Source: source})
	}
	return all
}

// nodeFields are the string fields of nodeRequests. Of a source that a request does
// not have there are none: they would only make it one with two sources.
func nodeFields(t testing.TB) []stringField {
	t.Helper()
	var fields []stringField
	for method, requests := range nodeRequests() {
		for _, request := range requests {
			for _, path := range stringPaths(request.ProtoReflect().Descriptor()) {
				without := proto.Clone(request).ProtoReflect()
				if !clearField(without, path) {
					continue
				}
				rest, err := proto.Marshal(without.Interface())
				if err != nil {
					t.Fatal(err)
				}
				c := upstream.Case{Group: wire.GroupNode, Version: "v1alpha1", Method: method}
				fields = append(fields, stringField{c, path, serviceName(c.Group, c.Version), rest})
			}
		}
	}
	if len(fields) != 60 {
		t.Fatalf("%d string fields; the requests of the node tasks have 60", len(fields))
	}
	return fields
}

// clearField takes a field out of a message and reports whether it was set. Of a
// list, the whole goes.
func clearField(m protoreflect.Message, path []protoreflect.FieldDescriptor) bool {
	field := path[0]
	if !m.Has(field) && len(path) > 1 {
		return false
	}
	if len(path) > 1 && !field.IsList() {
		return clearField(m.Mutable(field).Message(), path[1:])
	}
	m.Clear(field)
	return true
}

// nodeVictim is a stack on which every node task has something to work on.
func nodeVictim(t testing.TB) (*stack.Stack, []stringField) {
	t.Helper()
	s := stack.New(t)
	s.Canaries()
	s.Attach(sim.DiskSpec{Bus: "NVMe", Serial: "D-1"})
	targets(s)
	s.Share(`dom\u`, `p'w"d`)
	return s, nodeFields(t)
}

// isIgnored reports whether a field is a credential that its task does not need.
func isIgnored(f stringField) bool {
	name := string(f.path[len(f.path)-1].Name())
	return f.Method == "Unstage" && (isSecret(f) || strings.HasSuffix(name, "username") || name == "domain")
}

// sendToNode is send, and wants what cannot be a text of a request refused as invalid.
func sendToNode(t testing.TB, s *stack.Stack, f stringField, value string) {
	t.Helper()
	err := invoke(s, f, value)
	code := status.Code(err)
	if !isOutcome(code) {
		t.Errorf("%s = %.200q: %v", f, value, err)
	}
	bad := !utf8.ValidString(value) || !isIgnored(f) && (strings.Contains(value, "\x00") || len(value) > 96_000)
	if bad && code != codes.InvalidArgument {
		t.Errorf("%s = %.200q, which can be no such text: %v", f, value, err)
	}
	if err != nil && len(status.Convert(err).Message()) > 4096 {
		t.Errorf("%s = %.200q: the error has %d bytes", f, value, len(err.Error()))
	}
}

// C094 and C095: every text of every request to the node tasks is refused, or it is
// data, and nothing outside the working folder changes. The storage of the requests is
// arranged anew for each text, since many of them stage something.
func TestC094_C095_HostileTextsToNodeTasks(t *testing.T) {
	t.Parallel()
	s, fields := nodeVictim(t)
	outside := s.Outside()
	for _, value := range append(hostileTexts(), strings.Repeat("x", 200_000)) {
		for _, f := range fields {
			sendToNode(t, s, f, value)
		}
		harmless(t, s, outside, fmt.Sprintf("%.200q", value))
	}
	stack.NoLivingChildren(t)
}

// FuzzC094_NodeFields puts any bytes into any string field of the node tasks.
func FuzzC094_NodeFields(f *testing.F) {
	s, fields := nodeVictim(f)
	fuzzFields(f, s, fields, sendToNode)
}

// C098 holds for the node tasks as well.
func TestC098_SecretsOfNodeTasks(t *testing.T) {
	t.Parallel()
	s, fields := nodeVictim(t)
	secretsStay(t, s, fields, 2*3)
}
