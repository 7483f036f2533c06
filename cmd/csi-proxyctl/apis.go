package main

import (
	"context"
	"strings"
)

// apiRow is one API group: the version that is used, and those that the
// csi-proxy serves.
type apiRow struct {
	Group  string   `json:"group"`
	Used   string   `json:"used,omitempty"` // empty when the group is not served
	Served []string `json:"served"`         // oldest first
}

var apiColumns = []column[apiRow]{
	{"GROUP", func(r apiRow) string { return r.Group }},
	{"USED", func(r apiRow) string { return r.Used }},
	{"SERVED", func(r apiRow) string { return strings.Join(r.Served, " ") }},
}

// apis returns every API group.
func apis(ctx context.Context, n node) ([]apiRow, error) { return n.APIs(ctx) }
