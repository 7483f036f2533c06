package sim

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/sim/wql"
	"github.com/csi-windows/csi-windows/winos/cim"
)

// Query implements cim.Session.
func (n *Node) Query(ctx context.Context, namespace, text string) ([]cim.Instance, error) {
	q, err := wql.Parse(text)
	if err != nil {
		return nil, wqlError("Query", "", err)
	}
	class := q.Class
	if q.Kind == wql.Associators {
		class = q.Source.Class
		if q.AssocClass != "" {
			class = q.AssocClass
		}
	}
	return gated(ctx, &n.gate, site{prefix: "cim.Query", class: class, object: text}, func() ([]cim.Instance, error) {
		if !n.schema.knowsNamespace(namespace) {
			return nil, &cim.Error{Op: "Query", Object: class, HRESULT: cim.InvalidNamespace, Text: namespace}
		}
		n.look()
		if err := n.serviceReady(namespace, class); err != nil {
			return nil, err
		}
		n.mu.RLock()
		defer n.mu.RUnlock()
		if n.off.Load() {
			return nil, &cim.Error{Op: "Query", Object: class, HRESULT: cim.RPCServerUnvail}
		}
		if q.Kind == wql.Associators {
			return n.associatorsLocked(namespace, &q)
		}
		return n.selectLocked(namespace, &q)
	})
}

// serviceReady refuses queries of classes whose service does not run; the
// provider's code is the HRESULT. Source: ISDSC_SERVICE_NOT_RUNNING.
func (n *Node) serviceReady(namespace, className string) error {
	c := n.schema.class(namespace, className)
	if c == nil || c.service == "" {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.off.Load() || n.runningLocked(c.service) {
		return nil
	}
	return &cim.Error{Op: "Query", Object: c.name, HRESULT: isdscServiceNotRunning}
}

func (n *Node) selectLocked(namespace string, q *wql.Query) ([]cim.Instance, error) {
	c := n.schema.class(namespace, q.Class)
	if c == nil {
		return nil, &cim.Error{Op: "Query", Object: q.Class, HRESULT: cim.InvalidClass}
	}
	for _, column := range q.Columns {
		if _, _, ok := c.find(column); !ok && !strings.HasPrefix(column, "__") {
			return nil, &cim.Error{Op: "Query", Object: c.name, HRESULT: cim.InvalidQuery, Text: "no property " + column}
		}
	}
	var out []cim.Instance
	for _, row := range c.rows(n) {
		ok, err := q.Match(func(property string) (any, bool) {
			_, get, ok := c.find(property)
			if !ok {
				return nil, false
			}
			return get(n, row), true
		})
		if err != nil {
			return nil, wqlError("Query", c.name, err)
		}
		if ok {
			out = append(out, c.instance(n, row, q.Columns))
		}
	}
	return out, nil
}

// associatorsLocked answers ASSOCIATORS OF.
func (n *Node) associatorsLocked(namespace string, q *wql.Query) ([]cim.Instance, error) {
	c := n.schema.class(namespace, q.Source.Class)
	if c == nil {
		return nil, &cim.Error{Op: "Query", Object: q.Source.Class, HRESULT: cim.InvalidClass}
	}
	if q.AssocClass != "" && n.schema.assocs[strings.ToLower(q.AssocClass)] == nil {
		return nil, &cim.Error{Op: "Query", Object: q.AssocClass, HRESULT: cim.InvalidClass}
	}
	source := n.rowLocked(c, q.Source)
	if source == nil {
		return nil, &cim.Error{Op: "Query", Object: c.name, HRESULT: cim.NotFound}
	}
	var out []cim.Instance
	for _, a := range n.schema.assocs {
		if q.AssocClass != "" && !strings.EqualFold(a.name, q.AssocClass) {
			continue
		}
		resultClass, rows := a.follow(n, c.name, source)
		if resultClass == "" || q.ResultClass != "" && !strings.EqualFold(resultClass, q.ResultClass) ||
			q.Role != "" && !strings.EqualFold(a.roleOf(c.name), q.Role) ||
			q.ResultRole != "" && !strings.EqualFold(a.roleOf(resultClass), q.ResultRole) {
			continue
		}
		for _, row := range rows {
			out = append(out, n.schema.class(namespace, resultClass).instance(n, row, nil))
		}
	}
	return out, nil
}

// rowLocked finds the object at a path; keys compare without case.
func (n *Node) rowLocked(c *class, path wql.Path) any {
	if len(path.Keys) == 0 {
		return nil
	}
next:
	for _, row := range c.rows(n) {
		for _, key := range c.keys {
			want, ok := path.Key(key)
			if !ok || !strings.EqualFold(want, keyText(c.props[key](n, row))) {
				continue next
			}
		}
		return row
	}
	return nil
}

// keyText is a key property as a path holds it.
func keyText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case uint16:
		return strconv.FormatUint(uint64(v), 10)
	case uint32:
		return strconv.FormatUint(uint64(v), 10)
	}
	return ""
}

