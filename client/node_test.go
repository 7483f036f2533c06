package client_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// richNode answers every question with something.
func richNode() *wiretest.Node {
	return &wiretest.Node{
		Expanded: node.ExpandResult{CapacityBytes: 5 << 30},
		Sizes:    node.Stats{TotalBytes: 7 << 30, UsedBytes: 1 << 30, AvailableBytes: 5 << 30},
		Conditions: node.Health{Conditions: []node.HealthCondition{
			{Status: node.HealthDegraded, Reason: "ScanNeeded", Message: "scan needed"},
			{Status: node.HealthInaccessible, Reason: "ShareLost", Message: "the share does not answer"},
		}},
		About: node.Info{BIOSSerialNumber: "B", Lacks: []string{"ListMounts", "GetLink"}},
	}
}

// filled returns a value of a type with no zero value in it, apart from what only
// takes one of several: a source is set by the test.
func filled(t *testing.T, what reflect.Type) reflect.Value {
	t.Helper()
	value := reflect.New(what).Elem()
	switch what.Kind() {
	case reflect.String:
		value.SetString("text of " + what.Name())
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int64:
		value.SetInt(5 << 30)
	case reflect.Int32:
		value.SetInt(2)
	case reflect.Uint32:
		value.SetUint(4096)
	case reflect.Pointer:
		value.Set(reflect.New(what.Elem()))
		value.Elem().Set(filled(t, what.Elem()))
	case reflect.Slice:
		value.Set(reflect.Append(value, filled(t, what.Elem()), filled(t, what.Elem())))
	case reflect.Struct:
		for i := range what.NumField() {
			value.Field(i).Set(filled(t, what.Field(i).Type))
		}
	default:
		t.Fatalf("a request has a field of type %s", what)
	}
	return value
}

// Every node task, asked through the client and asked directly: the node hears the
// same, every field filled and every field empty, and the caller gets the same.
func TestClientIsTheNode(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	served, direct := richNode(), richNode()
	wiretest.Serve(t, wire.ServerConfig{Host: richHost(), Node: served, Place: place})
	c := open(t, client.Options{Place: place})
	contract := reflect.TypeFor[node.Node]()
	for i := range contract.NumMethod() {
		method := contract.Method(i)
		requests := [][]reflect.Value{nil}
		if method.Type.NumIn() == 2 {
			request := method.Type.In(1)
			requests = [][]reflect.Value{{filled(t, request)}, {reflect.Zero(request)}}
		}
		for _, request := range requests {
			args := append([]reflect.Value{reflect.ValueOf(t.Context())}, request...)
			through := results(reflect.ValueOf(c).MethodByName(method.Name).Call(args))
			directly := results(reflect.ValueOf(direct).MethodByName(method.Name).Call(args))
			if diff := cmp.Diff(directly, through); diff != "" {
				t.Errorf("%s: answers (-direct +through the client):\n%s", method.Name, diff)
			}
		}
	}
	if diff := cmp.Diff(direct.Calls(), served.Calls()); diff != "" {
		t.Errorf("calls (-direct +through the client):\n%s", diff)
	}
	if diff := cmp.Diff(direct.Requests(), served.Requests()); diff != "" {
		t.Errorf("requests (-direct +through the client):\n%s", diff)
	}
	if version := c.Chosen()["node"]; version != "v1alpha1" {
		t.Errorf("version %q of the group is in use", version)
	}
}

// A csi-proxy without node tasks says so; one that is away has said nothing.
func TestHasNode(t *testing.T) {
	t.Parallel()
	with, without := wiretest.Place(t), wiretest.Place(t)
	wiretest.Serve(t, wire.ServerConfig{Host: richHost(), Node: richNode(), Place: with})
	wiretest.Serve(t, wire.ServerConfig{Host: richHost(), Place: without})
	if has, err := open(t, client.Options{Place: with}).HasNode(t.Context()); !has || err != nil {
		t.Errorf("with tasks: %t, %v", has, err)
	}
	c := open(t, client.Options{Place: without})
	if has, err := c.HasNode(t.Context()); has || err != nil {
		t.Errorf("without tasks: %t, %v", has, err)
	}
	wantKind(t, c.Stage(t.Context(), node.StageRequest{}), host.KindUnsupported)
	has, err := open(t, client.Options{Place: wiretest.Place(t)}).HasNode(t.Context())
	wantKind(t, err, host.KindUnavailable)
	if has {
		t.Error("a csi-proxy that is away has tasks")
	}
}

// A text that is no UTF-8 is refused as invalid, like any other bad request.
func TestTextThatIsNoUTF8(t *testing.T) {
	t.Parallel()
	place, tasks := wiretest.Place(t), richNode()
	wiretest.Serve(t, wire.ServerConfig{Host: richHost(), Node: tasks, Place: place})
	err := open(t, client.Options{Place: place}).Stage(t.Context(), node.StageRequest{VolumeID: "\xff"})
	wantKind(t, err, host.KindInvalid)
	if calls := tasks.Calls(); len(calls) > 0 {
		t.Errorf("the node was asked %v", calls)
	}
}
