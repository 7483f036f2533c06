package winos

import "strings"

const (
	extendedPrefix = `\\?\`
	extendedUNC    = `\\?\UNC\`
)

// extendedPath is the form of an absolute path that Windows takes as it is,
// without the limit of 260 characters. Source: "Maximum Path Length Limitation".
func extendedPath(path string) string {
	switch {
	case strings.HasPrefix(path, extendedPrefix):
		return path
	case strings.HasPrefix(path, `\\`):
		return extendedUNC + path[2:]
	}
	return extendedPrefix + path
}

// plainPath takes the extended prefix off a path again; volume names keep it, as
// they have no other form.
func plainPath(path string) string {
	switch {
	case strings.HasPrefix(path, extendedUNC):
		return `\\` + path[len(extendedUNC):]
	case strings.HasPrefix(path, extendedPrefix) && len(path) > len(extendedPrefix)+1 && path[len(extendedPrefix)+1] == ':':
		return path[len(extendedPrefix):]
	}
	return path
}
