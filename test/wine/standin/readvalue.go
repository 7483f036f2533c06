package standin

import (
	"fmt"
	"math"

	"github.com/csi-windows/csi-windows/winos/cim"
)

// value reads a typed value into the Go type of package cim; NULL is nil.
func (r *reader) value(depth int) any {
	t := cim.Type(r.u16())
	null := r.flag()
	if depth > nestingMax && r.err == nil {
		r.err = fmt.Errorf("objects nested deeper than %d", nestingMax)
	}
	switch {
	case r.err != nil, null:
		return nil
	case t&cim.TypeArray != 0:
		return r.array(t&^cim.TypeArray, depth)
	}
	return r.scalar(t, depth)
}

func (r *reader) scalar(t cim.Type, depth int) any {
	switch t {
	case cim.TypeString, cim.TypeDatetime, cim.TypeReference:
		return r.text()
	case cim.TypeObject:
		return r.instance(depth + 1)
	case cim.TypeBoolean:
		return r.u64() != 0
	case cim.TypeUint8:
		return uint8(r.u64())
	case cim.TypeSint8, cim.TypeSint16:
		return int16(r.u64())
	case cim.TypeUint16, cim.TypeChar16:
		return uint16(r.u64())
	case cim.TypeSint32:
		return int32(r.u64())
	case cim.TypeUint32:
		return uint32(r.u64())
	case cim.TypeSint64:
		return int64(r.u64())
	case cim.TypeUint64:
		return r.u64()
	case cim.TypeReal32:
		return float32(math.Float64frombits(r.u64()))
	case cim.TypeReal64:
		return math.Float64frombits(r.u64())
	}
	if r.err == nil {
		r.err = fmt.Errorf("no CIM type %d", t)
	}
	return nil
}

func (r *reader) array(t cim.Type, depth int) any {
	switch t {
	case cim.TypeString, cim.TypeDatetime, cim.TypeReference:
		return elements[string](r, t, depth)
	case cim.TypeObject:
		return elements[cim.Instance](r, t, depth)
	case cim.TypeBoolean:
		return elements[bool](r, t, depth)
	case cim.TypeUint8:
		return elements[uint8](r, t, depth)
	case cim.TypeSint8, cim.TypeSint16:
		return elements[int16](r, t, depth)
	case cim.TypeUint16, cim.TypeChar16:
		return elements[uint16](r, t, depth)
	case cim.TypeSint32:
		return elements[int32](r, t, depth)
	case cim.TypeUint32:
		return elements[uint32](r, t, depth)
	case cim.TypeSint64:
		return elements[int64](r, t, depth)
	case cim.TypeUint64:
		return elements[uint64](r, t, depth)
	case cim.TypeReal32:
		return elements[float32](r, t, depth)
	case cim.TypeReal64:
		return elements[float64](r, t, depth)
	}
	if r.err == nil {
		r.err = fmt.Errorf("no array of CIM type %d", t)
	}
	return nil
}

// elements reads a list of values of one type; each takes at least 4 bytes.
func elements[T any](r *reader, t cim.Type, depth int) []T {
	out := make([]T, 0, r.count(4))
	for range cap(out) {
		element, ok := r.scalar(t, depth).(T)
		if !ok || r.err != nil {
			return nil
		}
		out = append(out, element)
	}
	return out
}

// instance reads an object.
func (r *reader) instance(depth int) cim.Instance {
	if depth > nestingMax && r.err == nil {
		r.err = fmt.Errorf("objects nested deeper than %d", nestingMax)
	}
	return cim.Instance{Class: r.text(), Path: r.text(), Props: r.named(depth)}
}

// named reads a list of names and values; each takes at least 7 bytes.
func (r *reader) named(depth int) cim.Values {
	n := r.count(7)
	out := make(cim.Values, n)
	for range n {
		name := r.text()
		out[name] = r.value(depth)
	}
	return out
}
