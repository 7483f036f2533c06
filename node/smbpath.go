package node

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/csi-windows/csi-windows/host"
)

// sharePath is a checked path on a file server. Limits of lengths are the host's.
type sharePath struct {
	server string
	share  string
	names  []string // below the share
}

// parseShare checks the text of `\\server\share` and what may follow, with either
// separator. Every refusal is KindInvalid and names field.
func parseShare(field, path string) (sharePath, error) {
	rest, isRemote := strings.CutPrefix(strings.ReplaceAll(path, "/", `\`), `\\`)
	parts := strings.Split(strings.TrimRight(rest, `\`), `\`)
	if !isRemote || len(parts) < 2 || parts[0] == "" || parts[1] == "" {
		return sharePath{}, invalid(field, `%s is not of the form \\server\share`, host.PrintableText(path))
	}
	s := sharePath{server: parts[0], share: parts[1]}
	for i, name := range parts {
		switch {
		case name == "":
		case name == "." || name == ".." || strings.ContainsAny(name, `"<>|?*:`) || strings.ContainsFunc(name, unicode.IsControl):
			return sharePath{}, invalid(field, "component %s is not allowed", host.PrintableText(name))
		case i >= 2:
			s.names = append(s.names, name)
		}
	}
	return s, nil
}

// String is the path with backslashes and no final one.
func (s sharePath) String() string {
	return strings.Join(append([]string{`\\` + s.server, s.share}, s.names...), `\`)
}

// key names the share a mapping is made for: one for all folders in it, since
// Windows refuses a mapping above or below another one. Names compare without case; a
// name and an address of one server are two servers, as they are to Windows.
func (s sharePath) key() string {
	return strings.Map(func(r rune) rune {
		// Like host.FoldName: nothing outside ASCII becomes ASCII.
		if small := unicode.ToLower(r); r < utf8.RuneSelf || small >= utf8.RuneSelf {
			return small
		}
		return r
	}, `\\`+s.server+`\`+s.share)
}

// isSame reports whether two paths are one.
func (s sharePath) isSame(other sharePath) bool {
	return host.FoldName(s.String()) == host.FoldName(other.String())
}

// smbUser is the user as Windows wants it, from a source's user and domain: Windows
// tries a bare name with the node's own domain, which is rarely right, so the domain
// is put before it.
func smbUser(username, domain string) (string, error) {
	const field = "source.smb.domain"
	before, _, hasDomain := strings.Cut(username, `\`)
	_, after, hasRealm := strings.Cut(username, "@")
	switch {
	case domain == "":
		return username, nil
	case strings.ContainsAny(domain, `\@/`):
		return "", invalid(field, "is not a domain alone")
	case username == "":
		return "", invalid(field, "is set although there is no user name")
	case hasDomain && !strings.EqualFold(before, domain), !hasDomain && hasRealm && !strings.EqualFold(after, domain):
		return "", invalid(field, "the user name names another domain")
	case hasDomain, hasRealm:
		return username, nil
	default:
		return domain + `\` + username, nil
	}
}
