package sim

import (
	"strings"

	"github.com/csi-windows/csi-windows/winos/cim"
)

// class is one CIM class of the node: how to list its objects, read their
// properties and call its methods. Rows are the node's own structs.
type class struct {
	namespace string
	name      string
	props     map[string]prop // by declared name
	order     []string        // declared names, for SELECT *
	folded    map[string]string
	keys      []string
	// rows returns all objects. The node's lock is held.
	rows func(n *Node) []any
	// path is the object's relative path (__RELPATH).
	path    func(row any) string
	methods map[string]method // by lower-case name
	// service must run for the class to answer; empty means none.
	service string
}

type prop func(n *Node, row any) any

// kind is the CIM type of a parameter, told by a Go value of it.
type kind uint8

const (
	kindString kind = iota
	kindBool
	kindU16
	kindU32
	kindU64
	kindStrings
)

func (k kind) holds(v any) bool {
	switch v.(type) {
	case string:
		return k == kindString
	case bool:
		return k == kindBool
	case uint16:
		return k == kindU16
	case uint32:
		return k == kindU32
	case uint64:
		return k == kindU64
	case []string:
		return k == kindStrings
	}
	return false
}

// method is one method of a class. run is called with the node's lock held for
// writing; row is nil when a static method is called on the class.
type method struct {
	name   string
	words  string // the signature as params reads it
	params map[string]kind
	static bool
	run    func(n *Node, row any, in args) (cim.Result, error)
}

// args are checked in-parameters under their declared names.
type args map[string]any

func (a args) text(name string) string { s, _ := a[name].(string); return s }
func (a args) flag(name string) bool   { b, _ := a[name].(bool); return b }
func (a args) has(name string) bool    { return a[name] != nil }
func (a args) u16(name string) uint16  { v, _ := a[name].(uint16); return v }
func (a args) u32(name string) uint32  { v, _ := a[name].(uint32); return v }
func (a args) u64(name string) uint64  { v, _ := a[name].(uint64); return v }
func (a args) flagOr(name string, d bool) bool {
	if b, ok := a[name].(bool); ok {
		return b
	}
	return d
}

// returns is a method's plain answer.
func returns(code uint32) (cim.Result, error) { return cim.Result{ReturnValue: code}, nil }

// check matches in-parameters against the method's signature. An unset (nil)
// parameter counts as left out. Source: IWbemClassObject::Put on an instance of
// the in-parameters class.
func (m *method) check(object string, in cim.Values) (args, error) {
	checked := make(args, len(in))
	for name, value := range in {
		declared, k, ok := m.param(name)
		if !ok {
			return nil, &cim.Error{Op: "Exec", Object: object, HRESULT: cim.InvalidMethodParam, Text: "no parameter " + name}
		}
		if value == nil {
			continue
		}
		if !k.holds(value) {
			return nil, &cim.Error{Op: "Exec", Object: object, HRESULT: cim.TypeMismatch, Text: "parameter " + name}
		}
		checked[declared] = value
	}
	return checked, nil
}

func (m *method) param(name string) (string, kind, bool) {
	if k, ok := m.params[name]; ok {
		return name, k, true
	}
	for declared, k := range m.params {
		if strings.EqualFold(declared, name) {
			return declared, k, true
		}
	}
	return "", 0, false
}

// params builds a signature from "Name:type" words: s string, b bool, c16
// character, u16, u32, u64, ss string array.
func params(words string) map[string]kind {
	types := map[string]kind{"s": kindString, "b": kindBool, "c16": kindU16, "u16": kindU16, "u32": kindU32, "u64": kindU64, "ss": kindStrings}
	out := map[string]kind{}
	for _, word := range strings.Fields(words) {
		name, t, _ := strings.Cut(word, ":")
		out[name] = types[t]
	}
	return out
}

// classOf starts a class whose rows are of type T.
type classOf[T any] struct{ *class }

func newClass[T any](namespace, name string, rows func(n *Node) []T, path func(T) string) classOf[T] {
	return classOf[T]{&class{
		namespace: namespace, name: name,
		props: map[string]prop{}, folded: map[string]string{}, methods: map[string]method{},
		rows: func(n *Node) []any {
			typed := rows(n)
			out := make([]any, len(typed))
			for i, row := range typed {
				out[i] = row
			}
			return out
		},
		path: func(row any) string { return path(row.(T)) },
	}}
}

