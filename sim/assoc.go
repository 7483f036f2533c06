package sim

import (
	"strings"

	"github.com/csi-windows/csi-windows/winos/cim"
)

// assoc is an association class: pairs of objects of two classes.
type assoc struct {
	name string
	// left and right are the names of the reference properties, and the classes
	// they refer to.
	leftRole, rightRole   string
	leftClass, rightClass string
	// links returns all pairs. The node's lock is held.
	links func(n *Node) []pair
}

type pair struct{ left, right any }

// class makes the association readable by SELECT: its properties are object paths.
func (a *assoc) class() *class {
	ref := func(n *Node, className string, row any) any {
		return `\\` + n.state.HostName + `\` + cim.NamespaceStorage + ":" + n.schema.classes[strings.ToLower(className)].path(row)
	}
	return newClass(cim.NamespaceStorage, a.name, a.links, func(pair) string { return "" }).
		nodeProp(a.leftRole, func(n *Node, p pair) any { return ref(n, a.leftClass, p.left) }).
		nodeProp(a.rightRole, func(n *Node, p pair) any { return ref(n, a.rightClass, p.right) }).class
}

// follow returns the objects linked to a row of the named class, and their class.
func (a *assoc) follow(n *Node, className string, row any) (string, []any) {
	var out []any
	if strings.EqualFold(a.leftClass, className) {
		for _, p := range a.links(n) {
			if p.left == row {
				out = append(out, p.right)
			}
		}
		return a.rightClass, out
	}
	if strings.EqualFold(a.rightClass, className) {
		for _, p := range a.links(n) {
			if p.right == row {
				out = append(out, p.left)
			}
		}
		return a.leftClass, out
	}
	return "", nil
}

// roleOf gives the reference name on the side of the named class.
func (a *assoc) roleOf(className string) string {
	if strings.EqualFold(a.leftClass, className) {
		return a.leftRole
	}
	return a.rightRole
}
