package conformance

import (
	"context"
	"slices"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

func filesystemCases() []Case {
	return []Case{
		{"filesystem/mkdir", GroupFilesystem, nil, filesystemMkdir},
		{"filesystem/rmdir", GroupFilesystem, nil, filesystemRmdir},
		{"filesystem/rmdir-contents", GroupFilesystem, nil, filesystemRmdirContents},
		{"filesystem/links", GroupFilesystem, nil, filesystemLinks},
		{"filesystem/dangling-link", GroupFilesystem, nil, filesystemDanglingLink},
		{"filesystem/rmdir-follows-no-link", GroupFilesystem, nil, filesystemRmdirFollowsNoLink},
		{"filesystem/rmdir-follows-no-mount", GroupFilesystem, []Need{NeedDisk}, filesystemRmdirFollowsNoMount},
	}
}

// exists makes the case fail unless PathExists gives the answer.
func (s *scene) exists(ctx context.Context, path string, want bool) {
	got, err := s.host.PathExists(ctx, path)
	if err != nil || got != want {
		s.Errorf("PathExists of %s = %v, %v; want %v", path, got, err, want)
	}
}

// isLink makes the case fail unless IsSymlink gives the answer.
func (s *scene) isLink(ctx context.Context, path string, want bool) {
	got, err := s.host.IsSymlink(ctx, path)
	if err != nil || got != want {
		s.Errorf("IsSymlink of %s = %v, %v; want %v", path, got, err, want)
	}
}

// A folder is made with its parents, once, and not over a file.
func filesystemMkdir(ctx context.Context, s *scene) {
	path := s.path("a", "b", "Grüße & more")
	s.exists(ctx, path, false)
	for range 2 {
		s.must(s.host.Mkdir(ctx, path), "Mkdir")
		s.exists(ctx, path, true)
	}
	s.isLink(ctx, path, false)
	s.write(ctx, path+`\file`, "x") // fails unless the folder is one
	if names := s.names(ctx, path); !slices.Equal(names, []string{"file"}) {
		s.Errorf("the folder holds %q", names)
	}
	s.exists(ctx, strings.ToUpper(path)+`\FILE`, true)
	s.exists(ctx, strings.ReplaceAll(path, `\`, "/"), true)
	s.fails(s.host.Mkdir(ctx, path+`\file`), "Mkdir where a file is", host.KindExists)
	s.fails(s.host.Mkdir(ctx, path+`\file\below`), "Mkdir below a file", host.KindExists, host.KindPrecondition)
	s.exists(ctx, path+`\file\below`, false)
	s.holds(ctx, path+`\file`, "x")
	_, err := s.host.IsSymlink(ctx, s.path("absent"))
	s.fails(err, "IsSymlink of nothing", host.KindNotFound)
}

// Without force only an empty folder goes, with force a whole tree; nothing there is
// success.
func filesystemRmdir(ctx context.Context, s *scene) {
	s.write(ctx, s.path("full", "sub", "file"), "x")
	s.fails(s.host.Rmdir(ctx, s.path("full"), false), "Rmdir of a folder with something in it", host.KindPrecondition)
	s.holds(ctx, s.path("full", "sub", "file"), "x")
	for range 2 {
		s.must(s.host.Rmdir(ctx, s.path("full"), true), "Rmdir with force")
		s.exists(ctx, s.path("full"), false)
	}
	s.must(s.host.Mkdir(ctx, s.path("empty")), "Mkdir")
	for range 2 {
		s.must(s.host.Rmdir(ctx, s.path("empty"), false), "Rmdir")
		s.exists(ctx, s.path("empty"), false)
	}
	s.must(s.host.Rmdir(ctx, s.path("no", "such", "parent"), false), "Rmdir of nothing")
	if names := s.names(ctx, s.folder); len(names) > 0 {
		s.Errorf("left are %q", names)
	}
}

// The contents go and the folder stays.
func filesystemRmdirContents(ctx context.Context, s *scene) {
	s.write(ctx, s.path("f", "a"), "x")
	s.write(ctx, s.path("f", "sub", "b"), "x")
	s.write(ctx, s.path("beside"), "kept")
	for range 2 {
		s.must(s.host.RmdirContents(ctx, s.path("f")), "RmdirContents")
		if names := s.names(ctx, s.path("f")); len(names) > 0 {
			s.Errorf("left in the folder are %q", names)
		}
	}
	s.exists(ctx, s.path("f"), true)
	s.holds(ctx, s.path("beside"), "kept")
	s.fails(s.host.RmdirContents(ctx, s.path("absent")), "RmdirContents of nothing", host.KindNotFound)
	s.fails(s.host.RmdirContents(ctx, s.path("beside")), "RmdirContents of a file", host.KindPrecondition)
}

// A link is made once, leads where it should, and goes without what it leads to.
func filesystemLinks(ctx context.Context, s *scene) {
	s.write(ctx, s.path("source", "file"), "x")
	s.write(ctx, s.path("other", "file"), "y")
	for range 2 {
		s.must(s.host.CreateSymlink(ctx, s.path("source"), s.path("link")), "CreateSymlink")
	}
	s.isLink(ctx, s.path("link"), true)
	s.isLink(ctx, s.path("source"), false)
	s.holds(ctx, s.path("link", "file"), "x")
	s.exists(ctx, s.path("link", "file"), true)
	info, err := s.host.GetLink(ctx, s.path("link"))
	if !s.unsupported(err, "GetLink") && (err != nil || info.Kind != host.LinkSymlink || !samePaths([]string{info.Target}, []string{s.path("source")})) {
		s.Errorf("GetLink = %+v, %v", info, err)
	}
	if info, err := s.host.GetLink(ctx, s.path("source")); !s.unsupported(err, "GetLink") && (err != nil || info != host.LinkInfo{}) {
		s.Errorf("GetLink of a folder = %+v, %v", info, err)
	}
	s.fails(s.host.CreateSymlink(ctx, s.path("other"), s.path("link")), "CreateSymlink where a link to another place is", host.KindExists)
	s.fails(s.host.CreateSymlink(ctx, s.path("source"), s.path("other")), "CreateSymlink where a folder is", host.KindExists)
	s.fails(s.host.CreateSymlink(ctx, s.path("absent"), s.path("dangling")), "CreateSymlink to nothing", host.KindNotFound)
	s.fails(s.host.CreateSymlink(ctx, s.path("source"), s.path("no", "link")), "CreateSymlink in a folder that is not there", host.KindNotFound)
	s.holds(ctx, s.path("link", "file"), "x")
	s.fails(s.host.RmdirContents(ctx, s.path("link")), "RmdirContents of a link", host.KindPrecondition)
	s.must(s.host.Rmdir(ctx, s.path("link"), false), "Rmdir of a link")
	if s.has(ctx, s.folder, "link") {
		s.Errorf("Rmdir has left the link")
	}
	s.holds(ctx, s.path("source", "file"), "x")
}

// A link whose end has gone is still a link, and can be removed.
func filesystemDanglingLink(ctx context.Context, s *scene) {
	s.must(s.host.Mkdir(ctx, s.path("source")), "Mkdir")
	s.must(s.host.CreateSymlink(ctx, s.path("source"), s.path("link")), "CreateSymlink")
	s.must(s.host.Rmdir(ctx, s.path("source"), false), "Rmdir")
	s.isLink(ctx, s.path("link"), true)
	s.exists(ctx, s.path("link"), true)
	s.exists(ctx, s.path("link", "below"), false)
	s.fails(s.host.Mkdir(ctx, s.path("link")), "Mkdir where a dangling link is", host.KindExists)
	s.fails(s.host.Mkdir(ctx, s.path("link", "below")), "Mkdir below a dangling link", host.KindPrecondition, host.KindNotFound, host.KindExists)
	for range 2 {
		s.must(s.host.Rmdir(ctx, s.path("link"), true), "Rmdir")
		if s.has(ctx, s.folder, "link") {
			s.Errorf("Rmdir has left the link")
		}
	}
}

// A tree goes without what the links in it lead to, inside and outside.
func filesystemRmdirFollowsNoLink(ctx context.Context, s *scene) {
	s.write(ctx, s.path("kept", "file"), "inside")
	s.write(ctx, s.outside+`\kept\file`, "outside")
	for _, remove := range []func() error{
		func() error { return s.host.RmdirContents(ctx, s.path("tree")) },
		func() error { return s.host.Rmdir(ctx, s.path("tree"), true) },
	} {
		s.write(ctx, s.path("tree", "sub", "file"), "x")
		s.must(s.env.Files.MakeLink(ctx, s.path("tree", "inside"), s.path("kept")), "make a link")
		s.must(s.env.Files.MakeLink(ctx, s.path("tree", "sub", "outside"), s.outside+`\kept`), "make a link")
		s.must(remove(), "remove a tree with links in it")
		s.holds(ctx, s.path("kept", "file"), "inside")
		s.holds(ctx, s.outside+`\kept\file`, "outside")
		if s.has(ctx, s.folder, "tree") && len(s.names(ctx, s.path("tree"))) > 0 {
			s.Errorf("left in the tree are %q", s.names(ctx, s.path("tree")))
		}
	}
	s.exists(ctx, s.path("tree"), false)
}

// A tree goes without the volume that is mounted in it.
func filesystemRmdirFollowsNoMount(ctx context.Context, s *scene) {
	_, id := s.mounted(ctx, s.path("tree", "m"))
	s.write(ctx, s.path("tree", "m", "file"), "kept")
	s.fails(s.host.RmdirContents(ctx, s.path("tree", "m")), "RmdirContents of a mount point", host.KindPrecondition)
	s.holds(ctx, s.path("tree", "m", "file"), "kept")
	s.must(s.host.Rmdir(ctx, s.path("tree"), true), "Rmdir of a tree with a mount point in it")
	s.exists(ctx, s.path("tree"), false)
	s.isMountedAt(ctx, id)
	s.must(s.host.MountVolume(ctx, id, s.path("again")), "MountVolume")
	s.holds(ctx, s.path("again", "file"), "kept")
}
