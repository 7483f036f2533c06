package fieldcases_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fieldCase is one fault that users of storage on Windows nodes reported. Its number is
// the one the tests name.
type fieldCase struct {
	id, area, what string
}

// required are the cases that a test has to name, wherever it is. Those that need real
// Windows, Kubernetes or parts of the product that do not exist yet are not here.
func required() []fieldCase {
	return []fieldCase{
		{"C001", "disk", "a disk stays read-only after it moves"},
		{"C003", "disk", "the reserved partition counts as data"},
		{"C004", "disk", "identifiers of page 0x83"},
		{"C006", "disk", "a handle is left open for each drive"},
		{"C007", "disk", "one unit number on two adapters"},
		{"C009", "disk", "the disk is still online after the unmount"},
		{"C010", "disk", "two disks with one signature"},
		{"C011", "volume", "a resize by next to nothing"},
		{"C013", "volume", "the largest size is not known"},
		{"C014", "volume", "a foreign file system counts as none"},
		{"C015", "volume", "sizes of the system drive"},
		{"C017", "volume", "the volume behind links and mounts"},
		{"C019", "volume", "mount points are no symbolic links"},
		{"C020", "volume", "NUL for a drive letter"},
		{"C021", "volume", "an unmount without a flush"},
		{"C022", "filesystem", "links whose target is gone"},
		{"C023", "filesystem", "paths beyond 260 characters"},
		{"C024", "filesystem", "paths beyond 128 bytes"},
		{"C026", "filesystem", "rooted paths without a letter"},
		{"C027", "filesystem", "a removal that follows links"},
		{"C029", "filesystem", "short names"},
		{"C030", "filesystem", "upper and lower case"},
		{"C031", "smb", "a second volume of one server"},
		{"C032", "smb", "a mapping and one below it"},
		{"C033", "smb", "concurrent mappings, error 1219"},
		{"C034", "smb", "a mapping for each sub-folder"},
		{"C035", "smb", "who still uses a mapping"},
		{"C036", "smb", "mappings pile up"},
		{"C039", "smb", "characters of passwords"},
		{"C040", "smb", "users and domains"},
		{"C042", "smb", "an old password is kept"},
		{"C043", "smb", "too many helper processes"},
		{"C044", "smb", "servers without encryption"},
		{"C045", "smb", "a link without a mapping"},
		{"C047", "smb", "a mapping that does not answer"},
		{"C049", "iscsi", "portals, logins and CHAP"},
		{"C050", "iscsi", "credentials of each target"},
		{"C052", "iscsi", "logins that come back"},
		{"C055", "system", "services"},
		{"C056", "server", "processes started for requests"},
		{"C057", "server", "calls of many at once"},
		{"C058", "server", "a second copy, and the service flag"},
		{"C060", "server", "who may open the pipes"},
		{"C061", "server", "restarts and versions"},
		{"C062", "client", "an agent older than the client"},
		{"C064", "driver", "retries of a call that hangs pile up"},
		{"C066", "driver", "a driver that is busy is restarted"},
		{"C067", "driver", "raw block volumes"},
		{"C068", "driver", "repeated calls"},
		{"C069", "driver", "file systems that Windows does not have"},
		{"C071", "registrar", "a kubelet that never calls"},
		{"C072", "registrar", "a socket that was left over"},
		{"C075", "registrar", "health of a driver whose socket is gone"},
		{"C076", "provisioner", "a claim deleted while its volume is being made"},
		{"C077", "provisioner", "a restart between volume and object"},
		{"C078", "provisioner", "the volume's object deleted before the claim"},
		{"C080", "provisioner", "a second volume from an old cache entry"},
		{"C081", "provisioner", "a selected node that cannot have the volume"},
		{"C083", "provisioner", "capacity objects that stay behind"},
		{"C084", "attacher", "a failed attach keeps the volume's object"},
		{"C085", "attacher", "an attach to a node that is gone"},
		{"C087", "resizer", "a refused resize reported as done"},
		{"C089", "snapshotter", "a snapshot deleted while it is being taken"},
		{"C091", "filesystem", "kinds of links, mount points and folders"},
		{"C093", "driver", "paths and sockets in HostProcess containers"},
		{"C094", "security", "commands in requests"},
		{"C095", "security", "commands in names of links"},
		{"C096", "security", "a folder swapped for a link"},
		{"C098", "security", "secrets in logs"},
		{"C100", "security", "who may read the logs"},
	}
}

