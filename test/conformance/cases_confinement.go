package conformance

import (
	"context"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

func confinementCases() []Case {
	return []Case{
		{"filesystem/outside", GroupFilesystem, nil, filesystemOutside},
		{"filesystem/outside-by-link", GroupFilesystem, nil, filesystemOutsideByLink},
		{"filesystem/bad-path", GroupFilesystem, nil, filesystemBadPath},
	}
}

// pathCalls are the calls that name one path and nothing else that could be wrong.
func pathCalls(s *scene) map[string]func(ctx context.Context, path string) error {
	return map[string]func(ctx context.Context, path string) error{
		"PathExists":    func(ctx context.Context, path string) error { _, err := s.host.PathExists(ctx, path); return err },
		"IsSymlink":     func(ctx context.Context, path string) error { _, err := s.host.IsSymlink(ctx, path); return err },
		"GetLink":       func(ctx context.Context, path string) error { _, err := s.host.GetLink(ctx, path); return err },
		"Mkdir":         s.host.Mkdir,
		"Rmdir":         func(ctx context.Context, path string) error { return s.host.Rmdir(ctx, path, false) },
		"Rmdir force":   func(ctx context.Context, path string) error { return s.host.Rmdir(ctx, path, true) },
		"RmdirContents": s.host.RmdirContents,
		"CreateSymlink at": func(ctx context.Context, path string) error {
			return s.host.CreateSymlink(ctx, s.path("source"), path)
		},
		"CreateSymlink to": func(ctx context.Context, path string) error {
			return s.host.CreateSymlink(ctx, path, s.path("to"))
		},
		"UnmountVolume": func(ctx context.Context, path string) error { return s.host.UnmountVolume(ctx, absentVolume, path) },
		"GetVolumeIDFromTargetPath": func(ctx context.Context, path string) error {
			_, err := s.host.GetVolumeIDFromTargetPath(ctx, path)
			return err
		},
		"GetClosestVolumeIDFromTargetPath": func(ctx context.Context, path string) error {
			_, err := s.host.GetClosestVolumeIDFromTargetPath(ctx, path)
			return err
		},
	}
}

// refusesPaths makes the case fail unless every path call finds the paths invalid,
// and nothing was changed by them.
func (s *scene) refusesPaths(ctx context.Context, paths ...string) {
	for name, call := range pathCalls(s) {
		for _, path := range paths {
			if path == "" && strings.HasPrefix(name, "Rmdir") {
				continue // see guard.mayEmpty
			}
			err := call(ctx, path)
			if name == "GetLink" && s.unsupported(err, name) {
				break
			}
			s.fails(err, name+" "+path, host.KindInvalid)
		}
	}
	if names := s.names(ctx, s.folder); slices.Contains(names, "to") {
		s.Errorf("a link to a path outside was made: the folder holds %q", names)
	}
	s.holds(ctx, s.outside+`\kept\file`, "kept")
	if names := s.names(ctx, s.outside); !slices.Equal(names, []string{"kept"}) {
		s.Errorf("outside the working folders there is %q", names)
	}
}

// Nothing outside the working folders is seen or changed.
func filesystemOutside(ctx context.Context, s *scene) {
	s.must(s.host.Mkdir(ctx, s.path("source")), "Mkdir")
	s.write(ctx, s.outside+`\kept\file`, "kept")
	s.refusesPaths(ctx,
		s.outside, s.outside+`\kept`, s.outside+`\kept\file`, s.outside+`\new`,
		s.env.WorkingDir+`-beside\`+s.run, // begins like a working folder
		strings.ReplaceAll(s.outside, `\`, "/")+"/kept",
	)
}

// A link inside that leads outside is no way out.
func filesystemOutsideByLink(ctx context.Context, s *scene) {
	s.must(s.host.Mkdir(ctx, s.path("source")), "Mkdir")
	s.write(ctx, s.outside+`\kept\file`, "kept")
	s.must(s.env.Files.MakeLink(ctx, s.path("way"), s.outside), "make a link")
	for name, call := range pathCalls(s) {
		if strings.HasPrefix(name, "Get") && strings.HasSuffix(name, "TargetPath") {
			continue // by contract these follow links wherever they lead
		}
		for _, path := range []string{s.path("way", "kept"), s.path("way", "kept", "file"), s.path("way", "new")} {
			err := call(ctx, path)
			if name == "GetLink" && s.unsupported(err, name) {
				break
			}
			s.fails(err, name+" "+path, host.KindInvalid)
		}
	}
	s.isLink(ctx, s.path("way"), true)
	s.holds(ctx, s.outside+`\kept\file`, "kept")
	if names := s.names(ctx, s.outside); !slices.Equal(names, []string{"kept"}) {
		s.Errorf("outside the working folders there is %q", names)
	}
	s.must(s.host.Rmdir(ctx, s.path("way"), true), "Rmdir of the link itself")
	s.holds(ctx, s.outside+`\kept\file`, "kept")
}

// A path of a form that Windows could take for another place is invalid.
func filesystemBadPath(ctx context.Context, s *scene) {
	s.must(s.host.Mkdir(ctx, s.path("source")), "Mkdir")
	s.write(ctx, s.outside+`\kept\file`, "kept")
	s.refusesPaths(ctx,
		"",
		s.run, `..\`+s.run, s.folder[:len("C:")]+s.run, // relative, also to a drive
		s.path("..", "x"), s.path("source", "..", "..", s.run), s.path("."),
		s.path("source", "file:stream"), s.path("source::$INDEX_ALLOCATION"),
		s.path("x*"), s.path("x?"), s.path(`x"`), s.path("x<"), s.path("x>"), s.path("x|"),
		s.path("dot."), s.path("blank "), s.path("NUL"), s.path("com1.txt"), s.path("x\x01"), s.path("x\x00y"),
		s.path(strings.Repeat("x", 256)), s.folder+strings.Repeat(`\`+strings.Repeat("x", 200), 200),
		`\\?\UNC\server\share\`+s.run, `\\server\share\`+s.run, `\\.\pipe\`+s.run, `\\.\PhysicalDrive0\`+s.run,
		`\\?\GLOBALROOT\Device\`+s.run, absentVolume+s.run,
	)
}
