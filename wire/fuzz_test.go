package wire_test

import (
	"errors"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/wire"
)

// FuzzDecodeRequest reads any bytes as the request of any method. Each is either
// refused as invalid, or is a newest request: of the right type, with valid texts,
// and the same after another turn through the version it came by.
func FuzzDecodeRequest(f *testing.F) {
	rows := wire.Rows()
	for i, row := range rows {
		filled := row.Request()
		fill(filled.ProtoReflect(), func(protoreflect.FieldDescriptor) bool { return true })
		seed, err := proto.Marshal(filled)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(i), seed)
	}
	for _, text := range []string{"", "-1", "4294967296", "\xff", "99999999999999999999"} {
		f.Add(uint16(1), append([]byte{0x0a, byte(len(text))}, text...))
	}
	f.Fuzz(func(t *testing.T, index uint16, raw []byte) {
		row := rows[int(index)%len(rows)]
		request, err := wire.DecodeRequest(row.API, row.Name, raw)
		if err != nil {
			var failure *host.Error
			if !errors.As(err, &failure) || failure.Kind != host.KindInvalid || !utf8.ValidString(err.Error()) {
				t.Fatalf("%s %s: %v", row.API, row.Name, err)
			}
			return
		}
		if request.ProtoReflect().Descriptor() != row.NewestRequest().ProtoReflect().Descriptor() {
			t.Fatalf("%s %s: read as %T", row.API, row.Name, request)
		}
		again, err := row.DowngradeRequest(request)
		if err != nil {
			t.Fatalf("%s %s: %v", row.API, row.Name, err)
		}
		if back, err := row.UpgradeRequest(again); err != nil || !proto.Equal(back, request) {
			t.Fatalf("%s %s: %v became %v (%v)", row.API, row.Name, request, back, err)
		}
	})
}
