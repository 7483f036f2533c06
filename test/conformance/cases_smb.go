package conformance

import (
	"context"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

func smbCases() []Case {
	share := []Need{NeedSMB}
	return []Case{
		{"smb/bad-input", GroupSMB, nil, smbBadInput},
		{"smb/absent-server", GroupSMB, nil, smbAbsentServer},
		{"smb/mapping", GroupSMB, share, smbMapping},
		{"smb/wrong-password", GroupSMB, share, smbWrongPassword},
	}
}

// What names no share, no link and no user is invalid, and no error has the password.
func smbBadInput(ctx context.Context, s *scene) {
	for _, remote := range []string{``, `\\`, `\\` + s.run, `\\` + s.run + `\`, s.run + `\share`, `\\\share`, `C:\` + s.run, `\\` + s.run + `\share\..\x`, `\\` + s.run + `\a*`, `\\?\UNC\` + s.run + `\share`} {
		s.fails(s.host.NewSmbGlobalMapping(ctx, remote, "", "u", "p"), "NewSmbGlobalMapping of "+remote, host.KindInvalid)
		s.fails(s.host.RemoveSmbGlobalMapping(ctx, remote), "RemoveSmbGlobalMapping of "+remote, host.KindInvalid)
	}
	remote := `\\` + s.run + `\share`
	const secret = "never-in-an-error"
	for what, err := range map[string]error{
		"a link outside the working folders":  s.host.NewSmbGlobalMapping(ctx, remote, s.outside+`\l`, "u", secret),
		"a relative link":                     s.host.NewSmbGlobalMapping(ctx, remote, s.run, "u", secret),
		"a password without a user":           s.host.NewSmbGlobalMapping(ctx, remote, "", "", secret),
		"a user with a control character":     s.host.NewSmbGlobalMapping(ctx, remote, "", "a\nb", secret),
		"a user with two backslashes":         s.host.NewSmbGlobalMapping(ctx, remote, "", `a\b\c`, secret),
		"a password with a NUL in it":         s.host.NewSmbGlobalMapping(ctx, remote, "", "u", secret+"\x00"),
		"a password longer than any may be":   s.host.NewSmbGlobalMapping(ctx, remote, "", "u", strings.Repeat(secret, 100)),
		"a link where a link cannot be named": s.host.NewSmbGlobalMapping(ctx, remote, s.path("l*"), "u", secret),
	} {
		s.fails(err, "NewSmbGlobalMapping with "+what, host.KindInvalid)
		if err != nil && strings.Contains(err.Error(), secret) {
			s.Errorf("NewSmbGlobalMapping with %s: the error holds the password", what)
		}
	}
	s.isMapped(ctx, remote, false)
}

// isMapped makes the case fail unless the host lists a mapping of the share, or none.
func (s *scene) isMapped(ctx context.Context, remote string, want bool) {
	mappings, err := s.host.ListSmbGlobalMappings(ctx)
	if s.unsupported(err, "ListSmbGlobalMappings") {
		return
	}
	s.must(err, "ListSmbGlobalMappings")
	found := 0
	for _, m := range mappings {
		if strings.EqualFold(m.RemotePath, remote) {
			found++
			if want && m.Status != host.MappingOK {
				s.Errorf("the mapping is %+v", m)
			}
		}
	}
	if found > 1 || (found == 1) != want {
		s.Errorf("%s is mapped %d times; want mapped %v", remote, found, want)
	}
}

// A server that is not there leaves no mapping and no link behind.
func smbAbsentServer(ctx context.Context, s *scene) {
	// RFC 6761: no name below .invalid is ever found.
	remote := `\\` + s.run + `.invalid\share`
	for range 2 {
		err := s.host.NewSmbGlobalMapping(ctx, remote, s.path("link"), "u", "p")
		s.fails(err, "NewSmbGlobalMapping of a server that is not there", host.KindUnavailable, host.KindNotFound)
	}
	if s.has(ctx, s.folder, "link") {
		s.Errorf("a link to a share that is not there was made")
	}
	s.isMapped(ctx, remote, false)
	s.must(s.host.RemoveSmbGlobalMapping(ctx, remote), "RemoveSmbGlobalMapping of what is not mapped")
}

// share takes the share of the environment for the case. It must not be mapped: a
// mapping that is there is somebody's.
func (s *scene) share(ctx context.Context) (path, root string) {
	path = strings.TrimRight(strings.ReplaceAll(s.env.SMB.Path, "/", `\`), `\`)
	root = shareRoot(path)
	if !strings.Contains(strings.TrimPrefix(root, `\\`), `\`) {
		s.Fatalf("%s is no path of a share", path)
	}
	mappings, err := s.host.ListSmbGlobalMappings(ctx)
	if !s.unsupported(err, "ListSmbGlobalMappings") {
		s.must(err, "ListSmbGlobalMappings")
	}
	for _, m := range mappings {
		if strings.EqualFold(m.RemotePath, root) {
			s.Fatalf("%s is mapped already, by somebody else", root)
		}
	}
	s.later(func(ctx context.Context) error { return s.host.RemoveSmbGlobalMapping(ctx, root) })
	return path, root
}

// A share is mapped once, whoever asks, and reached by the link.
func smbMapping(ctx context.Context, s *scene) {
	path, root := s.share(ctx)
	user, password := s.env.SMB.Username, s.env.SMB.Password
	for _, remote := range []string{path, strings.ReplaceAll(path, `\`, "/"), strings.ToUpper(path)} {
		err := s.host.NewSmbGlobalMapping(ctx, remote, "", user, password)
		s.must(err, "NewSmbGlobalMapping")
		s.isMapped(ctx, root, true)
	}
	for range 2 {
		s.must(s.host.NewSmbGlobalMapping(ctx, path, s.path("link"), user, password), "NewSmbGlobalMapping with a link")
	}
	s.isMapped(ctx, root, true)
	s.isLink(ctx, s.path("link"), true)
	s.exists(ctx, s.path("link"), true)
	name := s.run + ".txt"
	s.later(func(ctx context.Context) error {
		if there, err := s.runner.has(ctx, path, name); err != nil || !there {
			return err
		}
		return s.env.Files.RemoveFile(ctx, path+`\`+name)
	})
	s.exists(ctx, s.path("link", name), false)
	s.write(ctx, s.path("link", name), "on the share")
	s.holds(ctx, s.path("link", name), "on the share")
	s.exists(ctx, s.path("link", name), true)
	s.must(s.env.Files.RemoveFile(ctx, s.path("link", name)), "remove the file on the share")
	s.fails(s.host.NewSmbGlobalMapping(ctx, path+`\`+s.run+`-absent`, s.path("nowhere"), user, password), "NewSmbGlobalMapping of a folder that is not on the share", host.KindNotFound)
	if s.has(ctx, s.folder, "nowhere") {
		s.Errorf("a link to a folder that is not there was made")
	}
	s.must(s.host.Rmdir(ctx, s.path("link"), false), "Rmdir of the link")
	for range 2 {
		s.must(s.host.RemoveSmbGlobalMapping(ctx, path), "RemoveSmbGlobalMapping")
		s.isMapped(ctx, root, false)
	}
}

// A wrong password is told from other failures, and leaves nothing behind.
func smbWrongPassword(ctx context.Context, s *scene) {
	path, root := s.share(ctx)
	if s.env.SMB.Username == "" {
		s.Notef("the share needs no password")
		return
	}
	const wrong = "not-the-password-of-anybody"
	err := s.host.NewSmbGlobalMapping(ctx, path, s.path("link"), s.env.SMB.Username, wrong)
	s.fails(err, "NewSmbGlobalMapping with a wrong password", host.KindUnauthenticated)
	if err != nil && strings.Contains(err.Error(), wrong) {
		s.Errorf("the error holds the password")
	}
	s.isMapped(ctx, root, false)
	if s.has(ctx, s.folder, "link") {
		s.Errorf("a link was made all the same")
	}
	s.must(s.host.NewSmbGlobalMapping(ctx, path, "", s.env.SMB.Username, s.env.SMB.Password), "NewSmbGlobalMapping with the right password")
	s.isMapped(ctx, root, true)
}