// key declares a property that is part of the object's path.
func (c classOf[T]) key(name string, get func(T) any) classOf[T] {
	c.keys = append(c.keys, name)
	return c.prop(name, get)
}

func (c classOf[T]) prop(name string, get func(T) any) classOf[T] {
	return c.nodeProp(name, func(_ *Node, row T) any { return get(row) })
}

// nodeProp declares a property that is worked out from the node's state.
func (c classOf[T]) nodeProp(name string, get func(*Node, T) any) classOf[T] {
	c.props[name] = func(n *Node, row any) any { return get(n, row.(T)) }
	c.order = append(c.order, name)
	c.folded[strings.ToLower(name)] = name
	return c
}

func (c classOf[T]) method(name, signature string, run func(*Node, T, args) (cim.Result, error)) classOf[T] {
	c.methods[strings.ToLower(name)] = method{name: name, words: signature, params: params(signature), run: func(n *Node, row any, in args) (cim.Result, error) {
		return run(n, row.(T), in)
	}}
	return c
}

func (c classOf[T]) static(name, signature string, run func(*Node, args) (cim.Result, error)) classOf[T] {
	c.methods[strings.ToLower(name)] = method{name: name, words: signature, params: params(signature), static: true, run: func(n *Node, _ any, in args) (cim.Result, error) {
		return run(n, in)
	}}
	return c
}

// find gives a property's declared name and reader.
func (c *class) find(name string) (string, prop, bool) {
	if p, ok := c.props[name]; ok {
		return name, p, true
	}
	declared, ok := c.folded[strings.ToLower(name)]
	return declared, c.props[declared], ok
}

// instance reads the named properties of a row, all when names is empty.
func (c *class) instance(n *Node, row any, names []string) cim.Instance {
	withKey := len(names) == 0
	if withKey {
		names = c.order
	}
	inst := cim.Instance{Class: c.name, Props: make(cim.Values, len(names))}
	keys := 0
	for _, name := range names {
		declared, get, ok := c.find(name)
		if !ok {
			continue // refused before, in Query
		}
		inst.Props[declared] = get(n, row)
		for _, k := range c.keys {
			if k == declared {
				keys++
			}
		}
	}
	if withKey || len(c.keys) > 0 && keys >= len(c.keys) {
		inst.Path = c.path(row)
	}
	return inst
}

// schema is every class and association of the node.
type schema struct {
	classes map[string]*class   // by lower-case name
	assocs  map[string]*assoc   // by lower-case name
	types   map[string]cim.Type // see declaredTypes
}

func newSchema() schema {
	s := schema{classes: map[string]*class{}, assocs: map[string]*assoc{}, types: declaredTypes()}
	for _, c := range []*class{
		diskClass(), partitionClass(), volumeClass(), physicalDiskClass(), storageSettingClass(),
		smbGlobalMappingClass(), biosClass(),
		iscsiTargetClass(), iscsiPortalClass(), iscsiSessionClass(), iscsiConnectionClass(), initiatorPortClass(),
	} {
		s.classes[strings.ToLower(c.name)] = c
	}
	for _, a := range append(storageAssocs(), iscsiAssocs()...) {
		s.assocs[strings.ToLower(a.name)] = a
		s.classes[strings.ToLower(a.name)] = a.class()
	}
	return s
}

// class finds a class of a namespace.
func (s *schema) class(namespace, name string) *class {
	c := s.classes[name]
	if c == nil {
		c = s.classes[strings.ToLower(name)]
	}
	if c == nil || !sameNamespace(c.namespace, namespace) {
		return nil
	}
	return c
}

// sameNamespace compares without case; / and \ are one.
func sameNamespace(a, b string) bool {
	if a == b {
		return true
	}
	return strings.EqualFold(strings.ReplaceAll(a, "/", `\`), strings.ReplaceAll(b, "/", `\`))
}

func (s *schema) knowsNamespace(namespace string) bool {
	for _, known := range []string{cim.NamespaceStorage, cim.NamespaceSMB, cim.NamespaceCIMV2} {
		if sameNamespace(known, namespace) {
			return true
		}
	}
	return false
}
