package wire

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/csi-windows/csi-windows/host"
)

// Protocol is the table from a client's side: how each API asks for a job that is
// given as its newest request message. It does not change and may be shared.
type Protocol struct {
	apis    []API
	methods map[boundName]Method
}

type boundName struct {
	api     API
	request protoreflect.FullName
}

// Method is one method of one API.
type Method struct {
	path string // "/v1beta2.Disk/SetAttachState"
	row  method
}

// NewProtocol makes the table.
func NewProtocol() *Protocol {
	p := &Protocol{methods: map[boundName]Method{}}
	for _, v := range table() {
		p.apis = append(p.apis, v.api)
		for _, m := range v.methods {
			name := boundName{v.api, m.job.newRequest().ProtoReflect().Descriptor().FullName()}
			p.methods[name] = Method{path: "/" + v.serviceName() + "/" + m.name, row: m}
		}
	}
	return p
}

// Versions returns the versions of a group, the newest first.
func (p *Protocol) Versions(group string) []string {
	var versions []string
	for _, api := range p.apis {
		if api.Group == group {
			versions = append(versions, api.Version)
		}
	}
	slices.Reverse(versions)
	return versions
}

// Method returns the method of an API that does the job of a newest request, and
// false when this version has none.
func (p *Protocol) Method(api API, request proto.Message) (Method, bool) {
	m, ok := p.methods[boundName{api, request.ProtoReflect().Descriptor().FullName()}]
	return m, ok
}

// Invoke calls the method with a newest request and returns the newest response.
// The error is a *host.Error when this version cannot say what the request says or
// its answer makes no sense, and that of gRPC otherwise.
func (m Method) Invoke(ctx context.Context, conn grpc.ClientConnInterface, request proto.Message, opts ...grpc.CallOption) (proto.Message, error) {
	if m.row.request != nil {
		var err error
		if request, err = m.row.request.downgrade(request); err != nil {
			return nil, err
		}
	}
	response := m.row.newResponse()
	if err := conn.Invoke(ctx, m.path, request, response, opts...); err != nil {
		return nil, err
	}
	if err := checkPairing(response); err != nil {
		return nil, m.nonsense(err)
	}
	if m.row.response == nil {
		return response, nil
	}
	newest, err := m.row.response.upgrade(response, "")
	if err != nil {
		return nil, m.nonsense(err)
	}
	return newest, nil
}

func (m Method) nonsense(cause error) error {
	return &host.Error{Op: m.row.op, Kind: host.KindInternal, Cause: fmt.Errorf("answer of %s: %w", m.path, cause)}
}