// requiredOfDrivers are the cases of the list that also go wrong above the agent, in
// the node tasks, the kit, the driver or the mounter: a test of one of these has to
// name them too. What only the agent and the code below it can get wrong, such as
// descriptors of disks, short names and the pipes, is not here.
func requiredOfDrivers() []string {
	return []string{
		"C001", "C003", "C006", "C007", "C009", "C010", "C011", "C013", "C014", "C015", "C017", "C019", "C020", "C021", "C022", "C023",
		"C024", "C026", "C027", "C030", "C031", "C032", "C033", "C034", "C035", "C036", "C039", "C040", "C042", "C043", "C044", "C045",
		"C047", "C049", "C050", "C052", "C056", "C062", "C064", "C066", "C067", "C068", "C069", "C072", "C091", "C093", "C094", "C095",
		"C096", "C098", "C100",
	}
}

// requiredOfSidecars are the cases that csi-sidecar has to get right, and the folder
// in which a test has to bear the number in its own name.
func requiredOfSidecars() map[string]string {
	return map[string]string{
		"C071": "sidecar/registrar", "C072": "sidecar/registrar", "C075": "sidecar/liveness", "C093": "cmd/csi-sidecar",
		"C076": "sidecar/provisioner", "C077": "sidecar/provisioner", "C078": "sidecar/provisioner", "C080": "sidecar/provisioner",
		"C081": "sidecar/provisioner", "C083": "sidecar/capacity", "C084": "sidecar/attacher", "C085": "sidecar/attacher",
		"C087": "sidecar/resizer", "C089": "sidecar/snapshotter",
	}
}

// bears reports whether a test, as file.test, is in a folder and has a case's number
// in its name.
func bears(test, folder, id string) bool {
	file, name, _ := strings.Cut(test, ".")
	return path.Dir(file) == folder && strings.HasPrefix(name, "Test"+id+"_")
}

// isOfDrivers reports whether a test is one of the node tasks, the kit, the driver or
// the mounter.
func isOfDrivers(test string) bool {
	return slices.ContainsFunc([]string{
		"node", "csikit", "driver", "mounter", "cmd/csi-driver", "test/sanity", "test/stress", "test/sweep", "test/e2e/node_",
	}, func(folder string) bool { return strings.HasPrefix(test, folder) })
}

var idPattern = regexp.MustCompile(`\bC\d{3}\b|C\d{3}_`)

// named are the tests that name each case, as file.test: in the name of the test, or in
// a text or comment inside of it.
func named(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	err := filepath.WalkDir("../..", func(found string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 2 || entry.Name() == "fieldcases") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(found, "_test.go") {
			return nil
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, found, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for name, ids := range casesOf(file) {
			for _, id := range ids {
				at := strings.TrimPrefix(filepath.ToSlash(found), "../../")
				tests[id] = append(tests[id], strings.TrimSuffix(at, "_test.go")+"."+name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// casesOf are the cases that each test of a file names.
func casesOf(file *ast.File) map[string][]string {
	cases := map[string][]string{}
	add := func(name, text string) {
		for _, id := range idPattern.FindAllString(text, -1) {
			cases[name] = append(cases[name], strings.TrimSuffix(id, "_"))
		}
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || !isTest(function.Name.Name) {
			continue
		}
		name := function.Name.Name
		add(name, name)
		add(name, function.Doc.Text())
		ast.Inspect(function, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				add(name, literal.Value)
			}
			return true
		})
		for _, comment := range file.Comments {
			if function.Pos() <= comment.Pos() && comment.End() <= function.End() {
				add(name, comment.Text())
			}
		}
	}
	return cases
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Benchmark")
}

// Every case of the list is named by a test. With -v the tests of each are printed.
func TestEveryCaseHasATest(t *testing.T) {
	t.Parallel()
	tests := named(t)
	for _, c := range required() {
		names := tests[c.id]
		slices.Sort(names)
		names = slices.Compact(names)
		if len(names) == 0 {
			t.Errorf("%s (%s: %s) is named by no test", c.id, c.area, c.what)
			continue
		}
		t.Logf("%s %-10s %s", c.id, c.area, strings.Join(names, ", "))
		if slices.Contains(requiredOfDrivers(), c.id) && !slices.ContainsFunc(names, isOfDrivers) {
			t.Errorf("%s (%s: %s) is named by no test above the agent", c.id, c.area, c.what)
		}
		folder, ok := requiredOfSidecars()[c.id]
		if ok && !slices.ContainsFunc(names, func(test string) bool { return bears(test, folder, c.id) }) {
			t.Errorf("%s (%s: %s): no test Test%s_… in %s", c.id, c.area, c.what, c.id, folder)
		}
	}
}

// The list is in order and has each case once.
func TestTheListIsInOrder(t *testing.T) {
	t.Parallel()
	ids := make([]string, 0, len(required()))
	for _, c := range required() {
		ids = append(ids, c.id)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("the list is not in order: %q", ids)
	}
	for _, id := range requiredOfDrivers() {
		if !slices.Contains(ids, id) {
			t.Errorf("%s is not in the list", id)
		}
	}
	for id := range requiredOfSidecars() {
		if !slices.Contains(ids, id) {
			t.Errorf("%s is not in the list", id)
		}
	}
}
