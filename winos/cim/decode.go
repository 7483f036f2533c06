package cim

import (
	"fmt"
	"reflect"
	"strings"
)

// Decode makes one row of an instance. NULL, or a property that is not there,
// leaves the zero value (nil in a pointer field, so that the two can be told
// apart). A value that does not fit its field is an error that names class and
// property.
func (t Table[T]) Decode(instance Instance) (T, error) {
	var row T
	err := t.decode(instance, &row)
	return row, err
}

// decode fills a zero row.
func (t Table[T]) decode(instance Instance, row *T) error {
	target := reflect.ValueOf(row).Elem()
	for _, f := range t.fields {
		value := any(instance.Path)
		if f.property != PathTag {
			value = Lookup(instance.Props, f.property)
		}
		if value == nil {
			continue
		}
		if err := assign(target.Field(f.index), reflect.ValueOf(value)); err != nil {
			return fmt.Errorf("cim: %s.%s: %w", t.class, f.property, err)
		}
	}
	return nil
}

// Lookup returns the value of a name without regard to case, nil for NULL and
// for a name that is not there.
func Lookup(values Values, name string) any {
	if v, ok := values[name]; ok {
		return v
	}
	for k, v := range values {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return nil
}

// Uint64 returns an out-parameter that is an unsigned number; ok is false when
// it is NULL, absent or negative, so that NULL is never taken for 0.
func Uint64(values Values, name string) (number uint64, ok bool) {
	value := Lookup(values, name)
	if value == nil {
		return 0, false
	}
	err := assign(reflect.ValueOf(&number).Elem(), reflect.ValueOf(value))
	return number, err == nil
}

var instanceType = reflect.TypeFor[Instance]()

func assign(target, value reflect.Value) error {
	switch {
	case target.Kind() == reflect.Pointer:
		fresh := reflect.New(target.Type().Elem())
		if err := assign(fresh.Elem(), value); err != nil {
			return err
		}
		target.Set(fresh)
		return nil
	case target.Kind() == reflect.Slice:
		return assignSlice(target, value)
	case target.CanInt() || target.CanUint():
		return assignInteger(target, value)
	case target.CanFloat() && value.CanFloat():
		target.SetFloat(value.Float())
		return nil
	case target.Kind() == value.Kind() && (target.Kind() != reflect.Struct || value.Type() == instanceType):
		target.Set(value.Convert(target.Type()))
		return nil
	}
	return mismatch(target, value)
}

// assignInteger accepts every width as long as the number fits: WMI itself
// widens (a uint16 travels as a 32-bit number).
func assignInteger(target, value reflect.Value) error {
	var negative bool
	var bits uint64
	switch {
	case value.CanInt():
		negative, bits = value.Int() < 0, uint64(value.Int())
	case value.CanUint():
		bits = value.Uint()
	default:
		return mismatch(target, value)
	}
	if target.CanUint() {
		if negative || target.OverflowUint(bits) {
			return mismatch(target, value)
		}
		target.SetUint(bits)
		return nil
	}
	if !negative && int64(bits) < 0 || target.OverflowInt(int64(bits)) {
		return mismatch(target, value)
	}
	target.SetInt(int64(bits))
	return nil
}

func assignSlice(target, value reflect.Value) error {
	if value.Kind() != reflect.Slice {
		return mismatch(target, value)
	}
	fresh := reflect.MakeSlice(target.Type(), value.Len(), value.Len())
	for i := range value.Len() {
		if err := assign(fresh.Index(i), value.Index(i)); err != nil {
			return err
		}
	}
	target.Set(fresh)
	return nil
}

func mismatch(target, value reflect.Value) error {
	return fmt.Errorf("a value of type %s does not fit %s", value.Type(), target.Type())
}
