package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/agent"
	"github.com/csi-windows/csi-windows/host"
	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/winos"
)

// hostileTexts are what C094 and C095 put into every field, and more.
var hostileTexts = []string{
	"", ";calc", "&calc&", "|calc", "$(calc)", "`calc`", "'", `"`, "a\nb", "a\x00b", `..\..\outside\canary`, "../../outside",
	`C:\outside`, `\\srv\share\x`, `\\.\PhysicalDrive0`, `\\?\GLOBALROOT\Device\HarddiskVolume1`, "CON", "a:b", "x.", "\xff\xfe",
	`%SystemRoot%`, "' OR 1=1 --", `\\?\Volume{00000000-0000-0000-0000-000000000000}\`, strings.Repeat("a", 300), "ſ", "\u202e",
}

// Every text field of every request takes any text: an answer or an error, no
// panic, and nothing outside the working folder.
func FuzzC094_Requests(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text)
	}
	ctx := context.Background()
	node, err := sim.Open(ctx, sim.Config{Dir: f.TempDir(), ArrivalPolls: -1, ServicePolls: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = node.Close() })
	a, err := agent.New(winos.New(node, node, winos.Options{}), agent.Policy{
		Roots: []string{root}, PollInterval: time.Millisecond, CallTimeout: 5 * time.Second, ProbeTimeout: time.Second,
	})
	if err != nil {
		f.Fatal(err)
	}
	if err := node.MakeDir(ctx, root); err != nil {
		f.Fatal(err)
	}
	const canary = `C:\outside\canary`
	if err := node.WriteFile(ctx, canary, []byte("canary")); err != nil {
		f.Fatal(err)
	}
	before := listing(f, node)
	f.Fuzz(func(t *testing.T, text string) {
		if err := node.MakeDir(ctx, root+`\t`); err != nil {
			t.Fatal(err)
		}
		for _, err := range requests(ctx, a, text) {
			if host.IsKind(err, host.KindInternal) && strings.Contains(err.Error(), "panic") {
				t.Fatalf("%q: %v", text, err)
			}
		}
		if data, err := node.ReadFile(ctx, canary); err != nil || string(data) != "canary" {
			t.Fatalf("%q reached outside: %q, %v", text, data, err)
		}
		if after := listing(t, node); !slices.Equal(before, after) {
			t.Fatalf("%q changed what is outside: %q became %q", text, before, after)
		}
		if n, err := node.HandleCount(ctx); err != nil || n != 0 {
			t.Fatalf("%q left %d handles, %v", text, n, err)
		}
	})
}

// listing is what lies on the drive outside the working folder.
func listing(t testing.TB, node *sim.Node) []string {
	t.Helper()
	var all []string
	for _, folder := range []string{`C:\`, `C:\outside`, `C:\var`, `C:\var\lib`} {
		names, err := node.ListDir(context.Background(), folder)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, names...)
	}
	slices.Sort(all)
	return all
}

// requests puts a text into every field of every request.
func requests(ctx context.Context, a *agent.Agent, text string) []error {
	const id = `\\?\Volume{12345678-1234-1234-1234-123456789abc}\`
	var errs []error
	for _, path := range []string{text, root + `\` + text, root + `\t\` + text} {
		errs = append(errs,
			second(a.PathExists(ctx, path)), second(a.IsSymlink(ctx, path)), second(a.GetLink(ctx, path)),
			a.Mkdir(ctx, path), a.CreateSymlink(ctx, path, root+`\t\link`), a.CreateSymlink(ctx, root+`\t`, path),
			a.RmdirContents(ctx, path), a.Rmdir(ctx, path, false), a.Rmdir(ctx, path, true),
			a.MountVolume(ctx, id, path), a.UnmountVolume(ctx, id, path), a.NewSmbGlobalMapping(ctx, `\\srv\share`, path, "u", "p"),
			second(a.GetVolumeIDFromTargetPath(ctx, path)), second(a.GetClosestVolumeIDFromTargetPath(ctx, path)),
		)
	}
	target := host.TargetPortal{Address: "10.0.0.1"}
	hostile := host.TargetPortal{Address: text}
	options := host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: text, ChapSecret: text}
	return append(errs,
		a.MountVolume(ctx, text, root+`\m`), a.UnmountVolume(ctx, text, root+`\m`), a.FormatVolume(ctx, text),
		second(a.IsVolumeFormatted(ctx, text)), a.ResizeVolume(ctx, text, 0), second(a.GetVolumeStats(ctx, text)),
		second(a.GetDiskNumberFromVolumeID(ctx, text)), a.WriteVolumeCache(ctx, text), second(a.GetVolume(ctx, text)),
		a.FormatVolumeWith(ctx, id, host.FormatOptions{FileSystem: text, Label: text}),
		a.FormatVolumeWith(ctx, id, host.FormatOptions{Label: text}),
		a.NewSmbGlobalMapping(ctx, text, "", "u", "p"), a.NewSmbGlobalMapping(ctx, `\\srv\`+text, "", "u", "p"),
		a.NewSmbGlobalMapping(ctx, `\\srv\share`, "", text, "p"), a.NewSmbGlobalMapping(ctx, `\\srv\share`, "", "u", text),
		a.RemoveSmbGlobalMapping(ctx, text),
		a.AddTargetPortal(ctx, hostile), a.RemoveTargetPortal(ctx, hostile), second(a.DiscoverTargetPortal(ctx, hostile)),
		a.ConnectTarget(ctx, target, text, host.ConnectOptions{}), a.ConnectTarget(ctx, target, "iqn.2024-01.com.x:y", options),
		a.DisconnectTarget(ctx, target, text), second(a.GetTargetDisks(ctx, target, text)), a.SetMutualChapSecret(ctx, text),
		a.StartService(ctx, text), a.StopService(ctx, text, true), second(a.GetService(ctx, text)),
	)
}
