package e2e_test

import (
	"context"
	"slices"

	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// objectPath and linkPath are those of the upstream table.
const (
	objectPath = stack.Root + `\x`
	linkPath   = stack.Root + `\l`
)

func filesystemWorlds() map[string]func(*stack.Stack) world {
	return map[string]func(*stack.Stack) world{
		"PathExists": func(s *stack.Stack) world {
			s.MakeDir(objectPath)
			return world{check: func() {}}
		},
		"Mkdir": func(s *stack.Stack) world {
			return world{check: func() { mustHave(s, stack.Root, "x") }}
		},
		"Rmdir": func(s *stack.Stack) world {
			s.MakeDir(objectPath)
			return world{check: func() { mustHave(s, stack.Root) }}
		},
		"Rmdir with force": func(s *stack.Stack) world {
			s.WriteFile(objectPath+`\deep\file`, "x")
			return world{check: func() { mustHave(s, stack.Root) }}
		},
		"RmdirContents": func(s *stack.Stack) world {
			s.WriteFile(objectPath+`\deep\file`, "x")
			return world{check: func() { mustHave(s, stack.Root, "x"); mustHave(s, objectPath) }}
		},
		"CreateSymlink": func(s *stack.Stack) world {
			s.WriteFile(objectPath+`\file`, "behind the link")
			return world{check: func() {
				s.Holds(linkPath+`\file`, "behind the link")
				a, err := s.Node.FileAttributes(context.Background(), linkPath)
				if err != nil || a&win32.AttrReparse == 0 || a&win32.AttrDirectory == 0 {
					s.Errorf("the link has attributes 0x%X, %v", a, err)
				}
			}}
		},
		"IsSymlink": func(s *stack.Stack) world {
			s.MakeDir(stack.Root + `\real`)
			s.OK(s.Node.MakeLink(context.Background(), objectPath, stack.Root+`\real`))
			return world{check: func() { mustHave(s, stack.Root, "real", "x") }}
		},
	}
}

// mustHave fails the test unless a folder of the node holds just these names.
func mustHave(s *stack.Stack, folder string, want ...string) {
	s.Helper()
	names := slices.Sorted(slices.Values(s.Names(folder)))
	if !slices.Equal(names, want) {
		s.Errorf("%s holds %q, want %q", folder, names, want)
	}
}
