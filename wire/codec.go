package wire

import (
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// codec is gRPC's own codec, except that a request that cannot be read is not
// gRPC's error. gRPC would answer with Internal before the method's handler has a
// say, while it is the caller's fault and must be observed like any other.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// reading is a request and what was wrong with its bytes.
type reading struct {
	request proto.Message
	err     error
}

// Unmarshal reads a message.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*reading); ok {
		r.err = c.CodecV2.Unmarshal(data, r.request)
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
