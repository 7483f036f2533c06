package wire

import (
	"time"

	"google.golang.org/protobuf/proto"
)

// Row is a row of the table for tests of other packages.
type Row struct {
	API                     API
	Service, Name           string
	Request, Response       func() proto.Message // as this version writes them
	NewestRequest           func() proto.Message
	NewestResponse          func() proto.Message
	OldRequest, OldResponse bool // a shape of its own
	UpgradeRequest          func(proto.Message) (proto.Message, error)
	DowngradeResponse       func(proto.Message) (proto.Message, error)
	DowngradeRequest        func(proto.Message) (proto.Message, error)
	UpgradeResponse         func(proto.Message) (proto.Message, error)
}

// Rows returns the table.
func Rows() []Row {
	var rows []Row
	same := func(m proto.Message) (proto.Message, error) { return m, nil }
	for _, v := range table() {
		for _, m := range v.methods {
			r := Row{
				API: v.api, Service: v.serviceName(), Name: m.name,
				Request: m.newRequest, Response: m.newResponse,
				NewestRequest: m.job.newRequest, NewestResponse: m.job.newResponse,
				OldRequest: m.request != nil, OldResponse: m.response != nil,
				UpgradeRequest: same, DowngradeResponse: same, DowngradeRequest: same, UpgradeResponse: same,
			}
			if m.request != nil {
				r.UpgradeRequest = func(q proto.Message) (proto.Message, error) { return m.request.upgrade(q, m.label) }
				r.DowngradeRequest = m.request.downgrade
			}
			if m.response != nil {
				r.DowngradeResponse = m.response.downgrade
				r.UpgradeResponse = func(a proto.Message) (proto.Message, error) { return m.response.upgrade(a, "") }
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// WithTaskGrace returns the limits with another time until a node task that goes on
// is reported.
func (l Limits) WithTaskGrace(grace time.Duration) Limits {
	l.taskGrace = grace
	return l
}

// CheckPairing is checkPairing.
var CheckPairing = checkPairing

// DecodeRequest reads a request as the server does.
func DecodeRequest(api API, name string, request []byte) (proto.Message, error) {
	for _, v := range table() {
		for _, m := range v.methods {
			if v.api == api && m.name == name {
				return m.decodeRequest(func(into any) error {
					read := into.(*reading)
					read.err = proto.Unmarshal(request, read.request)
					return nil
				})
			}
		}
	}
	return nil, nil
}
