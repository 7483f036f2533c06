package registrar

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whichever version of its API a kubelet has, it is told the driver's name and
// the path letter by letter.
func TestDriverIsRegistered(t *testing.T) {
	for name, api := range map[string]kubeletAPI{"v1": v1{}, "other versions": readDescribed(t)} {
		for _, endpoint := range []string{
			"", "/var/lib/kubelet/plugins/pd.csi.storage.gke.io/csi.sock",
			`C:\var\lib\kubelet\plugins\pd.csi.storage.gke.io\csi.sock`, `c:/var/../lib//kubelet/csi.sock`,
		} {
			t.Run(name+" "+endpoint, func(t *testing.T) {
				b := newBed(t)
				if endpoint != "" {
					b.config.KubeletRegistrationPath = endpoint
				}
				if strings.HasPrefix(endpoint, "/") {
					b.config.KubeletRegistrationPath = b.plugin + "/x/../csi.sock"
				}
				k := startKubelet(t, b.registry, api, nil)
				r := b.start()
				k.await(fmt.Sprintf("registered %s %s", driverName, b.config.KubeletRegistrationPath), 1)
				got := k.first()
				if got.kind != "CSIPlugin" || !slices.Equal(got.versions, []string{"1.0.0"}) {
					t.Errorf("the kubelet was told %+v", got)
				}
				info, err := os.Lstat(b.socketPath())
				if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
					t.Errorf("the socket: %v, %v", info, err)
				}
				if err := r.stop(); err != nil {
					t.Error(err)
				}
				if err := isGone(b.socketPath()); err != nil {
					t.Error(err)
				}
				if strings.HasPrefix(endpoint, "C:") {
					if err := isGone(`C:\var\lib\kubelet\plugins\pd.csi.storage.gke.io\registration`); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// Run may be called again after it has returned.
func TestRunAgain(t *testing.T) {
	b := newBed(t)
	k := startKubelet(t, b.registry, v1{}, nil)
	for n := range 3 {
		r := b.start()
		k.await(b.registered(), n+1)
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		k.await("gone", n+1)
	}
}

func (b *bed) registered() string {
	return fmt.Sprintf("registered %s %s", driverName, b.config.KubeletRegistrationPath)
}

func TestC071_KubeletThatMissedTheSocketGetsAnother(t *testing.T) {
	b := newBed(t)
	b.config.RegistrationTimeout, b.config.Tries = 300*time.Millisecond, 1000
	k := startKubelet(t, b.registry, v1{}, func(n int) reaction {
		if n == 0 {
			return ignores
		}
		return registers
	})
	r := b.start()
	k.await(b.registered(), 1)
	eventually(t, func() error { return exists(b.markerPath()) })
	if noted := k.all(); !slices.Equal(noted[:3], []string{"seen", "gone", "seen"}) {
		t.Errorf("the kubelet saw %q", noted)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestC071_KubeletThatNeverCallsIsAnError(t *testing.T) {
	b := newBed(t)
	b.config.RegistrationTimeout, b.config.Tries = 10*time.Millisecond, 3
	err := b.start().wait()
	if err == nil || !strings.Contains(err.Error(), "3 times") || !strings.Contains(err.Error(), b.socketPath()) || !strings.Contains(err.Error(), "10ms") {
		t.Errorf("Run returned %v", err)
	}
	if err := isGone(b.socketPath()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(b.log.String(), "made anew"); n != 2 {
		t.Errorf("%d sockets were made anew:\n%s", n, b.log)
	}
}

// A kubelet that has called may ask the driver for a while. One that hangs then
// gets another socket all the same.
func TestC071_KubeletThatHangsInARegistration(t *testing.T) {
	b := newBed(t)
	b.config.RegistrationTimeout, b.config.ConfirmTimeout, b.config.Tries = testWait, 50*time.Millisecond, 1000
	k := startKubelet(t, b.registry, v1{}, func(n int) reaction {
		if n == 0 {
			return asksOnly
		}
		return registers
	})
	b.start()
	k.await(b.registered(), 1)
	if n := k.count("seen"); n < 2 {
		t.Errorf("the kubelet saw %q", k.all())
	}
}

func TestC071_RefusalEndsRunWithItsText(t *testing.T) {
	b := newBed(t)
	k := startKubelet(t, b.registry, v1{}, func(int) reaction { return refuses })
	err := b.start().wait()
	if err == nil || !strings.Contains(err.Error(), "no handler for it") || !strings.Contains(err.Error(), driverName) {
		t.Errorf("Run returned %v", err)
	}
	k.await("gone", 1)
	if noted := k.all(); !slices.Equal(noted, []string{"seen", "refused", "gone"}) {
		t.Errorf("the kubelet was not answered: %q", noted)
	}
	if err := isGone(b.markerPath()); err != nil {
		t.Error(err)
	}
}

func TestC071_DriverThatComesBackIsRegisteredAgain(t *testing.T) {
	b := newBed(t)
	k := startKubelet(t, b.registry, v1{}, nil)
	r := b.start()
	k.await(b.registered(), 1)
	b.driver.stop()
	eventually(t, func() error {
		if !strings.Contains(b.log.String(), "connection to the driver is lost") {
			return fmt.Errorf("not in the log:\n%s", b.log)
		}
		return nil
	})
	// The volumes of pods must go on being unmounted when it is back.
	if err := exists(b.socketPath()); err != nil {
		t.Errorf("the registration was taken back at once: %v", err)
	}
	b.driver.start()
	k.await(b.registered(), 2)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestC071_DriverThatComesBackIsAskedWhetherItIsReady(t *testing.T) {
	b := newBed(t)
	r := b.registrar()
	b.driver.set(driverName, true)
	if name, err := r.askDriver(t.Context(), testWait); !errors.Is(err, errNotReady) {
		t.Errorf("a driver that is not ready was taken as %q, %v", name, err)
	}
	b.driver.set("other.example.com", false)
	if name, err := r.askDriver(t.Context(), testWait); name != "other.example.com" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
}

func TestC071_DriverThatComesBackAsAnotherIsAnError(t *testing.T) {
	b := newBed(t)
	k := startKubelet(t, b.registry, v1{}, nil)
	r := b.start()
	k.await(b.registered(), 1)
	b.driver.stop()
	b.driver.set("other.example.com", false)
	b.driver.start()
	err := r.wait()
	if err == nil || !strings.Contains(err.Error(), "other.example.com") || !strings.Contains(err.Error(), driverName) {
		t.Errorf("Run returned %v", err)
	}
	if err := isGone(b.socketPath()); err != nil {
		t.Error(err)
	}
}

// A kubelet that starts again calls the socket that is there.
func TestKubeletThatStartsAgainFindsTheSocket(t *testing.T) {
	b := newBed(t)
	first := startKubelet(t, b.registry, v1{}, nil)
	b.start()
	first.await(b.registered(), 1)
	second := startKubelet(t, b.registry, v1{}, nil)
	second.await(b.registered(), 1)
	if noted := first.all(); !slices.Equal(noted, []string{"seen", b.registered()}) {
		t.Errorf("the socket was made anew: %q", noted)
	}
}

func TestC072_DeletedSocketIsMadeAnew(t *testing.T) {
	if interval := (Config{}).withDefaults("linux").WatchInterval; interval <= 0 || interval > 8*time.Second {
		t.Errorf("the file is looked at every %s, and must be there again within 10 s", interval)
	}
	b := newBed(t)
	k := startKubelet(t, b.registry, v1{}, nil)
	r := b.start()
	for n := 1; n < 4; n++ {
		k.await(b.registered(), n)
		eventually(t, func() error { return exists(b.markerPath()) })
		if err := os.Remove(b.socketPath()); err != nil {
			t.Fatal(err)
		}
	}
	k.await(b.registered(), 4)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// The socket in the place of ours is that of a registrar that has crashed.
func TestC072_DeadSocketOfAnotherIsReplaced(t *testing.T) {
	b := newBed(t)
	k := startKubelet(t, b.registry, v1{}, nil)
	b.start()
	k.await(b.registered(), 1)
	_ = os.Remove(b.socketPath())
	if listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: b.socketPath(), Net: "unix"}); err == nil {
		listener.SetUnlinkOnClose(false)
		_ = listener.Close()
	}
	k.await(b.registered(), 2)
}

// In a roll-out a new pod begins before the old one ends. The last one that
// started has the socket, and they do not take it from each other.
func TestNewerRegistrarTakesOver(t *testing.T) {
	b := newBed(t)
	k := startKubelet(t, b.registry, v1{}, nil)
	old := b.start()
	k.await(b.registered(), 1)
	eventually(t, func() error { return exists(b.markerPath()) })
	newer := b.start()
	k.await(b.registered(), 2)
	eventually(t, func() error {
		if !strings.Contains(b.log.String(), "Another registrar has taken over") {
			return fmt.Errorf("not in the log:\n%s", b.log)
		}
		return nil
	})
	if code := health(old.Registrar); code != http.StatusOK {
		t.Errorf("the one that waits is not healthy: %d", code)
	}
	if err := newer.stop(); err != nil {
		t.Error(err)
	}
	k.await(b.registered(), 3)
	if err := old.stop(); err != nil {
		t.Error(err)
	}
	k.await("gone", 3)
	if n := k.count("seen"); n != 3 {
		t.Errorf("they took the socket from each other: %q", k.all())
	}
}

func TestOldRegistrarLeavesTheSocketOfTheNewer(t *testing.T) {
	b := newBed(t)
	k := startKubelet(t, b.registry, v1{}, nil)
	old := b.start()
	k.await(b.registered(), 1)
	before, err := os.Lstat(b.socketPath())
	if err != nil {
		t.Fatal(err)
	}
	b.start()
	// A kubelet that starts may see one socket twice, so that a second registration
	// alone does not tell that the newer one is there.
	eventually(t, func() error {
		now, err := os.Lstat(b.socketPath())
		if err == nil && os.SameFile(before, now) {
			err = errors.New("the socket is still that of the old one")
		}
		return err
	})
	if err := old.stop(); err != nil {
		t.Error(err)
	}
	if err := exists(b.socketPath()); err != nil {
		t.Errorf("it has gone with the old one: %v; %q", err, k.all())
	}
}

func health(r *Registrar) int {
	answer := httptest.NewRecorder()
	r.Health().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	return answer.Code
}

func TestHealthIsThatOfTheSocket(t *testing.T) {
	b := newBed(t)
	b.config.WatchInterval = time.Hour
	r := b.start()
	eventually(t, func() error { return exists(b.socketPath()) })
	eventually(t, func() error {
		if code := health(r.Registrar); code != http.StatusOK {
			return fmt.Errorf("with a socket: %d", code)
		}
		return nil
	})
	if err := os.Rename(b.socketPath(), filepath.Join(b.registry, "away")); err != nil {
		t.Fatal(err)
	}
	if code := health(r.Registrar); code != http.StatusNotFound {
		t.Errorf("without a socket: %d", code)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if code := health(r.Registrar); code != http.StatusNotFound {
		t.Errorf("after the end: %d", code)
	}
}
