package registrar

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

func TestC072_WhatIsAtTheSocketsPath(t *testing.T) {
	for name, test := range map[string]struct {
		put     func(path string) error
		refused string // part of the error; empty when it is replaced
	}{
		"left-over socket": {put: func(path string) error {
			s, err := openSocket(path)
			if err != nil {
				return err
			}
			return s.UnixListener.Close() // the file stays
		}},
		"zero-length file":          {put: func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		"regular file with content": {put: func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }, refused: "no socket"},
		"folder":                    {put: func(path string) error { return os.Mkdir(path, 0o755) }, refused: "no socket"},
		"link": {put: func(path string) error {
			return os.Symlink(filepath.Join(filepath.Dir(path), "none"), path)
		}, refused: "no socket"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			if err := test.put(b.socketPath()); err != nil {
				t.Fatal(err)
			}
			if test.refused == "" {
				k := startKubelet(t, b.registry, v1{}, nil)
				b.start()
				k.await(b.registered(), 1)
				return
			}
			err := b.start().wait()
			if err == nil || !strings.Contains(err.Error(), test.refused) || !strings.Contains(err.Error(), b.socketPath()) {
				t.Errorf("Run returned %v", err)
			}
			if err := exists(b.socketPath()); err != nil {
				t.Errorf("it was removed: %v", err)
			}
		})
	}
}

func TestMayBeSocket(t *testing.T) {
	for _, test := range []struct {
		mode fs.FileMode
		size int64
		want bool
	}{
		{fs.ModeSocket | 0o600, 0, true},
		{0o600, 0, true},
		{fs.ModeIrregular, 0, true},
		{0o600, 1, false},
		{fs.ModeIrregular, 1, false},
		{fs.ModeDir | 0o755, 0, false},
		{fs.ModeSymlink, 0, false},
		{fs.ModeNamedPipe, 0, false},
		{fs.ModeDevice, 0, false},
	} {
		if got := mayBeSocket(test.mode, test.size); got != test.want {
			t.Errorf("%s with %d bytes: %v", test.mode, test.size, got)
		}
	}
}

