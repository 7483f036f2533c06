// Package upstream drives csi-proxy's own client stubs, unchanged, against a
// server: every method of every version, with the request a driver would send,
// what the host must be asked for it, and the answer the driver must get.
package upstream

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// Case is one call of one method of one version.
type Case struct {
	Group, Version, Method string
	// Request and Response are csi-proxy's messages in JSON.
	Request, Response string
	// Call is what the host is asked, in the words of wiretest.Host.
	Call string
}

// Name is a name for tests.
func (c Case) Name() string { return c.Group + "/" + c.Version + "/" + c.Method }

// Messages are the two messages of a finished call.
type Messages struct{ Request, Response proto.Message }

// Do calls the method on a stub of csi-proxy for the case's API.
func (c Case) Do(ctx context.Context, stub any) (Messages, error) {
	method := reflect.ValueOf(stub).MethodByName(c.Method)
	if !method.IsValid() {
		return Messages{}, fmt.Errorf("%s: the stub has no such method", c.Name())
	}
	request := reflect.New(method.Type().In(1).Elem())
	message := messageOf(request)
	if err := protojson.Unmarshal([]byte(c.Request), message); err != nil {
		return Messages{}, fmt.Errorf("%s: request: %w", c.Name(), err)
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(ctx), request})
	if err, _ := results[1].Interface().(error); err != nil {
		return Messages{Request: message}, err
	}
	return Messages{Request: message, Response: messageOf(results[0])}, nil
}

// Check compares an answer with the one the driver must get, and returns what
// differs.
func (c Case) Check(answer proto.Message) (string, error) {
	want := answer.ProtoReflect().New().Interface()
	if err := protojson.Unmarshal([]byte(c.Response), want); err != nil {
		return "", fmt.Errorf("%s: response: %w", c.Name(), err)
	}
	return cmp.Diff(want, answer, protocmp.Transform()), nil
}

// Run calls the method on a stub whose server has the host, and returns the
// messages and what was wrong, which is nothing when the host was asked what it
// must be and the driver got what it must get.
func (c Case) Run(ctx context.Context, stub any, h *wiretest.Host) (messages Messages, wrong string) {
	h.Reset()
	messages, err := c.Do(ctx, stub)
	if err != nil {
		return messages, err.Error()
	}
	if calls := h.Calls(); !slices.Equal(calls, []string{c.Call}) {
		return messages, fmt.Sprintf("the host was asked %q, want %q", calls, c.Call)
	}
	diff, err := c.Check(messages.Response)
	if err != nil {
		return messages, err.Error()
	}
	if diff != "" {
		return messages, "answer (-want +got):\n" + diff
	}
	return messages, ""
}

// messageOf returns a message of csi-proxy, some of which were generated for an
// older protobuf API.
func messageOf(v reflect.Value) proto.Message {
	return protoadapt.MessageV2Of(v.Interface().(protoadapt.MessageV1))
}
