package wire

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/node"
)

// version is one API of the table and its methods.
type version struct {
	api     API
	service string // the service's name without the version, e.g. "Disk"
	methods []method
}

// serviceName is the name the service has on the wire. It carries the version but
// not the group.
func (v version) serviceName() string { return v.api.Version + "." + v.service }

// method is one row of the table: a name on the wire, the job it asks for, and
// the shapes in which this version differs from the newest messages (nil: it does
// not, or only in names, which do not travel).
type method struct {
	name     string
	job      job
	request  *shape
	response *shape
	// op is the canonical name of the job, label the version's name of the
	// request; both are for error texts.
	op, label string
}

// job is one operation on the newest messages.
type job struct {
	newRequest  func() proto.Message
	newResponse func() proto.Message
	serve       func(ctx context.Context, s *site, request proto.Message) (proto.Message, error)
}

// Op returns the canonical name of the operation that a newest request asks for:
// the message's name without "Request".
func Op(request proto.Message) string {
	return strings.TrimSuffix(string(request.ProtoReflect().Descriptor().Name()), "Request")
}

// site is what jobs work on.
type site struct {
	host    host.Host
	node    node.Node // nil when its group is not served
	version string    // of the program
	apis    []API     // what is served
}

// message is the pointer type of a generated message.
type message[T any] interface {
	*T
	proto.Message
}

// row makes a method that does the job of handle. How it differs from the newest
// version is said by asks and answers.
func row[Q, A any, PQ message[Q], PA message[A]](name string, handle func(context.Context, *site, PQ) (PA, error)) method {
	return method{name: name, job: job{
		newRequest:  func() proto.Message { return PQ(new(Q)) },
		newResponse: func() proto.Message { return PA(new(A)) },
		serve: func(ctx context.Context, s *site, request proto.Message) (proto.Message, error) {
			answer, err := handle(ctx, s, request.(PQ))
			if err != nil {
				return nil, err // a nil PA must not become a non-nil interface
			}
			return answer, nil
		},
	}}
}

// asks says that this version's request has a shape of its own.
func (m method) asks(s *shape) method { m.request = s; return m }

// answers says that this version's response has a shape of its own.
func (m method) answers(s *shape) method { m.response = s; return m }

// table returns every API: groups in a fixed order, each from its oldest to its
// newest version.
func table() []version {
	versions := slices.Concat(diskVersions(), volumeVersions(), filesystemVersions(),
		smbVersions(), iscsiVersions(), systemVersions(), extensionVersions(), nodeVersions())
	for _, v := range versions {
		for i := range v.methods {
			m := &v.methods[i]
			m.op = Op(m.job.newRequest())
			m.label = v.api.Version + "." + m.name + "Request"
		}
	}
	return versions
}
