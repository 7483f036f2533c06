package main

import (
	"bytes"
	"flag"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/sidecar"
)

// refusal is what the program says of a command line that it does not accept. It
// would wait for ever for a driver if it accepted one.
func refusal(t *testing.T, env environment, args ...string) string {
	t.Helper()
	ctx := t.Context()
	s, _, err := parse(args, env)
	if err == nil {
		t.Errorf("%q is accepted: %+v", args, s)
		return ""
	}
	if code := run(ctx, args, env); code != exitUsage {
		t.Errorf("%q: exit code %d, want %d", args, code, exitUsage)
	}
	said := env.Stderr.(*bytes.Buffer).String()
	if strings.Count(said, "\n") != 1 {
		t.Errorf("%q: it says %q, want one line", args, said)
	}
	return said
}

// What is wrong is told in the words of whoever gave it, and before the driver is
// waited for.
func TestWrongSettingsNameTheFlag(t *testing.T) {
	const sidecarName = "csi-sidecar"
	path := "--kubelet-registration-path=/p/csi.sock"
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--leader-election-renew-deadline is 10s: must be less than --leader-election-lease-duration, 5s",
			[]string{sidecarName, "--controllers=provisioner", "--leader-election-lease-duration=5s", "--leader-election-renew-deadline=10s"}},
		{"--leader-election-lease-duration is 500ms: must be at least 1s", []string{"csi-attacher", "--leader-election", "--leader-election-lease-duration=500ms"}},
		{"--leader-election-retry-period is 5s: must be above 0 and less than --leader-election-renew-deadline, 5s",
			[]string{"csi-attacher", "--leader-election", "--leader-election-renew-deadline=5s", "--leader-election-retry-period=5s"}},
		{"--kubelet-registration-path: must be given", []string{sidecarName, "--controllers=node-driver-registrar"}},
		{"--kubelet-registration-path: must be given", []string{"csi-node-driver-registrar"}},
		{"--kubelet-registration-path: must be given", []string{"csi-node-driver-registrar", "--mode=kubelet-registration-probe"}},
		{`--registrar-kubelet-registration-path is "p/csi.sock": must be an absolute path`,
			[]string{sidecarName, "--controllers=node-driver-registrar", "--registrar-kubelet-registration-path=p/csi.sock"}},
		{"--operation-timeout is -1s", []string{"csi-node-driver-registrar", path, "--operation-timeout=-1s"}},
		{"--timeout is -1s", []string{"csi-node-driver-registrar", path, "--timeout=-1s"}},
		{"--provisioner-timeout is -1s: must be positive", []string{sidecarName, "--controllers=provisioner", "--provisioner-timeout=-1s"}},
		{"--timeout is -1s: must be positive", []string{"csi-provisioner", "--timeout=-1s"}},
		{"--provisioner-retry-interval-max is 1ms: must be at least --provisioner-retry-interval-start",
			[]string{sidecarName, "--controllers=provisioner", "--provisioner-retry-interval-max=1ms"}},
		{"--provisioner-worker-threads is -1: must be 1 to 10000; --attacher-timeout is -1s: must be positive",
			[]string{sidecarName, "--controllers=provisioner,attacher", "--provisioner-worker-threads=-1", "--attacher-timeout=-1s"}},
		{`--csidriver-fs-group-policy is Foo: must be ReadWriteOnceWithFSType, File or None`,
			[]string{sidecarName, "--controllers=csidriver", "--csidriver-fs-group-policy=Foo"}},
		{`--csidriver-volume-lifecycle-modes is Foo`, []string{sidecarName, "--controllers=csidriver", "--csidriver-volume-lifecycle-modes=Foo"}},
		{`--csidriver-token-requests is 1: must be at least 600`,
			[]string{sidecarName, "--controllers=csidriver", `--csidriver-token-requests=[{"audience":"a","expirationSeconds":1}]`}},
		{`the environment variable POD_NAME is "": must be the pod's name, unless --provisioner-capacity-ownerref-level is -1`,
			[]string{sidecarName, "--controllers=provisioner", "--provisioner-enable-capacity"}},
		{`--capacity-poll-interval is 1ms`, []string{"csi-provisioner", "--enable-capacity", "--capacity-ownerref-level=-1", "--capacity-poll-interval=1ms"}},
		{`--http-endpoint: "8080" is not HOST:PORT`, []string{"csi-attacher", "--http-endpoint=8080"}},
		{`--metrics-address: port "x" must be`, []string{"csi-attacher", "--metrics-address=:x"}},
		{`--http-endpoint: "8080" is not HOST:PORT`, []string{"livenessprobe", "--http-endpoint=8080"}},
		{`--livenessprobe-http-endpoint: "8080" is not HOST:PORT`, []string{sidecarName, "--controllers=livenessprobe", "--livenessprobe-http-endpoint=8080"}},
		{`--metrics-address is ":1": must be left out when --http-endpoint is given`, []string{"livenessprobe", "--http-endpoint=:1", "--metrics-address=:1"}},
		{`--metrics-path is "m"`, []string{"livenessprobe", "--http-endpoint=:1", "--metrics-path=m"}},
		{"--metrics-path is \"m\"", []string{"csi-attacher", "--http-endpoint=:1", "--metrics-path=m"}},
		{"--health-port is 70000", []string{"livenessprobe", "--health-port=70000"}},
		{"--health-port: 70000", []string{"csi-node-driver-registrar", path, "--health-port=70000"}},
		{`--csi-address: endpoint "http://x": unknown scheme`, []string{"csi-attacher", "--csi-address=http://x"}},
		{`--csi-address: endpoint "http://x": unknown scheme`, []string{"livenessprobe", "--csi-address=http://x"}},
		{"--provisioner-node-deployment needs", []string{sidecarName, "--controllers=provisioner", "--provisioner-node-deployment"}},
		{"--snapshotter-node-deployment needs", []string{sidecarName, "--controllers=snapshotter", "--snapshotter-node-deployment"}},
		{"--registrar-mode", []string{sidecarName, "--controllers=node-driver-registrar", "--registrar-mode=other"}},
	} {
		if said := refusal(t, surroundings(), c.args...); !strings.Contains(said, c.args[0]+": "+c.want) {
			t.Errorf("%q: it says %q, want %q", c.args, said, c.want)
		}
	}
}

