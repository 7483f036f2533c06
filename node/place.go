package node

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// placeKind says what a path leads to.
type placeKind uint8

const (
	placeMissing placeKind = iota // nothing is there
	placeFolder                   // a plain folder or file
	placeVolume                   // a volume: its mount point, or links that end there
	placeRemote                   // links that end at a file server
	placeLink                     // a link of which no more is known, or that ends nowhere
)

// place is what is at a path and where it leads. Nothing in it says yet that the
// volume or share can be reached.
type place struct {
	path string
	kind placeKind
	// isMount is set when the path itself is a mount point and no link.
	isMount  bool
	volumeID string // of placeVolume
	remote   string // of placeRemote, `\\server\share\…`; empty when the host cannot say
	// leadsTo is what the first link says of itself; empty when the host cannot say.
	leadsTo string
	dead    bool // placeLink that is known to end nowhere
}

// linkHopsMax bounds the links one path may lead through.
const linkHopsMax = 8

// look says what is at a path.
func (t *Tasks) look(ctx context.Context, path string) (place, error) {
	if t.knows("GetLink") {
		found, err := t.lookByLink(ctx, path)
		if !t.lacking("GetLink", err) {
			return found, err
		}
	}
	return t.lookByQuestions(ctx, path)
}

// lookByLink follows the links of a path one by one.
func (t *Tasks) lookByLink(ctx context.Context, path string) (place, error) {
	found := place{path: path}
	at := path
	for hop := range linkHopsMax {
		link, err := t.host.GetLink(ctx, at)
		if host.IsKind(err, host.KindNotFound) {
			if hop > 0 {
				found.kind, found.dead = placeLink, true
			}
			return found, nil
		}
		if err != nil {
			return found, err
		}
		if hop == 0 {
			found.leadsTo, found.isMount = link.Target, link.Kind == host.LinkMountPoint
		}
		if link.Kind == host.NotALink {
			found.kind = placeFolder
			if hop > 0 {
				found.kind = placeLink
			}
			return found, nil
		}
		if volume, isVolume := volumeOf(link.Target); isVolume {
			found.kind, found.volumeID = placeVolume, volume
			return found, nil
		}
		if remote, isRemote := remoteOf(link.Target); isRemote {
			found.kind, found.remote = placeRemote, remote
			return found, nil
		}
		found.kind, at = placeLink, link.Target
	}
	return found, nil
}

// lookByQuestions asks what the oldest csi-proxy can answer. There are some that
// take a mount point, or a link that leads nowhere, for no link, and whose errors
// are all of one kind.
func (t *Tasks) lookByQuestions(ctx context.Context, path string) (place, error) {
	found := place{path: path}
	exists, err := t.host.PathExists(ctx, path)
	if err != nil || !exists {
		return found, err
	}
	isLink, err := t.host.IsSymlink(ctx, path)
	if err != nil {
		return found, err
	}
	found.kind = placeFolder
	if isLink {
		found.kind = placeLink
	}
	text, err := t.host.GetVolumeIDFromTargetPath(ctx, path)
	volume, isVolume := volumeOf(text)
	switch kind := host.KindOf(err); {
	case err == nil && isVolume:
		found.kind, found.volumeID = placeVolume, volume
	case err == nil:
	case kind == host.KindNotFound:
		found.dead = isLink
	case kind == host.KindPrecondition, kind == host.KindInternal:
	default:
		return found, err
	}
	return found, nil
}

// volumeOf returns the volume a stored link target names.
func volumeOf(target string) (id string, isVolume bool) {
	rest := strings.TrimPrefix(strings.TrimPrefix(target, `\??\`), `\\?\`)
	const prefix = "VOLUME{"
	if len(rest) < len(prefix) || !strings.EqualFold(rest[:len(prefix)], prefix) {
		return "", false
	}
	end := strings.IndexByte(rest, '}')
	if end < 0 || strings.Trim(rest[end+1:], `\`) != "" {
		return "", false
	}
	return `\\?\Volume` + strings.ToLower(rest[len(prefix)-1:end+1]) + `\`, true
}

// remoteOf returns the path on a file server a stored link target names.
func remoteOf(target string) (remote string, isRemote bool) {
	target = strings.ReplaceAll(target, "/", `\`)
	for _, prefix := range []string{`\??\UNC\`, `\\?\UNC\`} {
		if len(target) > len(prefix) && strings.EqualFold(target[:len(prefix)], prefix) {
			return `\\` + strings.TrimRight(target[len(prefix):], `\`), true
		}
	}
	if !strings.HasPrefix(target, `\\`) || strings.HasPrefix(target, `\\?\`) || strings.HasPrefix(target, `\\.\`) {
		return "", false
	}
	return strings.TrimRight(target, `\`), true
}

// sameVolume reports whether two volume ids are one.
func sameVolume(a, b string) bool {
	return a != "" && strings.EqualFold(strings.TrimRight(a, `\`), strings.TrimRight(b, `\`))
}
