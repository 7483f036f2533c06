package cim

import (
	"context"
	"fmt"
	"reflect"
	"strings"
)

// PathTag is the tag of a string field that takes the object path of a row.
const PathTag = "__RELPATH"

// Table is a class seen as rows of a Go struct. Fields are bound by the tag
// `cim:"Name"`; what a tag names is selected, nothing else. A Table never
// changes and is safe for concurrent use.
type Table[T any] struct {
	namespace string
	class     string
	selection string // "SELECT … FROM class"
	fields    []field
}

// field binds one property to one struct field.
type field struct {
	property string
	index    int
}

// NewTable binds T to a class. keys are the key properties of the class, which
// WMI needs in the selection to give a row its path; without keys everything is
// selected, which serves classes whose keys are not documented. T is part of
// the program, so a T that cannot be bound panics, as a bad regular expression
// does in MustCompile.
func NewTable[T any](namespace, class string, keys ...string) Table[T] {
	t := Table[T]{namespace: namespace, class: class}
	rowType := reflect.TypeFor[T]()
	columns := append([]string(nil), keys...)
	for i := range rowType.NumField() {
		property, ok := rowType.Field(i).Tag.Lookup("cim")
		if !ok {
			continue
		}
		if !rowType.Field(i).IsExported() || !isName(property) {
			panic(fmt.Sprintf("cim: field %s of %s cannot be bound", rowType.Field(i).Name, rowType))
		}
		t.fields = append(t.fields, field{property: property, index: i})
		if property != PathTag && !containsFold(columns, property) {
			columns = append(columns, property)
		}
	}
	selected := strings.Join(columns, ", ")
	if t.wantsPath() && len(keys) == 0 {
		selected = "*"
	}
	t.selection = "SELECT " + selected + " FROM " + class
	return t
}

// Class returns the name of the class.
func (t Table[T]) Class() string { return t.class }

// Namespace returns the namespace of the class.
func (t Table[T]) Namespace() string { return t.namespace }

func (t Table[T]) wantsPath() bool {
	for _, f := range t.fields {
		if f.property == PathTag {
			return true
		}
	}
	return false
}

// Rows returns the rows that meet all conditions, in the order of WMI.
func (t Table[T]) Rows(ctx context.Context, s Session, conditions ...Condition) ([]T, error) {
	clause, err := where(conditions)
	if err != nil {
		return nil, err
	}
	return t.query(ctx, s, t.selection+clause)
}

// Associated returns the rows that an association class joins to the object at
// path. Source: "ASSOCIATORS OF Statement", WMI SDK.
func (t Table[T]) Associated(ctx context.Context, s Session, path, association string) ([]T, error) {
	return t.query(ctx, s, "ASSOCIATORS OF {"+path+"} WHERE AssocClass = "+association+" ResultClass = "+t.class)
}

func (t Table[T]) query(ctx context.Context, s Session, wql string) ([]T, error) {
	instances, err := s.Query(ctx, t.namespace, wql)
	if err != nil {
		return nil, err
	}
	rows := make([]T, len(instances))
	for i, instance := range instances {
		if err := t.decode(instance, &rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func containsFold(list []string, text string) bool {
	for _, s := range list {
		if strings.EqualFold(s, text) {
			return true
		}
	}
	return false
}
