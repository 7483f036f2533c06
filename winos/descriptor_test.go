package winos

import (
	"strings"
	"testing"
)

const (
	identifierHeaderBytes = 16
	firstIdentifierOffset = 12
)

type testIdentifier struct {
	codeSet, kind, association uint32
	data                       string
}

// idDescriptor lays out a STORAGE_DEVICE_ID_DESCRIPTOR, each entry on a 4-byte boundary.
func idDescriptor(ids ...testIdentifier) []byte {
	b := make([]byte, firstIdentifierOffset)
	le.PutUint32(b, 12)
	le.PutUint32(b[8:], uint32(len(ids)))
	for i, id := range ids {
		start := len(b)
		b = append(b, make([]byte, identifierHeaderBytes)...)
		b = append(b, id.data...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
		le.PutUint32(b[start:], id.codeSet)
		le.PutUint32(b[start+4:], id.kind)
		le.PutUint16(b[start+8:], uint16(len(id.data)))
		if i < len(ids)-1 {
			le.PutUint16(b[start+10:], uint16(len(b)-start))
		}
		le.PutUint32(b[start+12:], id.association)
	}
	le.PutUint32(b[4:], uint32(len(b)))
	return b
}

func TestC004_Page83(t *testing.T) {
	t.Parallel()
	const naa = "\x60\x02\x24\x80\x49\x5f\x67\xcb\xc9\x5f\xd2\x32\xe8\x85\x61\xa7"
	for _, tt := range []struct {
		name string
		ids  []testIdentifier
		want string
	}{
		{"none", nil, ""},
		{"ASCII vendor id is trimmed", []testIdentifier{{codeSetASCII, 1, 0, "  Google  pvc-1234  \x00\x00"}}, "Google  pvc-1234"},
		{"binary becomes lower-case hex", []testIdentifier{{codeSetBinary, 3, 0, naa}}, "60022480495f67cbc95fd232e88561a7"},
		{"UTF-8 name", []testIdentifier{{codeSetUTF8, 8, 0, "naa.6002"}}, "naa.6002"},
		{"port and target identifiers do not count", []testIdentifier{
			{codeSetBinary, 3, 1, "\xff"}, {codeSetBinary, 8, 2, "\xee"}, {codeSetASCII, 0, 0, "disk"},
		}, "disk"},
		{"preferred kind wins in any order", []testIdentifier{
			{codeSetASCII, 1, 0, "vendor"}, {codeSetBinary, 2, 0, "\x01"}, {codeSetBinary, 3, 0, "\xab\xcd"}, {codeSetASCII, 0, 0, "own"},
		}, "abcd"},
		{"SCSI name string is best", []testIdentifier{{codeSetBinary, 3, 0, "\xab"}, {codeSetUTF8, 8, 0, "iqn.x"}}, "iqn.x"},
		{"first of equals", []testIdentifier{{codeSetBinary, 3, 0, "\x01"}, {codeSetBinary, 3, 0, "\x02"}}, "01"},
		{"blank one is passed over", []testIdentifier{{codeSetASCII, 8, 0, "   "}, {codeSetBinary, 3, 0, "\x05"}}, "05"},
		{"unknown code set is passed over", []testIdentifier{{7, 3, 0, "x"}, {codeSetASCII, 1, 0, "y"}}, "y"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ids, err := decodeIdentifiers(idDescriptor(tt.ids...))
			if err != nil {
				t.Fatal(err)
			}
			if got := page83(ids); got != tt.want {
				t.Errorf("page83 = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestC004_MalformedDescriptors(t *testing.T) {
	t.Parallel()
	two := func() []byte {
		return idDescriptor(testIdentifier{codeSetASCII, 1, 0, "abcd"}, testIdentifier{codeSetBinary, 3, 0, "\x01\x02\x03\x04"})
	}
	next := func(offset uint16) []byte {
		b := two()
		le.PutUint16(b[firstIdentifierOffset+10:], offset)
		return b
	}
	for name, b := range map[string][]byte{
		"empty":                   {},
		"cut in the header":       two()[:firstIdentifierOffset-1],
		"cut in an identifier":    two()[:firstIdentifierOffset+8],
		"cut in its data":         two()[:len(two())-1],
		"next offset 0":           next(0),
		"next offset inside":      next(4),
		"next offset past end":    next(0x7FFF),
		"next offset at very end": next(uint16(len(two()) - firstIdentifierOffset)),
	} {
		if ids, err := decodeIdentifiers(b); err == nil {
			t.Errorf("%s: read as %+v", name, ids)
		}
	}
	b := two()
	le.PutUint32(b[8:], 1<<32-1) // more entries than there can be
	if ids, err := decodeIdentifiers(b); err == nil {
		t.Errorf("count past the end: read as %+v", ids)
	}
}

func FuzzC004_DecodeIdentifiers(f *testing.F) {
	f.Add(idDescriptor())
	f.Add(idDescriptor(testIdentifier{codeSetASCII, 1, 0, "abc"}, testIdentifier{codeSetBinary, 3, 0, "\x60\x01"}))
	f.Add(idDescriptor(testIdentifier{codeSetBinary, 8, 1, strings.Repeat("x", 300)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		ids, err := decodeIdentifiers(b)
		if err != nil {
			return
		}
		if len(ids)*identifierHeaderBytes > len(b) {
			t.Fatalf("%d identifiers in %d bytes", len(ids), len(b))
		}
		page83(ids)
	})
}

func deviceDescriptor(serial string) []byte {
	b := make([]byte, 40)
	if serial != "" {
		le.PutUint32(b[24:], uint32(len(b)))
		b = append(append(b, serial...), 0, 'x')
	}
	le.PutUint32(b[4:], uint32(len(b)))
	return b
}

func TestDecodeSerialNumber(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ serial, want string }{
		{"", ""}, {"  vol0123 ", "vol0123"}, {"A", "A"}, {"\xff1", "\uFFFD1"},
	} {
		got, err := decodeSerialNumber(deviceDescriptor(tt.serial))
		if err != nil || got != tt.want {
			t.Errorf("serial %q read as %q, %v", tt.serial, got, err)
		}
	}
	absent := deviceDescriptor("")
	le.PutUint32(absent[24:], 1<<32-1)
	if got, err := decodeSerialNumber(absent); got != "" || err != nil {
		t.Errorf("offset -1 read as %q, %v", got, err)
	}
	past := deviceDescriptor("x")
	le.PutUint32(past[24:], 1000)
	for _, b := range [][]byte{nil, past[:20], past} {
		if got, err := decodeSerialNumber(b); err == nil {
			t.Errorf("%d bytes read as %q", len(b), got)
		}
	}
}

func FuzzDecodeSerialNumber(f *testing.F) {
	f.Add(deviceDescriptor("abc"))
	f.Add(deviceDescriptor(""))
	f.Fuzz(func(t *testing.T, b []byte) {
		if serial, err := decodeSerialNumber(b); err == nil && strings.ContainsRune(serial, 0) {
			t.Errorf("serial %q", serial)
		}
	})
}
