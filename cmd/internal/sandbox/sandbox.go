// Package sandbox finds the files of a program in a HostProcess container.
package sandbox

import "strings"

// Variable names the folder at which the files of a HostProcess container,
// its volumes among them, are found on the host. In other containers it is not set.
//
// Source: Kubernetes, Create a Windows HostProcess Pod, volume mounts.
const Variable = "CONTAINER_SANDBOX_MOUNT_POINT"

// Sandbox is where a HostProcess container keeps its files: its absolute paths are
// those of the host. The zero value is no such container.
type Sandbox struct {
	folder  string
	windows bool
}

// Of reads the surroundings of a program.
func Of(system string, getenv func(string) string) Sandbox {
	return Sandbox{folder: getenv(Variable), windows: system == "windows"}
}

// IsSet reports whether the program runs in such a container.
func (s Sandbox) IsSet() bool { return s.folder != "" }

// Path is where a path of the command line is: below the sandbox when it is relative
// or begins with the variable, as it stands otherwise. (Case C093.)
func (s Sandbox) Path(text string) string {
	if !s.IsSet() || text == "" {
		return text
	}
	for _, variable := range []string{"$" + Variable, "${" + Variable + "}", "$env:" + Variable, "%" + Variable + "%"} {
		if rest, found := strings.CutPrefix(text, variable); found && (rest == "" || s.isSeparator(rest[0])) {
			return s.join(rest)
		}
	}
	if s.isAbsolute(text) {
		return text
	}
	return s.join(text)
}

func (s Sandbox) join(rest string) string {
	separator := "/"
	if s.windows {
		separator = `\`
		rest = strings.ReplaceAll(rest, "/", `\`)
	}
	rest = strings.TrimLeft(rest, separator)
	folder := strings.TrimRight(s.folder, `\/`)
	if rest == "" {
		return folder
	}
	return folder + separator + rest
}

func (s Sandbox) isSeparator(c byte) bool { return c == '/' || s.windows && c == '\\' }

func (s Sandbox) isAbsolute(path string) bool {
	return s.isSeparator(path[0]) || s.windows && len(path) > 1 && path[1] == ':'
}

// Endpoint is Path for the socket of an endpoint; other endpoints stay as they are.
func (s Sandbox) Endpoint(text string) string {
	for _, scheme := range []string{"unix://", "unix:"} {
		if path, found := strings.CutPrefix(text, scheme); found {
			return scheme + s.Path(path)
		}
	}
	if strings.HasPrefix(text, "tcp:") || strings.HasPrefix(text, "npipe:") {
		return text
	}
	return s.Path(text)
}
