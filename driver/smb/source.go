package smb

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/csikit"
)

const (
	idPrefix         = "smb:"          // of volumes
	idPrefixSnapshot = "smb-snapshot:" // the longest

	shareMax  = 80 // characters, as Windows has it
	serverMax = 253
)

// location is a folder of a share, the place where volumes are made.
type location struct {
	server string // in lower case, without brackets
	port   int    // 0 when it is the usual one
	share  string
	base   []string // names of folders
}

// parseLocation reads `//server[:port]/share[/folder…]`; backslashes are taken too.
func parseLocation(text string) (location, error) {
	parts := strings.Split(strings.ReplaceAll(text, `\`, "/"), "/")
	if len(parts) > 4 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	if len(parts) < 4 || parts[0] != "" || parts[1] != "" {
		return location{}, fmt.Errorf("source %q is not like //server/share/folder: %w", text, csikit.ErrInvalid)
	}
	at := location{share: parts[3], base: parts[4:]}
	var err error
	if at.server, at.port, err = parseServer(parts[2]); err != nil {
		return location{}, fmt.Errorf("source %q: %w", text, err)
	}
	for _, part := range parts[3:] {
		if err := checkPart(part); err != nil {
			return location{}, fmt.Errorf("source %q: %w", text, err)
		}
	}
	if len(at.share) > shareMax {
		return location{}, fmt.Errorf("source %q: the share has more than %d characters: %w", text, shareMax, csikit.ErrInvalid)
	}
	return at, nil
}

func parseServer(text string) (server string, port int, err error) {
	server = strings.ToLower(text)
	if inside, after, bracketed := strings.Cut(strings.TrimPrefix(server, "["), "]"); bracketed && server[0] == '[' {
		address, err := netip.ParseAddr(inside)
		if err != nil || !address.Is6() || address.Zone() != "" {
			return "", 0, fmt.Errorf("server %q is no IPv6 address: %w", text, csikit.ErrInvalid)
		}
		server = address.String()
		text = after
	} else {
		server, text, bracketed = strings.Cut(server, ":")
		if bracketed {
			text = ":" + text
		}
		if server == "" || len(server) > serverMax || strings.ContainsFunc(server, isNotHostRune) ||
			strings.Trim(server, ".-") != server || strings.Contains(server, "..") {
			return "", 0, fmt.Errorf("server %q is no host name or address: %w", server, csikit.ErrInvalid)
		}
	}
	if text == "" {
		return server, 0, nil
	}
	number, found := strings.CutPrefix(text, ":")
	port, err = strconv.Atoi(number)
	if !found || err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != number {
		return "", 0, fmt.Errorf("port %q is no number from 1 to 65535: %w", text, csikit.ErrInvalid)
	}
	return server, port, nil
}

func isNotHostRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
}

// host is the server and port as sources and ids have them.
func (at location) host() string {
	host := at.server
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if at.port != 0 {
		host += ":" + strconv.Itoa(at.port)
	}
	return host
}

func (at location) String() string {
	return "//" + strings.Join(append([]string{at.host(), at.share}, at.base...), "/")
}

// folder is the base as the server has it, "" for the top of the share.
func (at location) folder() string { return strings.Join(at.base, `\`) }

// sameShare reports whether two locations are in one share. Servers do not tell
// upper from lower case.
func (at location) sameShare(other location) bool {
	return at.server == other.server && at.port == other.port && strings.EqualFold(at.share, other.share)
}

// holds reports whether other is at the location or below it.
func (at location) holds(other location) bool {
	if !at.sameShare(other) || len(other.base) < len(at.base) {
		return false
	}
	for i, part := range at.base {
		if !strings.EqualFold(part, other.base[i]) {
			return false
		}
	}
	return true
}

// uncPath is the location for Windows, which takes no port in it.
func (at location) uncPath() string {
	server := at.server
	if strings.Contains(server, ":") {
		server = strings.ReplaceAll(server, ":", "-") + ".ipv6-literal.net"
	}
	return `\\` + strings.Join(append([]string{server, at.share}, at.base...), `\`)
}

// volumeKey is what a volume's id says.
type volumeKey struct {
	at     location
	folder string
}

// String is the volume's id.
func (k volumeKey) String() string { return idPrefix + k.at.String() + "/" + k.folder }

// root is the location of the volume's own folder.
func (k volumeKey) root() location { return k.at.below(k.folder) }

// snapshotKey is what a snapshot's id says. Snapshots are kept as volumes are, in a
// base of their own within that of the volumes: at is the latter.
type snapshotKey volumeKey

// String is the snapshot's id.
func (k snapshotKey) String() string { return idPrefixSnapshot + k.at.String() + "/" + k.folder }

// below is a location within this one.
func (at location) below(folders ...string) location {
	at.base = slices.Concat(at.base, folders)
	return at
}

// snapshots is where the snapshots of the volumes of a location are.
func (at location) snapshots() location { return at.below(privateFolder, folderSnapshots) }

// newFolder is the folder of the volume or snapshot of a name.
func newFolder(at location, name string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("the name is missing: %w", csikit.ErrInvalid)
	}
	left := volumeIDMax - len(snapshotKey{at: at}.String())
	if left < hashDigits+len(hashSeparator) {
		return "", fmt.Errorf("source %q leaves %d bytes of an id for the folder, and %d are needed: %w",
			at, left, hashDigits+len(hashSeparator), csikit.ErrInvalid)
	}
	return folderName(name, left), nil
}

// parseVolumeID reads an id. One that is not of this driver is ErrNotFound; one
// that is but cannot have been made by it is ErrInvalid.
func parseVolumeID(id string) (volumeKey, error) {
	key, err := parseID(idPrefix, id)
	if err == nil && key.String() != id {
		err = fmt.Errorf("it is not written as this driver does: %w", csikit.ErrInvalid)
	}
	if err != nil {
		return volumeKey{}, fmt.Errorf("volume %q: %w", id, err)
	}
	return key, nil
}

// parseSnapshotID does so for an id of a snapshot.
func parseSnapshotID(id string) (snapshotKey, error) {
	key, err := parseID(idPrefixSnapshot, id)
	if err == nil && snapshotKey(key).String() != id {
		err = fmt.Errorf("it is not written as this driver does: %w", csikit.ErrInvalid)
	}
	if err != nil {
		return snapshotKey{}, fmt.Errorf("snapshot %q: %w", id, err)
	}
	return snapshotKey(key), nil
}

func parseID(prefix, id string) (volumeKey, error) {
	rest, found := strings.CutPrefix(id, prefix)
	if !found {
		return volumeKey{}, fmt.Errorf("it is not of this driver: %w", csikit.ErrNotFound)
	}
	if len(id) > volumeIDMax {
		return volumeKey{}, fmt.Errorf("it has %d bytes; %d are the limit: %w", len(id), volumeIDMax, csikit.ErrInvalid)
	}
	at, err := parseLocation(rest)
	if err != nil {
		return volumeKey{}, err
	}
	if len(at.base) == 0 {
		return volumeKey{}, fmt.Errorf("it names no folder: %w", csikit.ErrInvalid)
	}
	last := len(at.base) - 1
	key := volumeKey{folder: at.base[last]}
	at.base = at.base[:last]
	key.at = at
	return key, nil
}
