package cim

import (
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/go-ole/go-ole"
)

// fromVariant gives a value the Go type of its CIM type: WMI widens small
// numbers, hands out large unsigned ones as negative ones, and 64-bit ones as
// decimal text. Source: "Numbers", WMI SDK.
func fromVariant(v *ole.VARIANT, cimType Type) (any, error) {
	switch {
	case v.VT == ole.VT_NULL || v.VT == ole.VT_EMPTY:
		return nil, nil
	case v.VT&ole.VT_ARRAY != 0:
		return fromArray(v, cimType&^TypeArray)
	case v.VT == ole.VT_BSTR:
		return typed(variantText(v), cimType)
	case v.VT == ole.VT_UNKNOWN:
		return fromUnknown((*object)(unsafe.Pointer(v.ToIUnknown())))
	}
	return typed(scalar(v.VT, uint64(v.Val)), cimType)
}

// scalar widens the bits of a number or bool.
func scalar(vt ole.VT, bits uint64) any {
	switch vt {
	case ole.VT_BOOL:
		return uint16(bits) != 0
	case ole.VT_I1:
		return int64(int8(bits))
	case ole.VT_UI1:
		return int64(uint8(bits))
	case ole.VT_I2:
		return int64(int16(bits))
	case ole.VT_UI2:
		return int64(uint16(bits))
	case ole.VT_I4:
		return int64(int32(bits))
	case ole.VT_UI4:
		return int64(uint32(bits))
	case ole.VT_I8, ole.VT_UI8:
		return int64(bits)
	case ole.VT_R4:
		return float64(math.Float32frombits(uint32(bits)))
	case ole.VT_R8:
		return math.Float64frombits(bits)
	}
	return nil
}

// typed narrows a widened value to its CIM type.
func typed(value any, cimType Type) (any, error) {
	switch v := value.(type) {
	case string:
		switch cimType {
		case TypeSint64:
			return strconv.ParseInt(v, 10, 64)
		case TypeUint64:
			return strconv.ParseUint(v, 10, 64)
		}
		return v, nil
	case bool:
		return v, nil
	case float64:
		if cimType == TypeReal32 {
			return float32(v), nil
		}
		return v, nil
	case int64:
		return integer(v, cimType)
	}
	return nil, fmt.Errorf("cim: variant of CIM type %d is not understood", cimType)
}

func integer(v int64, cimType Type) (any, error) {
	switch cimType {
	case TypeUint8:
		return uint8(v), nil
	case TypeSint8, TypeSint16:
		return int16(v), nil
	case TypeUint16, TypeChar16:
		return uint16(v), nil
	case TypeSint32:
		return int32(v), nil
	case TypeUint32:
		return uint32(v), nil
	case TypeSint64:
		return v, nil
	case TypeUint64:
		return uint64(v), nil
	}
	return nil, fmt.Errorf("cim: a number of CIM type %d is not understood", cimType)
}

func fromUnknown(unknown *object) (any, error) {
	if unknown == nil {
		return nil, nil
	}
	var embedded *object
	hr := unknown.call(slotQueryInterface, uintptr(unsafe.Pointer(iidClassObject)), uintptr(unsafe.Pointer(&embedded)))
	if failed(hr) {
		return nil, &Error{Op: "Query", Object: "embedded object", HRESULT: hr}
	}
	defer embedded.release()
	return embedded.instance("Query", "embedded object")
}

// safeArray is SAFEARRAY of one dimension on 64-bit Windows. Source: oaidl.h.
type safeArray struct {
	dimensions  uint16
	features    uint16
	elementSize uint32
	locks       uint32
	data        unsafe.Pointer
	count       uint32
	lowest      int32
}

// fromArray makes a Go slice of the element's type.
func fromArray(v *ole.VARIANT, cimType Type) (any, error) {
	array := *(**safeArray)(unsafe.Pointer(&v.Val))
	if array == nil {
		return nil, nil
	}
	if array.dimensions != 1 {
		return nil, fmt.Errorf("cim: array of %d dimensions", array.dimensions)
	}
	element := v.VT &^ ole.VT_ARRAY
	switch cimType {
	case TypeString, TypeDatetime, TypeReference:
		return elements[string](array, element, cimType)
	case TypeBoolean:
		return elements[bool](array, element, cimType)
	case TypeUint8:
		return elements[uint8](array, element, cimType)
	case TypeSint8, TypeSint16:
		return elements[int16](array, element, cimType)
	case TypeUint16, TypeChar16:
		return elements[uint16](array, element, cimType)
	case TypeSint32:
		return elements[int32](array, element, cimType)
	case TypeUint32:
		return elements[uint32](array, element, cimType)
	case TypeSint64:
		return elements[int64](array, element, cimType)
	case TypeUint64:
		return elements[uint64](array, element, cimType)
	case TypeReal32:
		return elements[float32](array, element, cimType)
	case TypeReal64:
		return elements[float64](array, element, cimType)
	case TypeObject:
		return elements[Instance](array, element, cimType)
	}
	return nil, fmt.Errorf("cim: an array of CIM type %d is not understood", cimType)
}

// elements reads an array in place; the caller's VARIANT owns it.
func elements[T any](array *safeArray, vt ole.VT, cimType Type) ([]T, error) {
	all := make([]T, array.count)
	for i := range all {
		var one ole.VARIANT
		one.VT = vt
		size := min(uintptr(array.elementSize), unsafe.Sizeof(one.Val))
		source := unsafe.Slice((*byte)(unsafe.Add(array.data, uintptr(i)*uintptr(array.elementSize))), size)
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&one.Val)), size), source)
		value, err := fromVariant(&one, cimType)
		if err != nil {
			return nil, err
		}
		typedValue, ok := value.(T)
		if !ok {
			return nil, fmt.Errorf("cim: an element of an array of CIM type %d is a %T", cimType, value)
		}
		all[i] = typedValue
	}
	return all, nil
}