// Every number and duration of every component, below any limit, is accepted or
// refused by the name of its flag, and never by that of a field.
func TestEveryNumberThatIsRefusedIsRefusedByItsFlag(t *testing.T) {
	field := regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w*`) // RetryMin
	refused := map[string]int{}
	for component, prefix := range prefixes() {
		f := newFlags("all")
		declareComponent(f.of(prefix), component, &settings{})
		f.VisitAll(func(one *flag.Flag) {
			getter, ok := one.Value.(flag.Getter)
			if !ok || !strings.HasPrefix(one.Name, prefix) {
				return
			}
			value := "-5s"
			switch getter.Get().(type) {
			case int:
				value = "-5"
			case string, bool:
				return
			}
			args := []string{programName, "--controllers=" + component, "--kubelet-registration-path=/p/csi.sock", "--provisioner-enable-capacity", "--" + one.Name + "=" + value}
			_, _, err := parse(args, surroundings("POD_NAME", "p", "NAMESPACE", "n", "NODE_NAME", "n"))
			if err == nil {
				return
			}
			refused[component]++
			if !strings.Contains(err.Error(), "--"+one.Name+" is "+value) || field.MatchString(err.Error()) {
				t.Errorf("--%s=%s: %v", one.Name, value, err)
			}
		})
	}
	for _, component := range []string{sidecar.Registrar, sidecar.LivenessProbe, sidecar.Provisioner, sidecar.Attacher, sidecar.Resizer, sidecar.Snapshotter} {
		if refused[component] == 0 {
			t.Errorf("of %s nothing is refused", component)
		}
	}
}

func TestTwoSpellingsThatContradictEachOtherAreRefused(t *testing.T) {
	registrar := []string{"csi-sidecar", "--controllers=node-driver-registrar"}
	for _, c := range []struct{ one, other, same string }{
		{"--kubelet-registration-path=/x", "--registrar-kubelet-registration-path=/y", "--registrar-kubelet-registration-path=/x"},
		{"--plugin-registration-path=/x", "--registrar-plugin-registration-path=/y", "--registrar-plugin-registration-path=/x"},
		{"--registrar-timeout=1s", "--registrar-operation-timeout=2s", "--registrar-operation-timeout=1000ms"},
		{"--http-endpoint=:1", "--metrics-address=:2", "--metrics-address=:1"},
	} {
		path := "--kubelet-registration-path=/x"
		for _, args := range [][]string{{c.one, c.other}, {c.other, c.one}} {
			if args = append(slices.Clone(registrar), args...); !strings.Contains(strings.Join(args, " "), path) {
				args = append(args, path)
			}
			said := refusal(t, surroundings(), args...)
			for _, given := range []string{c.one, c.other} {
				if name, _, _ := strings.Cut(given, "="); !strings.Contains(said, name) {
					t.Errorf("%q: it says %q, want %s in it", args, said, name)
				}
			}
		}
		s := mustParse(t, surroundings(), append(slices.Clone(registrar), path, c.one, c.same)...)
		if s.Registrar.KubeletRegistrationPath != "/x" {
			t.Errorf("the path is %q", s.Registrar.KubeletRegistrationPath)
		}
	}
	s := mustParse(t, surroundings(), append(registrar, "--registrar-kubelet-registration-path=/y", "--registrar-timeout=3s")...)
	if s.Registrar.KubeletRegistrationPath != "/y" || s.Registrar.Timeout.Seconds() != 3 {
		t.Errorf("second spellings alone: %+v", s.Registrar)
	}
}

// Whoever mistakes a name is told those that there are.
func TestUnknownNamesAreToldTheKnown(t *testing.T) {
	all := slices.Collect(maps.Keys(programs()))
	for _, c := range []struct {
		args, want []string
	}{
		{[]string{"csi-sidecar", "foo"}, append(all, `"foo"`, "csi-sidecar", "--controllers")},
		{[]string{"csi-sidecar", "--controllers=attacher", "--timeout=1s"},
			[]string{"unknown flag --timeout", "--provisioner-timeout", "--attacher-timeout", "csi-sidecar --help"}},
		{[]string{"csi-sidecar", "--controllers=attacher", "--nothing"}, []string{"unknown flag --nothing; csi-sidecar --help"}},
		{[]string{"/bin/csi-sidecar.exe", "csi-attacher", "--attacher-timeout=1s"}, []string{"--timeout", "csi-sidecar csi-attacher --help"}},
		{[]string{"/bin/csi-attacher", "--nothing"}, []string{"csi-attacher: ", "; csi-attacher --help"}},
		{[]string{"csi-attacher", "--leader-election", "true"}, []string{`"true"`, "--flag=true"}},
	} {
		said := refusal(t, surroundings(), c.args...)
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%q: it says %q, want %q in it", c.args, said, want)
			}
		}
	}
}
