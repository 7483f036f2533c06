package standin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of a frame: what follows the length.
const (
	requestMaxBytes = 4 << 20
	answerMaxBytes  = 64 << 20
	// dataMaxBytes bounds what one read or control may ask for.
	dataMaxBytes = 16 << 20
)

// errShort is a body that ends too early, or counts more than it holds.
var errShort = errors.New("the body is too short")

// readFrame reads a frame: a length of head bytes and more, at most limit.
func readFrame(r io.Reader, head, limit int) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(length[:])
	if uint64(size) < uint64(head) || uint64(size) > uint64(limit) {
		return nil, fmt.Errorf("a frame of %d bytes, want %d to %d", size, head, limit)
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return frame, nil
}

// body writes the parts of a message.
type body struct{ data []byte }

func (b *body) u8(v uint8)   { b.data = append(b.data, v) }
func (b *body) u16(v uint16) { b.data = binary.LittleEndian.AppendUint16(b.data, v) }
func (b *body) u32(v uint32) { b.data = binary.LittleEndian.AppendUint32(b.data, v) }
func (b *body) u64(v uint64) { b.data = binary.LittleEndian.AppendUint64(b.data, v) }

func (b *body) count(n int)    { b.u32(uint32(n)) }
func (b *body) raw(v []byte)   { b.data = append(b.data, v...) }
func (b *body) bytes(v []byte) { b.count(len(v)); b.raw(v) }
func (b *body) text(v string)  { b.count(len(v)); b.data = append(b.data, v...) }

func (b *body) flag(v bool) {
	if v {
		b.u8(1)
		return
	}
	b.u8(0)
}

func (b *body) texts(list []string) {
	b.count(len(list))
	for _, text := range list {
		b.text(text)
	}
}

// reader reads the parts of a message. After the first failure every part is
// zero, and err tells.
type reader struct {
	data []byte
	err  error
}

func (r *reader) raw(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.data)) {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	out := r.data[:n:n]
	r.data = r.data[n:]
	return out
}

func (r *reader) u8() uint8 {
	if b := r.raw(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.raw(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.raw(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.raw(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) flag() bool    { return r.u8() != 0 }
func (r *reader) bytes() []byte { return r.raw(r.count(1)) }
func (r *reader) text() string  { return string(r.bytes()) }

// count reads the number of items of a list; each takes at least itemBytes.
func (r *reader) count(itemBytes int) int {
	n := r.u32()
	if r.err == nil && uint64(n)*uint64(itemBytes) > uint64(len(r.data)) {
		r.err = errShort
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) texts() []string {
	out := make([]string, r.count(4))
	for i := range out {
		out[i] = r.text()
	}
	return out
}

// end is the failure, or one for bytes that are left over.
func (r *reader) end() error {
	if r.err == nil && len(r.data) > 0 {
		return fmt.Errorf("%d bytes too many", len(r.data))
	}
	return r.err
}
