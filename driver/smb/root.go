package smb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	smb2 "github.com/cloudsoda/go-smb2"

	"github.com/csi-windows/csi-windows/csikit"
)

// fileAttributeReparsePoint is in [MS-FSCC] 2.6.
const fileAttributeReparsePoint = 0x400

// root is a base folder as one call works in it. Paths are from the base, with
// backslashes.
type root struct {
	ctx   context.Context
	at    location
	share *smb2.Share
}

// in calls use with the base folder of a location. It may be called twice.
func (b *Backend) in(ctx context.Context, at location, secrets map[string]string, use func(*root) error) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.config.CallTimeout)
		defer cancel()
	}
	who, err := b.accountFor(ctx, at, secrets)
	if err != nil {
		return err
	}
	return b.pool.do(ctx, sessionKey{b.address(at), who}, func(s *smb2.Session) error {
		share, err := s.Mount(`\\` + at.host() + `\` + at.share)
		if err != nil {
			return fmt.Errorf("share %s of server %s: %w", at.share, at.host(), kindOf(err))
		}
		defer func() { _ = share.WithContext(ctx).Umount() }()
		r := &root{withSlot(ctx), at, share.WithContext(ctx)}
		if err := r.checkBase(); err != nil {
			return err
		}
		return use(r)
	})
}

// checkBase sees that the base is there, and that no part of it is a link.
func (r *root) checkBase() error {
	for i := range r.at.base {
		path := strings.Join(r.at.base[:i+1], `\`)
		info, err := r.share.Lstat(path)
		if err != nil {
			return fmt.Errorf("source %s: %w", r.at, kindOf(err))
		}
		if !isFolder(info) {
			return fmt.Errorf("source %s: %s is no folder: %w", r.at, path, csikit.ErrPrecondition)
		}
	}
	return nil
}

// isFolder is false for links and mount points.
func isFolder(info os.FileInfo) bool { return info.IsDir() && !isLink(info) }

func isLink(info os.FileInfo) bool {
	stat, ok := info.Sys().(*smb2.FileStat)
	return !ok || stat.FileAttributes&fileAttributeReparsePoint != 0
}

// snapshots is the base of the snapshots of this base.
func (r *root) snapshots() *root { return &root{r.ctx, r.at.snapshots(), r.share} }

func (r *root) path(parts ...string) string {
	return strings.TrimPrefix(r.at.folder()+`\`+strings.Join(parts, `\`), `\`)
}

// exists reports whether there is a folder. Something else of that name is an error.
func (r *root) exists(parts ...string) (bool, error) {
	info, err := r.share.Lstat(r.path(parts...))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, kindOf(err)
	}
	if !isFolder(info) {
		return false, fmt.Errorf("%s in %s is no folder: %w", strings.Join(parts, `\`), r.at, csikit.ErrPrecondition)
	}
	return true, nil
}

// makeFolders makes a folder and those above it, below the base.
func (r *root) makeFolders(parts ...string) error {
	if there, err := r.exists(parts...); there || err != nil {
		return err
	}
	for i := range parts {
		err := r.share.Mkdir(r.path(parts[:i+1]...), 0o777)
		if err != nil && !errors.Is(err, os.ErrExist) {
			return kindOf(err)
		}
	}
	_, err := r.exists(parts...)
	return err
}

// each calls use for each entry of a folder, a part of them at a time. Entries that
// use adds or removes may be seen or not.
func (r *root) each(path string, use func(os.FileInfo) error) error {
	folder, err := r.share.Open(path)
	if err != nil {
		return kindOf(err)
	}
	defer func() { _ = folder.Close() }()
	for {
		entries, err := folder.Readdir(256)
		for _, entry := range entries {
			if err := use(entry); err != nil {
				return err
			}
		}
		if len(entries) == 0 {
			return endOfList(err)
		}
	}
}

func endOfList(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return kindOf(err)
}
