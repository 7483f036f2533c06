// Package layout says where the members of the Win32 structures lie that the
// product writes and reads as raw bytes. The structures are those of 64-bit
// Windows, little endian, the same for amd64 and arm64.
//
// The comment behind each constant is what it stands for in C: a member, or the
// size of a structure. test/layout compares every one with the mingw-w64 headers
// (make layout), so a constant without such a comment fails there.
package layout

import "encoding/binary"

// The types of members: offsets in bytes from the start of their structure, which
// know how wide the member is. The caller has seen to it that the bytes are there.
type (
	// U8 is a member of one byte.
	U8 int
	// U16 is a member of two bytes.
	U16 int
	// U32 is a member of four bytes.
	U32 int
	// U64 is a member of eight bytes.
	U64 int
	// GUID is a member of 16 bytes.
	GUID int
)

// Get reads the member of the structure that b begins with.
func (at U8) Get(b []byte) uint8 { return b[at] }

// Put writes the member of the structure that b begins with.
func (at U8) Put(b []byte, value uint8) { b[at] = value }

// Get reads the member of the structure that b begins with.
func (at U16) Get(b []byte) uint16 { return binary.LittleEndian.Uint16(b[at:]) }

// Put writes the member of the structure that b begins with.
func (at U16) Put(b []byte, value uint16) { binary.LittleEndian.PutUint16(b[at:], value) }

// Get reads the member of the structure that b begins with.
func (at U32) Get(b []byte) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

// Put writes the member of the structure that b begins with.
func (at U32) Put(b []byte, value uint32) { binary.LittleEndian.PutUint32(b[at:], value) }

// Get reads the member of the structure that b begins with.
func (at U64) Get(b []byte) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// Put writes the member of the structure that b begins with.
func (at U64) Put(b []byte, value uint64) { binary.LittleEndian.PutUint64(b[at:], value) }

// Get returns the 16 bytes of the member, in place.
func (at GUID) Get(b []byte) []byte { return b[at : at+16] }
