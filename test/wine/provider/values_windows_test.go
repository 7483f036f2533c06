package provider

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
)

const class = "Lab_Thing"

// sample is values of a CIM type as the provider writes them, and the Go values
// they are. As in-parameters they make the way back.
type sample struct {
	t      cim.Type
	values any
	bits   []body
}

func bits(all ...uint64) []body {
	out := make([]body, len(all))
	for i, one := range all {
		out[i] = body{}.u64(one)
	}
	return out
}

func texts(all ...string) []body {
	out := make([]body, len(all))
	for i, one := range all {
		out[i] = body{}.text(one)
	}
	return out
}

// signed is the 64-bit form of a negative number.
func signed(v int64) uint64 { return uint64(v) }

func samples() []sample {
	stamp := "20260101000000.000000+000"
	words := []string{"", "a", `\\?\Volume{é}\`, "日本 \U0001F4BE", strings.Repeat("long ", 2000)}
	reals := []float64{0, -1.5, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(-1)}
	return []sample{
		{cim.TypeSint8, []int16{0, 127, -128}, bits(0, 127, signed(-128))},
		{cim.TypeUint8, []uint8{0, 255}, bits(0, 255)},
		{cim.TypeSint16, []int16{0, 32767, -32768}, bits(0, 32767, signed(-32768))},
		{cim.TypeUint16, []uint16{0, 32768, 65535}, bits(0, 32768, 65535)},
		{cim.TypeChar16, []uint16{0, 'X', 65535}, bits(0, 'X', 65535)},
		{cim.TypeSint32, []int32{0, math.MaxInt32, math.MinInt32}, bits(0, math.MaxInt32, signed(math.MinInt32))},
		{cim.TypeUint32, []uint32{0, 1 << 31, math.MaxUint32}, bits(0, 1<<31, math.MaxUint32)},
		{cim.TypeSint64, []int64{0, math.MaxInt64, math.MinInt64}, bits(0, math.MaxInt64, 1<<63)},
		{cim.TypeUint64, []uint64{0, 1 << 63, math.MaxUint64}, bits(0, 1<<63, math.MaxUint64)},
		{cim.TypeBoolean, []bool{true, false}, bits(1, 0)},
		{cim.TypeReal32, []float32{0, -1.5, math.MaxFloat32}, []body{body{}.f64(0), body{}.f64(-1.5), body{}.f64(math.MaxFloat32)}},
		{cim.TypeReal64, reals, []body{body{}.f64(reals[0]), body{}.f64(reals[1]), body{}.f64(reals[2]), body{}.f64(reals[3]), body{}.f64(reals[4])}},
		{cim.TypeString, words, texts(words...)},
		{cim.TypeDatetime, []string{stamp}, texts(stamp)},
		{cim.TypeReference, []string{`C.K="\\\\a\"b"`}, texts(`C.K="\\\\a\"b"`)},
	}
}

// properties are the samples one by one, as an array, as an empty one and as NULL.
func properties() (written []body, want cim.Values) {
	want = cim.Values{}
	add := func(name string, v any, b body) {
		written, want[name] = append(written, b), v
	}
	for _, s := range samples() {
		values := reflect.ValueOf(s.values)
		for i, one := range s.bits {
			name := fmt.Sprintf("T%d_%d", s.t, i)
			add(name, values.Index(i).Interface(), value(name, s.t, one))
		}
		name := fmt.Sprintf("T%d", s.t)
		add(name+"_all", s.values, value(name+"_all", s.t|cim.TypeArray, body{}.list(s.bits...)))
		empty := reflect.MakeSlice(values.Type(), 0, 0).Interface()
		add(name+"_none", empty, value(name+"_none", s.t|cim.TypeArray, body{}.list()))
		add(name+"_null", nil, null(name+"_null", s.t))
		add(name+"_nullArray", nil, null(name+"_nullArray", s.t|cim.TypeArray))
	}
	return written, want
}

// same compares values by name and tells what differs.
func same(t *testing.T, got, want cim.Values) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d values, want %d", len(got), len(want))
	}
	for name, v := range want {
		if !reflect.DeepEqual(got[name], v) {
			t.Errorf("%s is %T %.60v, want %T %.60v", name, got[name], got[name], v, v)
		}
	}
}

func TestEveryTypeOfAProperty(t *testing.T) {
	written, want := properties()
	inner := object("Lab_Inner", `Lab_Inner.K="v"`, text("Name", "inner"), value("Deep", cim.TypeObject, object("Lab_Deep", "")))
	written = append(written,
		value("Embedded", cim.TypeObject, inner),
		value("AllEmbedded", cim.TypeObject|cim.TypeArray, body{}.list(inner, object("Lab_Deep", ""))),
		null("NoEmbedded", cim.TypeObject))
	deep := cim.Instance{Class: "Lab_Deep", Props: cim.Values{}}
	innerValue := cim.Instance{Class: "Lab_Inner", Path: `Lab_Inner.K="v"`, Props: cim.Values{"Name": "inner", "Deep": deep}}
	want["Embedded"], want["AllEmbedded"], want["NoEmbedded"] = innerValue, []cim.Instance{innerValue, deep}, nil

	session := play(t, script{query: rows(object(class, `Lab_Thing.K="é"`, written...))})
	all, err := session.Query(t.Context(), space, "SELECT * FROM Lab_Thing")
	if err != nil || len(all) != 1 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	if all[0].Class != class || all[0].Path != `Lab_Thing.K="é"` {
		t.Errorf("class %s, path %s", all[0].Class, all[0].Path)
	}
	same(t, all[0].Props, want)
}

// A text ends at its first NUL, as its readers on Windows take it.
func TestTextWithNUL(t *testing.T) {
	session := play(t, script{query: rows(object(class, "", text("Name", "a\x00b")))})
	all, err := session.Query(t.Context(), space, "SELECT * FROM Lab_Thing")
	if err != nil || len(all) != 1 || all[0].Props["Name"] != "a" || all[0].Path != "" {
		t.Errorf("%+v, %v", all, err)
	}
}

// Whatever goes in as a parameter arrives as it is, of every type, and NULL.
func TestEveryTypeOfAParameter(t *testing.T) {
	written, want := properties()
	declared := make([]body, len(written))
	for i, b := range written {
		declared[i] = declaration(b)
	}
	echo := func(_, _ string, in []byte) (body, error) {
		// The in-parameters come in the form the out-parameters have.
		count := request(in).count()
		return body{}.u8(1).u32(count + 1).then(in[4:]).then(number("ReturnValue", cim.TypeUint32, 0)), nil
	}
	session := play(t, script{class: classWith("Echo", declared...), exec: echo})
	result, err := session.Exec(t.Context(), space, class, "Echo", want)
	if err != nil {
		t.Fatal(err)
	}
	same(t, result.Out, want)
}

func TestRefusedParameters(t *testing.T) {
	session := play(t, script{class: classWith("Do",
		parameter("U8", cim.TypeUint8), parameter("I8", cim.TypeSint8), parameter("U32", cim.TypeUint32), parameter("I64", cim.TypeSint64),
		parameter("Text", cim.TypeString), parameter("Texts", cim.TypeString|cim.TypeArray), parameter("Numbers", cim.TypeUint16|cim.TypeArray),
		parameter("Object", cim.TypeObject), parameter("Objects", cim.TypeObject|cim.TypeArray))})
	for name, wrong := range map[string][]any{
		"U8": {256, -1, "1", true, 1.0, []uint8{1}}, "I8": {128, -129, uint8(200)}, "U32": {uint64(1) << 32, -1},
		"I64": {uint64(math.MaxUint64)}, "Text": {1, false, []string{"x"}}, "Texts": {"x", []int{1}, []any{nil}},
		"Numbers": {[]string{"1"}, []int{65536}, []any{uint16(1), "x"}}, "Object": {"x", 1, cim.Instance{}}, "Objects": {[]cim.Instance{{}}},
	} {
		for _, v := range wrong {
			_, err := session.Exec(t.Context(), space, class, "Do", cim.Values{name: v})
			failure(t, err, cim.TypeMismatch, "Lab_Thing.Do", "parameter "+name)
		}
	}
	_, err := session.Exec(t.Context(), space, class, "Do", cim.Values{"a\x00b": true})
	failure(t, err, cim.InvalidMethodParam, "Lab_Thing.Do", "parameter")
}
