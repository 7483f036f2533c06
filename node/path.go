package node

import (
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// pathKey is equal for all spellings of a path that Windows takes for one: case,
// slashes, doubled and final separators. A path without a drive letter is on the
// system drive, taken for C: here; confinement and the rest of the rules are the
// host's.
func pathKey(path string) string {
	path = strings.ReplaceAll(path, "/", `\`)
	path = strings.TrimPrefix(path, `\\?\`)
	remote := strings.HasPrefix(path, `\\`)
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '\\' })
	key := host.FoldName(strings.Join(names, `\`))
	switch {
	case remote:
		return `\\` + key
	case strings.HasPrefix(path, `\`):
		return `C:\` + key
	default:
		return key
	}
}

// samePath reports whether two texts name one path.
func samePath(a, b string) bool { return pathKey(a) == pathKey(b) }

// isWithin reports whether a path is a folder or below it, by their texts.
func isWithin(path, folder string) bool {
	path, folder = pathKey(path), pathKey(folder)
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, `\`)+`\`)
}

// parentPath is the folder that holds a path, or "" when there is none above it.
func parentPath(path string) string {
	at := strings.LastIndexAny(strings.TrimRight(path, `\/`), `\/`)
	if at <= 0 || path[at-1] == ':' {
		return ""
	}
	return path[:at]
}
