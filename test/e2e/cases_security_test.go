package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/wire"
)

// isSecret reports whether a field holds one.
func isSecret(f stringField) bool {
	name := strings.ToLower(string(f.path[len(f.path)-1].Name()))
	return strings.Contains(name, "password") || strings.Contains(name, "secret")
}

// C098: at the highest verbosity, and with the node's own words holding it, no secret
// of any request stands in a log, an error or the node's record of calls, be it right
// or wrong, too long or no text at all.
func TestC098_SecretsStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	s, fields := victim(t)
	secretsStay(t, s, fields, 4+2+1)
}

// secretsStay tries the fields that hold secrets, which must be as many as wanted.
func secretsStay(t *testing.T, s *stack.Stack, fields []stringField, want int) {
	t.Helper()
	const marker = "MARKER-1b"
	s.OK(s.Node.RecordCalls(context.Background(), true))
	found := 0
	for _, f := range fields {
		if !isSecret(f) {
			continue
		}
		found++
		for _, secret := range []string{marker, marker + "1234", marker + strings.Repeat("x", 600), marker + "\x00", marker + "'\"%", marker + "\n", " " + marker + " "} {
			for _, failure := range []sim.Fault{{Call: "none"}, {Call: "cim.Exec*", Count: -1, Win32: 1326}, {Call: "cim.Exec*", Count: -1, ReturnValue: 87}, {Call: "cim.*", Count: -1, Win32: 5}} {
				s.OK(s.Node.AddFault(context.Background(), failure))
				if err := invoke(s, f, secret); err != nil && strings.Contains(err.Error(), marker) {
					t.Errorf("%s: the error holds the secret: %v", f, err)
				}
				s.OK(s.Node.ClearFaults(context.Background()))
			}
		}
	}
	if found != want {
		t.Errorf("%d secret fields", found)
	}
	log, err := s.Node.CallLog(context.Background())
	s.OK(err)
	if strings.Contains(s.Log.String(), marker) || strings.Contains(fmt.Sprint(log), marker) {
		t.Error("a secret is in the log or in the node's record of calls")
	}
}

// C042, as far as the agent goes: it keeps no credentials. A wrong password is told from
// a network that fails, and the very next call with the new one succeeds.
func TestC042_RotatedPasswordWorksAtOnce(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Share("u", "old")
	request := func(password string) string { return mappingRequest(`\\srv\share`, "", "u", password) }
	s.Must("smb", "v1", "NewSmbGlobalMapping", request("old"))
	s.Must("smb", "v1", "RemoveSmbGlobalMapping", `{"remote_path":"\\\\srv\\share"}`)
	s.Share("u", "new")
	for range 3 {
		s.Refused(codes.Unauthenticated, "smb", "v1", "NewSmbGlobalMapping", request("old"))
	}
	s.Must("smb", "v1", "NewSmbGlobalMapping", request("new"))
	s.Must("smb", "v1", "RemoveSmbGlobalMapping", `{"remote_path":"\\\\srv\\share"}`)
	s.Share("u", "new", func(server *sim.SMBServer) { server.Failure = 1232 })
	s.Refused(codes.Unavailable, "smb", "v1", "NewSmbGlobalMapping", request("new"))
}

// C035, as far as the agent goes: taking away a link leaves the mapping and the links
// of others as they are, also when the agent has been restarted in between; removing
// the mapping is a call of its own.
func TestC035_LinksAndMappingsAreTwoThings(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	folder := s.Share("u", "pw")
	s.RealFile("shared", folder, "file")
	for _, link := range []string{`\a`, `\b`} {
		s.Must("smb", "v1", "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, stack.Root+link, "u", "pw"))
	}
	s.Restart()
	s.Must("filesystem", "v1", "Rmdir", `{"path":"C:\\k\\a"}`)
	s.Restart()
	s.Holds(stack.Root+`\b\file`, "shared")
	if m := s.Mappings(); len(m) != 1 {
		t.Errorf("mappings are %q", m)
	}
	s.Must("filesystem", "v1", "Rmdir", `{"path":"C:\\k\\b","force":true}`)
	s.Must("smb", "v1", "RemoveSmbGlobalMapping", `{"remote_path":"\\\\srv\\share"}`)
	if m := s.Mappings(); len(m) != 0 {
		t.Errorf("mappings are %q", m)
	}
	s.Share("u", "pw")
	mustHave(s, stack.Root)
}

// C043 and C057: two hundred callers at once, of every group, are served without a
// child process, and none of them stands in another's way.
func TestC043_C057_ManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	s.Share("u", "pw")
	dataDisk(s) // has the name that the oldest version looks for
	disk, id := s.Mounted(mountPath)
	words := strings.NewReplacer(append(volumeWords(disk, id), connected(s)...)...)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			link := fmt.Sprintf(`%s\l%d`, stack.Root, i)
			if _, err := s.Call("smb", smbVersions()[i%4], "NewSmbGlobalMapping", mappingRequest(`\\srv\share`, link, "u", "pw")); err != nil {
				t.Error(err)
			}
		})
	}
	queries := "ListDiskLocations ListDiskIDs GetDiskStats GetDiskState ListVolumesOnDisk GetVolumeStats IsVolumeFormatted GetDiskNumberFromVolumeID GetVolumeIDFromTargetPath ListTargetPortals GetTargetDisks GetBIOSSerialNumber GetService"
	eachCase(queries, func(c upstream.Case) {
		all.Go(func() {
			if _, err := s.Call(c.Group, c.Version, c.Method, words.Replace(c.Request)); err != nil {
				t.Errorf("%s: %v", c.Name(), err)
			}
		})
	})
	all.Wait()
	if m := s.Mappings(); len(m) != 1 {
		t.Errorf("mappings are %q", m)
	}
	stack.NoChildren(t)
	stack.NoLivingChildren(t)
}

// C061 and C062 over the whole stack: the product's client finds the newest version an
// older agent has, goes on after the agent's restart, and says what it cannot do.
func TestC061_C062_ClientAndAnOlderAgent(t *testing.T) {
	t.Parallel()
	s := stack.New(t, func(cfg *stack.Config) {
		cfg.APIs = []wire.API{{Group: "disk", Version: "v1beta1"}, {Group: "disk", Version: "v1beta2"}, {Group: "filesystem", Version: "v1alpha1"}}
	})
	disk := s.Attach(sim.DiskSpec{Bus: "SAS"})
	c := s.Client()
	ctx := s.Context()
	s.OK(c.PartitionDisk(ctx, disk))
	s.OK(c.Mkdir(ctx, objectPath))
	if chosen := c.Chosen(); chosen["disk"] != "v1beta2" || chosen["filesystem"] != "v1alpha1" {
		t.Errorf("chosen are %v", chosen)
	}
	s.Restart()
	online, err := c.GetDiskState(ctx, disk)
	if err != nil || !online {
		t.Errorf("after the restart: %v, %v", online, err)
	}
	if exists, err := c.PathExists(ctx, objectPath); err != nil || !exists {
		t.Errorf("after the restart: %v, %v", exists, err)
	}
	if err := c.RmdirContents(ctx, objectPath); !host.IsKind(err, host.KindUnsupported) {
		t.Errorf("RmdirContents of v1alpha1: %v", err)
	}
	if _, err := c.GetBIOSSerialNumber(ctx); !host.IsKind(err, host.KindUnsupported) || !strings.Contains(err.Error(), "system-v1alpha1") {
		t.Errorf("a group nobody serves: %v", err)
	}
}