// Exec implements cim.Session.
func (n *Node) Exec(ctx context.Context, namespace, path, methodName string, in cim.Values) (cim.Result, error) {
	p, err := wql.ParsePath(strings.TrimSuffix(path, "=@"))
	if err != nil {
		return cim.Result{}, wqlError("Exec", methodName, err)
	}
	s := site{prefix: "cim.Exec", class: p.Class, method: methodName, object: path, params: in}
	result, err := gated(ctx, &n.gate, s, func() (cim.Result, error) {
		result, err := n.exec(namespace, p, methodName, in)
		if err == nil && strings.EqualFold(p.Class, "MSFT_SmbGlobalMapping") {
			n.files.Refresh(ctx)
		}
		return result, err
	})
	var forced *returnValueError
	if errors.As(err, &forced) {
		return cim.Result{ReturnValue: forced.value}, nil
	}
	return result, err
}

func (n *Node) exec(namespace string, path wql.Path, methodName string, in cim.Values) (cim.Result, error) {
	object := path.Class + "." + methodName
	fail := func(hresult uint32) (cim.Result, error) {
		return cim.Result{}, &cim.Error{Op: "Exec", Object: object, HRESULT: hresult}
	}
	if !n.schema.knowsNamespace(namespace) {
		return fail(cim.InvalidNamespace)
	}
	c := n.schema.class(namespace, path.Class)
	if c == nil {
		return fail(cim.InvalidClass)
	}
	m, ok := c.methods[strings.ToLower(methodName)]
	if !ok {
		return fail(cim.InvalidMethod)
	}
	checked, err := m.check(object, in)
	if err != nil {
		return cim.Result{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.off.Load() {
		return fail(cim.RPCServerUnvail)
	}
	n.tickLocked()
	row := n.rowLocked(c, path)
	switch {
	case row == nil && len(path.Keys) > 0:
		return fail(cim.NotFound)
	case row == nil && !m.static:
		return fail(cim.InvalidMethodParam) // an instance method on a class path
	}
	result, err := m.run(n, row, checked)
	if err != nil {
		return result, err
	}
	return result, n.saveLocked()
}

// unlocked runs a call of the file name space without the node's lock, which
// the name space may need to reach a share. The caller looks nothing up again
// afterwards.
func (n *Node) unlocked(do func(ctx context.Context) error) error {
	n.mu.Unlock()
	defer n.mu.Lock()
	return do(context.Background())
}

// wqlError gives the HRESULT for a query or path that cannot be read.
func wqlError(op, object string, err error) error {
	e := &cim.Error{Op: op, Object: object, HRESULT: cim.InvalidQuery, Text: err.Error()}
	var parse *wql.Error
	if errors.As(err, &parse) {
		switch parse.Kind {
		case wql.InvalidPath:
			e.HRESULT = cim.InvalidObjectPath
		case wql.QuotaViolation:
			e.HRESULT = cim.QuotaViolation
		case wql.TypeMismatch:
			e.HRESULT = cim.TypeMismatch
		}
	}
	return e
}