func TestFolderOfTheSocket(t *testing.T) {
	b := newBed(t)
	file := filepath.Join(b.plugin, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{filepath.Join(b.registry, "none"), file, filepath.Join(file, "below")} {
		b.config.PluginRegistrationPath = folder
		err := b.start().wait()
		if err == nil || !strings.Contains(err.Error(), "plugin registration path") || !strings.Contains(err.Error(), folder) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	// A link to a folder is as good as the folder.
	link := filepath.Join(b.plugin, "link")
	if err := os.Symlink(b.registry, link); err != nil {
		t.Skip(err)
	}
	b.config.PluginRegistrationPath = link
	k := startKubelet(t, b.registry, v1{}, nil)
	b.start()
	k.await(b.registered(), 1)
}

func TestConfigIsChecked(t *testing.T) {
	long := "/" + strings.Repeat("k", socketPathBytesMax-1)
	for name, test := range map[string]struct {
		change func(c *Config)
		want   []string // parts of the error; none when it is good
	}{
		"good":                     {func(*Config) {}, nil},
		"no kubelet path":          {func(c *Config) { c.KubeletRegistrationPath = "" }, []string{"KubeletRegistrationPath", "must be given"}},
		"longest kubelet path":     {func(c *Config) { c.KubeletRegistrationPath = long }, nil},
		"kubelet path too long":    {func(c *Config) { c.KubeletRegistrationPath = long + "k" }, []string{"KubeletRegistrationPath", "108 bytes", "107"}},
		"too long in Windows":      {func(c *Config) { c.KubeletRegistrationPath = `C:\` + long }, []string{"KubeletRegistrationPath", "110 bytes", "107"}},
		"relative kubelet path":    {func(c *Config) { c.KubeletRegistrationPath = "plugins/csi.sock" }, []string{"KubeletRegistrationPath", "an absolute path"}},
		"URL":                      {func(c *Config) { c.KubeletRegistrationPath = "unix:///csi/csi.sock" }, []string{"KubeletRegistrationPath", "unix:"}},
		"drive without a slash":    {func(c *Config) { c.KubeletRegistrationPath = "C:csi.sock" }, []string{"an absolute path"}},
		"newline":                  {func(c *Config) { c.KubeletRegistrationPath = "/csi\n.sock" }, []string{"control character"}},
		"Windows path":             {func(c *Config) { c.KubeletRegistrationPath = `\var\lib\kubelet\csi.sock` }, nil},
		"negative timeout":         {func(c *Config) { c.RegistrationTimeout = -1 }, []string{"RegistrationTimeout is"}},
		"negative tries":           {func(c *Config) { c.Tries = -1 }, []string{"Tries is -1"}},
		"negative watch interval":  {func(c *Config) { c.WatchInterval = -time.Second }, []string{"WatchInterval is"}},
		"negative confirm timeout": {func(c *Config) { c.ConfirmTimeout = -time.Second }, []string{"ConfirmTimeout is"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			test.change(&b.config)
			_, err := New(b.env, b.config)
			if (err == nil) != (test.want == nil) {
				t.Fatal(err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("no %q in %v", part, err)
				}
			}
		})
	}
	if got := (Config{}).withDefaults("windows").PluginRegistrationPath; got != `C:\registration` {
		t.Errorf("on Windows the socket is in %s", got)
	}
	if got := (Config{}).withDefaults("linux").PluginRegistrationPath; got != "/registration" {
		t.Errorf("the socket is in %s", got)
	}
}

// Nothing is touched for a driver whose socket could not be made.
func TestRegistrationSocketPathTooLong(t *testing.T) {
	b := newBed(t)
	deep := filepath.Join(b.registry, strings.Repeat("d", 90))
	if err := os.Mkdir(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.markerPath(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.config.PluginRegistrationPath = deep
	err := b.start().wait()
	if err == nil || !strings.Contains(err.Error(), "plugin registration path") || !strings.Contains(err.Error(), "107") {
		t.Errorf("Run returned %v", err)
	}
	if err := exists(b.markerPath()); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(deep); len(entries) != 0 {
		t.Errorf("there is %v", entries)
	}
}

func TestDriverNameIsChecked(t *testing.T) {
	for name, isGood := range map[string]bool{
		"driver.example.com": true, "a": true, "PD.csi.storage-1.gke.io": true,
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
		"": false, ".": false, "..": false, "../../etc/x": false, `..\x`: false, "a/b": false, "a b": false,
		"-a": false, "a-": false, "a.": false, "driver\x00": false, "tréiber": false, "a_b": false,
	} {
		b := newBed(t)
		b.env.Driver = csiclient.New(b.env.Driver.Conn(), csiclient.Info{Name: name})
		if isGood {
			if err := checkDriverName(name); err != nil {
				t.Errorf("%q: %v", name, err)
			}
			continue
		}
		if err := b.start().wait(); err == nil || !strings.Contains(err.Error(), "driver") {
			t.Errorf("%q: %v", name, err)
		}
		if entries, _ := os.ReadDir(b.registry); len(entries) != 0 {
			t.Errorf("%q: there is %v", name, entries)
		}
	}
}

func TestMarkerPath(t *testing.T) {
	for _, test := range []struct{ path, system, want string }{
		{"/var/lib/kubelet/plugins/x/csi.sock", "linux", "/var/lib/kubelet/plugins/x/registration"},
		{"/csi.sock", "linux", "/registration"},
		{`/a\b/csi.sock`, "linux", `/a\b/registration`},
		{`C:\var\lib\x\csi.sock`, "windows", `C:\var\lib\x\registration`},
		{`C:/var/lib/x/csi.sock`, "windows", `C:/var/lib/x/registration`},
		{`/var/lib\x\csi.sock`, "windows", `/var/lib\x\registration`},
		{`C:\var\lib\x\csi.sock`, "linux", ""},
	} {
		if got := markerPath(test.path, test.system); got != test.want {
			t.Errorf("%s on %s: %s", test.path, test.system, got)
		}
	}
}

func TestProbe(t *testing.T) {
	b := newBed(t)
	path := b.config.KubeletRegistrationPath
	blind := func(err error) bool { return errors.Is(err, ErrProbeBlind) }
	if err := Probe(path); err == nil || blind(err) || !strings.Contains(err.Error(), b.markerPath()) {
		t.Errorf("before: %v", err)
	}
	k := startKubelet(t, b.registry, v1{}, nil)
	r := b.start()
	k.await(b.registered(), 1)
	eventually(t, func() error { return Probe(path) })
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if err := Probe(path); err == nil {
		t.Error("still good after the end")
	}
	if err := Probe(""); err == nil {
		t.Error("good without a path")
	}
	if err := os.Mkdir(b.markerPath(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Probe(path); err == nil || blind(err) {
		t.Errorf("a folder as marker: %v", err)
	}
	// No folder can be made below a file.
	file := filepath.Join(b.plugin, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(file, "x", "csi.sock")
	if err := Probe(below); err == nil {
		t.Error("good below a file")
	}
	if entries, _ := os.ReadDir(b.plugin); slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("the probe left %v", entries)
	}
}

func TestProbeOfAReadOnlyContainerIsBlind(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("needs a folder that takes no files")
	}
	if err := Probe("/proc/csi/csi.sock"); !errors.Is(err, ErrProbeBlind) {
		t.Error(err)
	}
}

// A marker of an earlier life says nothing, and a file with content is not ours.
func TestMarkerOfAnEarlierLife(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "with content": "mine"} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			if err := os.WriteFile(b.markerPath(), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			startKubelet(t, b.registry, v1{}, func(int) reaction { return ignores })
			r := b.start()
			eventually(t, func() error { return exists(b.socketPath()) })
			isThere := exists(b.markerPath()) == nil
			if isThere != (content != "") {
				t.Errorf("there: %v", isThere)
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWaitForTheDriverIsLoggedOnceAMinute(t *testing.T) {
	b := newBed(t)
	clock := clocktesting.NewFakeClock(time.Now())
	b.env.Clock = clock
	r := b.registrar()
	b.driver.stop()
	done := make(chan error, 1)
	go func() { done <- r.awaitDriver(t.Context(), driverName) }()
	step := func() {
		eventually(t, func() error {
			if !clock.HasWaiters() {
				return errors.New("nobody waits")
			}
			return nil
		})
		clock.Step(driverRetry)
	}
	for range 150 {
		step()
	}
	if n := strings.Count(b.log.String(), "Waiting for the driver"); n != 2 {
		t.Errorf("%d lines in two and a half minutes:\n%s", n, b.log)
	}
	b.driver.start()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		case <-time.After(5 * time.Millisecond):
			clock.Step(driverRetry)
		}
	}
}
