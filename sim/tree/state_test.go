package tree

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

func TestStateSurvivesARestart(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	b.must(b.MakeFolder(ctx, `C:\m`))
	b.must(b.MakeFolder(ctx, `C:\some folder`))
	b.must(b.SetVolumeMountPoint(ctx, `C:\m\`, volumeD))
	b.must(b.symlink(`C:\`, "link", `..\m`, true))
	b.must(b.SetShortName(ctx, `C:\some folder`, "ALIAS"))
	b.must(b.WriteFile(ctx, `C:\link\f`, []byte("x")))

	text, err := json.Marshal(b.Snapshot())
	b.must(err)
	var state State
	b.must(json.Unmarshal(text, &state))
	if !reflect.DeepEqual(state, b.Snapshot()) {
		t.Fatalf("state changed on its way: %+v", state)
	}
	b.Close()

	b.must(os.Rename(b.d, b.host("d2"))) // the volume's folder is elsewhere now
	b.Tree = New(Config{})
	b.Restore(state)
	b.must(b.AttachVolume(Volume{ID: volumeC, Folder: b.c, HostsMountPoints: true}))
	b.must(b.AttachVolume(Volume{ID: volumeD, Folder: b.host("d2"), HostsMountPoints: true}))
	if got := b.read(`C:\link\f`); got != "x" {
		t.Errorf("through link and mount point: %q", got)
	}
	b.hostLeads([]string{"c", "m"}, volumeD)
	b.info(`C:\alias`)
	b.must(b.DeleteVolumeMountPoint(ctx, `C:\m\`))
	b.must(b.delete(`C:\m`))
}

func TestChangedIsCalledBeforeTheCallReturns(t *testing.T) {
	t.Parallel()
	b, ctx := newBed(t), context.Background()
	var stored State
	b.changed = func() { stored = b.Snapshot() }
	b.must(b.MakeFolder(ctx, `C:\m`))
	if len(stored.Links) != 0 {
		t.Error("called for a plain folder")
	}
	for step, change := range map[string]func() error{
		"mount":   func() error { return b.SetVolumeMountPoint(ctx, `C:\m\`, volumeD) },
		"letter":  func() error { b.SetDrive('q', volumeD); return nil },
		"symlink": func() error { return b.symlink(`C:\`, "l", `C:\m`, true) },
	} {
		b.must(change())
		if !reflect.DeepEqual(stored, b.Snapshot()) {
			t.Errorf("%s: stored %+v, state %+v", step, stored, b.Snapshot())
		}
	}
	b.must(b.delete(`C:\l`))
	b.must(b.Rename(ctx, `C:\m`, `C:\n`))
	if len(stored.Links) != 1 || stored.Links[0].Path != "n" {
		t.Errorf("stored %+v", stored)
	}
}
