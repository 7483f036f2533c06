package standin

import (
	"strings"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/sim/wql"
	"github.com/csi-windows/csi-windows/winos/cim"
)

func wmiOperations() map[Op]operation {
	return map[Op]operation{
		OpQuery:     {"Query", true, runQuery},
		OpClass:     {"Class", true, runClass},
		OpExec:      {"Exec", true, runExec},
		OpNamespace: {"Namespace", true, runNamespace},
	}
}

func runQuery(c *call) error {
	namespace, text := c.in.text(), c.in.text()
	if q, err := wql.Parse(text); err == nil {
		c.subject = q.Class
		if q.Kind == wql.Associators {
			c.subject = q.Source.Class
			if q.AssocClass != "" {
				c.subject = q.AssocClass
			}
		}
	}
	if err := c.read(); err != nil {
		return err
	}
	rows, err := c.node.Query(c.ctx, namespace, text)
	if err != nil {
		return err
	}
	c.out.count(len(rows))
	classes := c.classes(namespace)
	for _, row := range rows {
		c.spoil(row.Props)
		if err := c.out.instance(row, classes); err != nil {
			return err
		}
	}
	return nil
}

// classes describes the classes of a namespace, each once for the call.
func (c *call) classes(namespace string) describe {
	type answer struct {
		class sim.ClassDescription
		err   error
	}
	known := map[string]answer{}
	return func(name string) (sim.ClassDescription, error) {
		a, ok := known[name]
		if !ok {
			a.class, a.err = c.node.DescribeClass(namespace, name)
			known[name] = a
		}
		return a.class, a.err
	}
}

func runClass(c *call) error {
	namespace, name := c.in.text(), c.in.text()
	c.subject = name
	if err := c.read(); err != nil {
		return err
	}
	class, err := c.node.DescribeClass(namespace, name)
	if err != nil {
		return err
	}
	c.out.text(class.Name)
	c.out.count(len(class.Methods))
	for _, method := range class.Methods {
		c.out.text(method.Name)
		c.out.flag(len(method.In) > 0)
		c.out.typedNames(method.In)
	}
	c.out.typedNames(class.Properties)
	return nil
}

func (b *body) typedNames(list []sim.TypedName) {
	b.count(len(list))
	for _, item := range list {
		b.text(item.Name)
		b.u16(uint16(item.Type))
	}
}

func runExec(c *call) error {
	namespace, path, method := c.in.text(), c.in.text(), c.in.text()
	in := c.in.named(0)
	if p, err := wql.ParsePath(strings.TrimSuffix(path, "=@")); err == nil {
		c.subject, c.method = p.Class, method
	}
	if err := c.read(); err != nil {
		return err
	}
	result, err := c.node.Exec(c.ctx, namespace, path, method, in)
	if err != nil {
		return err
	}
	out := cim.Values{"ReturnValue": result.ReturnValue}
	for name, value := range result.Out {
		out[name] = value
	}
	if c.hasExtendedStatus() {
		out["ExtendedStatus"] = null(cim.TypeObject)
	}
	c.spoil(out)
	c.out.u8(1)
	c.out.count(len(out))
	return c.out.named(out, c.classes(namespace))
}

// hasExtendedStatus tells the methods that have an out-parameter ExtendedStatus,
// which is NULL when there is nothing to say. Source: the schemas of the
// classes; MSFT_Volume.Flush has none.
func (c *call) hasExtendedStatus() bool {
	switch strings.ToLower(c.subject) {
	case "msft_disk", "msft_partition", "msft_volume":
		return !strings.EqualFold(c.method, "Flush")
	}
	return false
}

func runNamespace(c *call) error {
	namespace := c.in.text()
	c.subject = namespace
	if err := c.read(); err != nil {
		return err
	}
	return c.node.CheckNamespace(namespace)
}
