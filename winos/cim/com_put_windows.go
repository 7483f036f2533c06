package cim

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/go-ole/go-ole"
)

var (
	procSafeArrayCreateVector = oleaut32.NewProc("SafeArrayCreateVector")
	procSafeArrayPutElement   = oleaut32.NewProc("SafeArrayPutElement")
)

// toVariant gives an in-parameter the form that Put wants for its CIM type:
// numbers up to 32 bits as a 32-bit number, 64-bit ones as decimal text. The
// caller clears it. Embedded objects are no in-parameters of any method we call.
// Source: "Numbers", WMI SDK; IWbemClassObject::Put.
func toVariant(value any, cimType Type) (ole.VARIANT, error) {
	if value == nil {
		return ole.NewVariant(ole.VT_NULL, 0), nil
	}
	v := reflect.ValueOf(value)
	if cimType&TypeArray != 0 && v.Kind() == reflect.Slice {
		return arrayVariant(v, cimType&^TypeArray)
	}
	switch {
	case v.Kind() == reflect.String && (cimType == TypeString || cimType == TypeDatetime || cimType == TypeReference):
		return bstrVariant(v.String()), nil
	case v.Kind() == reflect.Bool && cimType == TypeBoolean:
		return ole.NewVariant(ole.VT_BOOL, variantBool(v.Bool())), nil
	case v.CanFloat() && cimType == TypeReal32:
		return ole.NewVariant(ole.VT_R4, int64(math.Float32bits(float32(v.Float())))), nil
	case v.CanFloat() && cimType == TypeReal64:
		return ole.NewVariant(ole.VT_R8, int64(math.Float64bits(v.Float()))), nil
	case v.CanInt() || v.CanUint():
		return numberVariant(v, cimType)
	}
	return ole.VARIANT{}, misfit(v, cimType)
}

func misfit(v reflect.Value, cimType Type) error {
	return fmt.Errorf("cim: a %s does not fit CIM type %d", v.Type(), cimType)
}

// integerForm is how Put wants an integer type, and the numbers it holds.
type integerForm struct {
	vt          ole.VT
	least, most int64
}

func integerFormOf(cimType Type) (form integerForm, ok bool) {
	switch cimType {
	case TypeSint8:
		return integerForm{ole.VT_I2, math.MinInt8, math.MaxInt8}, true
	case TypeUint8:
		return integerForm{ole.VT_UI1, 0, math.MaxUint8}, true
	case TypeSint16:
		return integerForm{ole.VT_I2, math.MinInt16, math.MaxInt16}, true
	case TypeChar16:
		return integerForm{ole.VT_I2, 0, math.MaxUint16}, true
	case TypeUint16:
		return integerForm{ole.VT_I4, 0, math.MaxUint16}, true
	case TypeSint32: // unsigned ones by their bits: schemas differ over the keys of StdRegProv
		return integerForm{ole.VT_I4, math.MinInt32, math.MaxUint32}, true
	case TypeUint32:
		return integerForm{ole.VT_I4, 0, math.MaxUint32}, true
	case TypeSint64:
		return integerForm{ole.VT_BSTR, math.MinInt64, math.MaxInt64}, true
	case TypeUint64:
		return integerForm{ole.VT_BSTR, 0, math.MaxInt64}, true
	}
	return integerForm{}, false
}

func numberVariant(v reflect.Value, cimType Type) (ole.VARIANT, error) {
	form, ok := integerFormOf(cimType)
	if !ok {
		return ole.VARIANT{}, misfit(v, cimType)
	}
	if v.CanUint() {
		number := v.Uint()
		switch {
		case cimType == TypeUint64:
			return bstrVariant(strconv.FormatUint(number, 10)), nil
		case number > uint64(form.most):
			return ole.VARIANT{}, misfit(v, cimType)
		}
		return form.variant(int64(number)), nil
	}
	if number := v.Int(); number >= form.least && number <= form.most {
		return form.variant(number), nil
	}
	return ole.VARIANT{}, misfit(v, cimType)
}

func (f integerForm) variant(number int64) ole.VARIANT {
	switch f.vt {
	case ole.VT_BSTR:
		return bstrVariant(strconv.FormatInt(number, 10))
	case ole.VT_UI1:
		return ole.NewVariant(f.vt, int64(uint8(number)))
	case ole.VT_I2:
		return ole.NewVariant(f.vt, int64(uint16(number)))
	}
	return ole.NewVariant(f.vt, int64(uint32(number)))
}

// arrayVariant makes a SAFEARRAY of the elements' VARIANTs.
func arrayVariant(v reflect.Value, cimType Type) (ole.VARIANT, error) {
	vt, ok := elementType(cimType)
	if !ok {
		return ole.VARIANT{}, misfit(v, cimType)
	}
	array, _, _ := procSafeArrayCreateVector.Call(uintptr(vt), 0, uintptr(v.Len()))
	variant := ole.NewVariant(ole.VT_ARRAY|vt, int64(array))
	for i := range v.Len() {
		one, err := toVariant(v.Index(i).Interface(), cimType)
		if err == nil && one.VT != vt {
			err = misfit(v, cimType)
		}
		if err == nil && !putElement(array, int32(i), &one) {
			err = misfit(v, cimType)
		}
		_ = one.Clear()
		if err != nil {
			_ = variant.Clear()
			return ole.VARIANT{}, err
		}
	}
	return variant, nil
}

// elementType is the type of VARIANT of an array's elements.
func elementType(cimType Type) (vt ole.VT, ok bool) {
	switch cimType {
	case TypeString, TypeDatetime, TypeReference:
		return ole.VT_BSTR, true
	case TypeBoolean:
		return ole.VT_BOOL, true
	case TypeReal32:
		return ole.VT_R4, true
	case TypeReal64:
		return ole.VT_R8, true
	}
	form, ok := integerFormOf(cimType)
	return form.vt, ok
}

// putElement copies a value into an array: the text of a BSTR, or the bits.
func putElement(array uintptr, index int32, value *ole.VARIANT) bool {
	source := unsafe.Pointer(&value.Val)
	if value.VT == ole.VT_BSTR {
		source = *(*unsafe.Pointer)(source)
	}
	hr, _, _ := procSafeArrayPutElement.Call(array, uintptr(unsafe.Pointer(&index)), uintptr(source))
	return !failed(uint32(hr))
}

func bstrVariant(text string) ole.VARIANT {
	return ole.NewVariant(ole.VT_BSTR, int64(uintptr(unsafe.Pointer(ole.SysAllocStringLen(text)))))
}

// variantBool is VARIANT_BOOL: all bits set for true.
func variantBool(b bool) int64 {
	if b {
		return 0xFFFF
	}
	return 0
}
