package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// The output forms.
const (
	formTable = "table"
	formJSON  = "json"
)

// column is one column of a table over rows of type T.
type column[T any] struct {
	title string
	text  func(T) string
}

// write prints rows in the asked form. JSON is always an array.
func write[T any](w io.Writer, form string, rows []T, columns []column[T]) error {
	if form == formJSON {
		if rows == nil {
			rows = []T{}
		}
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(rows)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.title
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
	for _, row := range rows {
		for i, c := range columns {
			cells[i] = cell(c.text(row))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// cell makes a text safe for a terminal, since names come from disks and
// servers; nothing is shown as a dash.
func cell(text string) string {
	if text == "" {
		return "-"
	}
	clean := strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	return clean
}

// sizeText prints bytes in the largest binary unit that leaves at least one,
// with one decimal: "9.5 GiB".
func sizeText(bytes int64) string {
	const units = "KMGTPE"
	if bytes < 1024 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	value, unit := float64(bytes)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[unit:unit+1] + "iB"
}

// yesNo prints a truth value that may be unknown.
func yesNo(b *bool) string {
	switch {
	case b == nil:
		return ""
	case *b:
		return "yes"
	default:
		return "no"
	}
}
