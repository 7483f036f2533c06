package standin

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// oneClass describes MSFT_Disk with a property of each kind that values alone do not tell.
func oneClass(name string) (sim.ClassDescription, error) {
	if name != "MSFT_Disk" {
		return sim.ClassDescription{}, errors.New("no such class")
	}
	return sim.ClassDescription{Name: name, Properties: []sim.TypedName{
		{Name: "Letter", Type: cim.TypeChar16}, {Name: "When", Type: cim.TypeDatetime}, {Name: "Signature", Type: cim.TypeUint32},
		{Name: "Status", Type: cim.TypeUint16 | cim.TypeArray},
	}}, nil
}

func TestValuesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	nested := cim.Instance{Class: "Other", Path: `Other.Id="1"`, Props: cim.Values{"Inner": cim.Instance{Class: "In", Props: cim.Values{}}}}
	for _, value := range []any{
		"text é €", "", true, false, uint8(255), int16(-2), uint16(0xFFFF), int32(math.MinInt32), uint32(0xD0000013), int64(math.MinInt64),
		uint64(math.MaxUint64), float32(1.5), -2.25, nested,
		[]string{"a", ""}, []string{}, []bool{true, false}, []uint8{1, 2}, []int16{-1}, []uint16{0xD013}, []int32{-7}, []uint32{1 << 31},
		[]int64{-1}, []uint64{1 << 63}, []float32{0.5}, []float64{0.25}, []cim.Instance{nested, {Class: "B", Props: cim.Values{}}}, nil,
	} {
		var b body
		if err := b.value(value, 0, oneClass); err != nil {
			t.Fatal(err)
		}
		r := reader{data: b.data}
		if got := r.value(0); !reflect.DeepEqual(got, value) || r.end() != nil {
			t.Errorf("%#v came back as %#v, %v", value, got, r.end())
		}
	}
}

// typesOf writes an object and reads the types on the wire.
func typesOf(t *testing.T, instance cim.Instance) map[string]cim.Type {
	t.Helper()
	var b body
	if err := b.instance(instance, oneClass); err != nil {
		t.Fatal(err)
	}
	r := reader{data: b.data}
	_, _ = r.text(), r.text()
	types := map[string]cim.Type{}
	for range r.count(7) {
		name := r.text()
		peek := reader{data: r.data}
		types[name] = cim.Type(peek.u16())
		r.value(0)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	return types
}

// What a value cannot tell, its class does; what the class does not declare, the value.
func TestDeclaredTypes(t *testing.T) {
	t.Parallel()
	got := typesOf(t, cim.Instance{Class: "MSFT_Disk", Props: cim.Values{
		"Letter": uint16('S'), "When": "20260101000000.000000+000", "Signature": nil, "Status": []uint16(nil), "Other": uint64(1), "Void": nil,
	}})
	want := map[string]cim.Type{
		"Letter": cim.TypeChar16, "When": cim.TypeDatetime, "Signature": cim.TypeUint32, "Status": cim.TypeUint16 | cim.TypeArray,
		"Other": cim.TypeUint64, "Void": cim.TypeString,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("types %v", got)
	}
	got = typesOf(t, cim.Instance{Class: "MSFT_Disk", Props: cim.Values{"Signature": "no number", "Status": null(cim.TypeObject)}})
	if want := (map[string]cim.Type{"Signature": cim.TypeString, "Status": cim.TypeObject}); !reflect.DeepEqual(got, want) {
		t.Errorf("types %v", got)
	}
}

func TestValuesThatAreNone(t *testing.T) {
	t.Parallel()
	var b body
	if err := b.value(struct{}{}, 0, oneClass); err == nil {
		t.Error("a struct was taken for a value")
	}
	if err := b.instance(cim.Instance{Class: "X", Props: cim.Values{"p": []any{1}}}, oneClass); err == nil {
		t.Error("a slice of anything was taken for a value")
	}
}

// Nothing that a client may send is read beyond its end, or makes much of little.
func FuzzRequestValues(f *testing.F) {
	var b body
	b.count(1)
	b.text("Name")
	if err := b.value([]cim.Instance{{Class: "C", Props: cim.Values{"a": []string{"x"}, "b": nil}}}, 0, oneClass); err != nil {
		f.Fatal(err)
	}
	f.Add(b.data)
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := reader{data: data}
		values := r.named(0)
		if r.end() != nil {
			return
		}
		var again body
		again.count(len(values))
		if err := again.named(values, oneClass); err != nil {
			t.Fatal(err)
		}
		second := reader{data: again.data}
		// NaN is not equal to itself, so lengths are compared.
		if got := second.named(0); second.end() != nil || len(got) != len(values) {
			t.Errorf("%v came back as %v, %v", values, got, second.end())
		}
	})
}
