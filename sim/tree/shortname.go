package tree

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/winos/win32"
)

// findShortName returns the host name whose 8.3 name is folded, or "". On a
// volume that generates such names, those that are missing in the folder are
// made now and kept from then on.
func (t *Tree) findShortName(folder *node, folded string, hosts []string) string {
	generates := folder.vol.ShortNames && strings.Contains(folded, "~")
	if len(t.short) == 0 && !generates {
		return ""
	}
	if generates {
		t.nameShort(folder, hosts)
	}
	for host, short := range t.short[folder.linkKey()] {
		if short == folded && slices.Contains(hosts, host) {
			return host
		}
	}
	return ""
}

// nameShort gives an 8.3 name to every name of a folder that needs one.
func (t *Tree) nameShort(folder *node, hosts []string) {
	known := t.short[folder.linkKey()]
	names := maps.Clone(known)
	maps.DeleteFunc(names, func(host, _ string) bool { return !slices.Contains(hosts, host) })
	taken := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		taken[foldName(shownName(host))] = true
	}
	for _, short := range names {
		taken[short] = true
	}
	for _, host := range slices.Sorted(slices.Values(hosts)) {
		if names[host] != "" || isShortName(shownName(host)) {
			continue
		}
		if names == nil {
			names = map[string]string{}
		}
		names[host] = generateShortName(shownName(host), taken)
		taken[names[host]] = true
	}
	if !maps.Equal(known, names) {
		t.setShortNames(folder.linkKey(), names)
	}
}

func (t *Tree) setShortNames(folder linkKey, names map[string]string) {
	if len(names) == 0 {
		delete(t.short, folder)
	} else {
		t.short[folder] = names
	}
	t.dirty = true
}

// forgetShortName drops the 8.3 name of a name that is gone.
func (t *Tree) forgetShortName(folder *node, host string) {
	if len(t.short) == 0 {
		return
	}
	if names := t.short[folder.linkKey()]; names[host] != "" {
		names = maps.Clone(names)
		delete(names, host)
		t.setShortNames(folder.linkKey(), names)
	}
}

// shortForbidden are characters of long names that an 8.3 name may not hold.
// Source: [MS-FSCC] 2.1.5.2.1, 8.3 Filename.
const shortForbidden = `+,;=[]`

// isShortName reports whether a name has 8.3 form already, in any case.
func isShortName(name string) bool {
	base, extension, dotted := strings.Cut(name, ".")
	if base == "" || len(base) > 8 || len(extension) > 3 || (dotted && extension == "") {
		return false
	}
	return !strings.ContainsFunc(base+extension, func(r rune) bool {
		return r >= 0x80 || r == ' ' || r == '.' || strings.ContainsRune(shortForbidden, r)
	})
}

// generateShortName makes the 8.3 name that NTFS would: six characters and ~1
// to ~4, after that two, four digits of a checksum and ~1 onwards. Names of
// one or two characters have the checksum at once. Windows does not document
// the checksum; this one is only stable. Source: RtlGenerate8dot3Name.
func generateShortName(name string, taken map[string]bool) string {
	base, extension := shortParts(name)
	if extension != "" {
		extension = "." + extension
	}
	if len(base) > 2 {
		for n := 1; n <= 4; n++ {
			short := fmt.Sprintf("%.6s~%d%s", base, n, extension)
			if !taken[short] {
				return short
			}
		}
	}
	stem := fmt.Sprintf("%.2s%04X", base, uint16(shareSerial(name)))
	for n := 1; ; n++ {
		suffix := fmt.Sprintf("~%d", n)
		short := stem[:min(len(stem), 8-len(suffix))] + suffix + extension
		if !taken[short] {
			return short
		}
	}
}

// shortParts reduces a long name to the characters an 8.3 name may hold.
func shortParts(name string) (base, extension string) {
	name = strings.TrimLeft(strings.ReplaceAll(name, " ", ""), ".")
	name = strings.TrimRight(name, ".")
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		name, extension = name[:dot], name[dot+1:]
	}
	reduce := func(s string) string {
		return strings.Map(func(r rune) rune {
			switch {
			case r == '.':
				return -1
			case r >= 0x80 || strings.ContainsRune(shortForbidden, r):
				return '_'
			}
			return r
		}, foldName(s))
	}
	base, extension = reduce(name), reduce(extension)
	return base, extension[:min(3, len(extension))]
}

// SetShortName gives the object at path an 8.3 name. Source:
// SetFileShortNameW. Failures: those of CreateFile, ErrInvalidName,
// ErrAlreadyExists when another object of the folder has that name.
func (t *Tree) SetShortName(ctx context.Context, path, short string) error {
	const call = "SetFileShortName"
	if !isShortName(short) || checkName(short) != 0 {
		return fail(call, short, win32.ErrInvalidName)
	}
	at, code := t.find(ctx, path, false)
	if code != 0 {
		return fail(call, path, code)
	}
	defer t.leave(at)
	t.mu.Lock()
	defer t.unlock()
	if at.folder == nil {
		return fail(call, path, win32.ErrAccessDenied)
	}
	if other, code := t.child(at.folder, short); code == 0 {
		t.unref(other)
		if other != at.node {
			return fail(call, short, win32.ErrAlreadyExists)
		}
	}
	names := maps.Clone(t.short[at.folder.linkKey()])
	if names == nil {
		names = map[string]string{}
	}
	names[at.node.name] = foldName(short)
	t.setShortNames(at.folder.linkKey(), names)
	return nil
}
