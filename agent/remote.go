package agent

import (
	"strings"
	"unicode/utf8"
)

// Limits of the parts of a remote path. Source: [MS-FSCC] share names, at most
// 80 characters; DNS names, at most 255.
const (
	serverBytesMax = 255
	shareUnitsMax  = 80
)

// remotePath is a checked path on a file server.
type remotePath struct {
	server string
	share  string
	names  []string // below the share
}

// parseRemote checks the text of a remote path: `\\server\share` and what may
// follow, with either separator. Every refusal is KindInvalid and names field.
func parseRemote(field, text string) (remotePath, error) {
	if text == "" {
		return remotePath{}, invalid(field, "remote path is empty")
	}
	if !utf8.ValidString(text) {
		return remotePath{}, invalid(field, "remote path is not valid UTF-8")
	}
	if utf16Units(text, pathUnitsMax) > pathUnitsMax {
		return remotePath{}, invalid(field, "remote path is longer than %d characters", pathUnitsMax)
	}
	rest, isRemote := strings.CutPrefix(strings.ReplaceAll(text, "/", `\`), `\\`)
	if !isRemote {
		return remotePath{}, invalid(field, `remote path is not of the form \\server\share`)
	}
	parts := strings.Split(strings.TrimRight(rest, `\`), `\`)
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" {
		return remotePath{}, invalid(field, `remote path is not of the form \\server\share`)
	}
	r := remotePath{server: parts[0], share: parts[1]}
	if err := checkServer(field, r.server); err != nil {
		return remotePath{}, err
	}
	if utf16Units(r.share, shareUnitsMax) > shareUnitsMax {
		return remotePath{}, invalid(field, "share name is longer than %d characters", shareUnitsMax)
	}
	for _, name := range parts[1:] {
		if name == "" {
			continue
		}
		if err := checkName(field, name); err != nil {
			return remotePath{}, err
		}
	}
	for _, name := range parts[2:] {
		if name != "" {
			r.names = append(r.names, name)
		}
	}
	return r, nil
}

// checkServer checks the host part, which WebDAV may follow with "@SSL" or a port.
func checkServer(field, server string) error {
	if len(server) > serverBytesMax {
		return invalid(field, "server name is longer than %d bytes", serverBytesMax)
	}
	if err := checkName(field, server); err != nil {
		return err
	}
	if strings.ContainsAny(server, " ,;&'") {
		return invalid(field, "server name %q has a character no host name has", server)
	}
	return nil
}

// String returns the whole path with backslashes and no final one.
func (r remotePath) String() string {
	return strings.Join(append([]string{`\\` + r.server, r.share}, r.names...), `\`)
}

// shareRoot is the path of the share itself.
func (r remotePath) shareRoot() remotePath { return remotePath{server: r.server, share: r.share} }

// mappingKey is the share a mapping is made for, lower-cased as csi-proxy always did. Mappings
// below one share collide in Windows, so there is one for all its folders. A
// host name and an address of one server are different keys, as they are to Windows.
func (r remotePath) mappingKey() string {
	return lower(`\\` + r.server + `\` + r.share)
}

// serverKey names the server for the lock.
func (r remotePath) serverKey() string { return lower(r.server) }
