package standin

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// nestingMax bounds objects inside objects.
const nestingMax = 8

// null is NULL of a type, where nothing else tells the type.
type null cim.Type

// describe gives a class's declaration.
type describe func(class string) (sim.ClassDescription, error)

// typeOf is the CIM type of a Go value; nil has none.
func typeOf(value any) (cim.Type, bool) {
	switch value.(type) {
	case string:
		return cim.TypeString, true
	case bool:
		return cim.TypeBoolean, true
	case int8:
		return cim.TypeSint8, true
	case uint8:
		return cim.TypeUint8, true
	case int16:
		return cim.TypeSint16, true
	case uint16:
		return cim.TypeUint16, true
	case int32:
		return cim.TypeSint32, true
	case uint32:
		return cim.TypeUint32, true
	case int64:
		return cim.TypeSint64, true
	case uint64:
		return cim.TypeUint64, true
	case float32:
		return cim.TypeReal32, true
	case float64:
		return cim.TypeReal64, true
	case cim.Instance:
		return cim.TypeObject, true
	}
	_, element := elementsOf(value)
	return element | cim.TypeArray, element != 0
}

// elementsOf takes a slice apart; the type is 0 when it is none.
func elementsOf(value any) ([]any, cim.Type) {
	switch v := value.(type) {
	case []string:
		return boxed(v), cim.TypeString
	case []bool:
		return boxed(v), cim.TypeBoolean
	case []uint8:
		return boxed(v), cim.TypeUint8
	case []int16:
		return boxed(v), cim.TypeSint16
	case []uint16:
		return boxed(v), cim.TypeUint16
	case []int32:
		return boxed(v), cim.TypeSint32
	case []uint32:
		return boxed(v), cim.TypeUint32
	case []int64:
		return boxed(v), cim.TypeSint64
	case []uint64:
		return boxed(v), cim.TypeUint64
	case []float32:
		return boxed(v), cim.TypeReal32
	case []float64:
		return boxed(v), cim.TypeReal64
	case []cim.Instance:
		return boxed(v), cim.TypeObject
	}
	return nil, 0
}

// boxed keeps a nil slice nil, which is NULL.
func boxed[T any](list []T) []any {
	if list == nil {
		return nil
	}
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// sameForm tells whether a value with the form of one type may be sent as the other.
func sameForm(declared, actual cim.Type) bool {
	form := func(t cim.Type) cim.Type {
		switch t &^ cim.TypeArray {
		case cim.TypeDatetime, cim.TypeReference:
			return t&cim.TypeArray | cim.TypeString
		case cim.TypeChar16:
			return t&cim.TypeArray | cim.TypeUint16
		}
		return t
	}
	return form(declared) == form(actual)
}

// value writes a value with its type. declared counts where the value cannot
// tell: for NULL, and for types that share a Go type.
func (b *body) value(value any, declared cim.Type, classes describe) error {
	if t, ok := value.(null); ok {
		b.null(cim.Type(t))
		return nil
	}
	actual, known := typeOf(value)
	switch {
	case value == nil:
		b.null(declared)
		return nil
	case !known:
		return fmt.Errorf("a %T is no CIM value", value)
	case declared == 0 || !sameForm(declared, actual):
		declared = actual
	}
	if actual&cim.TypeArray == 0 {
		b.u16(uint16(declared))
		b.u8(0)
		return b.element(value, classes)
	}
	elements, _ := elementsOf(value)
	if elements == nil {
		b.null(declared)
		return nil
	}
	b.u16(uint16(declared))
	b.u8(0)
	b.count(len(elements))
	for _, element := range elements {
		if err := b.element(element, classes); err != nil {
			return err
		}
	}
	return nil
}

func (b *body) null(t cim.Type) {
	b.u16(uint16(t))
	b.u8(1)
}

// element writes a value that is no array, without its type.
func (b *body) element(value any, classes describe) error {
	switch v := value.(type) {
	case string:
		b.text(v)
	case bool:
		var bit uint64
		if v {
			bit = 1
		}
		b.u64(bit)
	case int8:
		b.u64(uint64(int64(v)))
	case uint8:
		b.u64(uint64(v))
	case int16:
		b.u64(uint64(int64(v)))
	case uint16:
		b.u64(uint64(v))
	case int32:
		b.u64(uint64(int64(v)))
	case uint32:
		b.u64(uint64(v))
	case int64:
		b.u64(uint64(v))
	case uint64:
		b.u64(v)
	case float32:
		b.u64(math.Float64bits(float64(v)))
	case float64:
		b.u64(math.Float64bits(v))
	case cim.Instance:
		return b.instance(v, classes)
	}
	return nil
}

// instance writes an object: its properties in declared order, those that the
// class does not declare behind them.
func (b *body) instance(instance cim.Instance, classes describe) error {
	b.text(instance.Class)
	b.text(instance.Path)
	class, err := classes(instance.Class)
	if err != nil {
		class = sim.ClassDescription{} // an object of no class that we know: as its values are
	}
	b.count(len(instance.Props))
	left := maps.Clone(instance.Props)
	for _, property := range class.Properties {
		if value, ok := left[property.Name]; ok {
			delete(left, property.Name)
			b.text(property.Name)
			if err := b.value(value, property.Type, classes); err != nil {
				return fmt.Errorf("%s.%s: %w", instance.Class, property.Name, err)
			}
		}
	}
	return b.named(left, classes)
}

// named writes names and values, in the order of the names.
func (b *body) named(values cim.Values, classes describe) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b.text(name)
		if err := b.value(values[name], typeWhenNull(values[name]), classes); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// typeWhenNull is the type of a value of which nothing is declared.
func typeWhenNull(value any) cim.Type {
	if t, ok := typeOf(value); ok {
		return t
	}
	return cim.TypeString
}
