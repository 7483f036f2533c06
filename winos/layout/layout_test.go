package layout

import (
	"bytes"
	"testing"
)

// Members are read and written where they lie, little endian, and nothing beside
// them is touched.
func TestMembers(t *testing.T) {
	t.Parallel()
	b := make([]byte, 18)
	U8(1).Put(b, 0x11)
	U16(2).Put(b, 0x2221)
	U32(4).Put(b, 0x34333231)
	U64(8).Put(b, 0x4847464544434241)
	want := []byte{0, 0x11, 0x21, 0x22, 0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0, 0}
	if !bytes.Equal(b, want) {
		t.Fatalf("written: % x", b)
	}
	if U8(1).Get(b) != 0x11 || U16(2).Get(b) != 0x2221 || U32(4).Get(b) != 0x34333231 || U64(8).Get(b) != 0x4847464544434241 {
		t.Error("numbers are read back otherwise than they were written")
	}
	if got := GUID(1).Get(b); !bytes.Equal(got, want[1:17]) {
		t.Errorf("GUID = % x", got)
	}
}
