package smb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	smb2 "github.com/cloudsoda/go-smb2"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/test/samba"
)

func (b *bed) wantError(err, kind error, mentions ...string) {
	b.t.Helper()
	if !errors.Is(err, kind) {
		b.t.Errorf("error: %v; want %v", err, kind)
		return
	}
	for _, text := range mentions {
		if !strings.Contains(err.Error(), text) {
			b.t.Errorf("%q does not mention %q", err, text)
		}
	}
	if strings.Contains(err.Error(), b.server.Password) || strings.Contains(err.Error(), *b.password.Load()) {
		b.t.Errorf("%q tells a password", err)
	}
}

func (b *bed) tryCreate(name string) error {
	_, err := b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{Name: name})
	return err
}

// A wrong password is forgotten at once; a server that is away costs no credentials.
func TestC042_TheNextCallUsesTheNewPassword(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	old, fresh := b.server.Password, "another one"
	wrong := "wrong-password"
	b.password.Store(&wrong)
	b.wantError(b.tryCreate("v"), csikit.ErrUnauthenticated, "domain")
	b.password.Store(&old)
	b.create("v", nil)

	b.server.SetPassword(fresh)
	b.password.Store(&fresh)
	b.create("w", nil)

	b.server.Stop()
	b.wantError(b.tryCreate("x"), csikit.ErrUnavailable)
	b.server.Run()
	b.create("x", nil)
	b.password.Store(&wrong)
	b.wantError(b.tryCreate("y"), csikit.ErrUnauthenticated)
}

// C040: what is said of a wrong user tells of the domain.
func TestC040_AWrongUserIsToldOfTheDomain(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	for _, secrets := range []map[string]string{
		{secretUsername: "nobody-of-this-name", secretPassword: "p"},
		{secretUsername: b.server.User, secretPassword: "p"},
	} {
		_, err := b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{Name: "v", Secrets: secrets})
		b.wantError(err, csikit.ErrUnauthenticated, "domain")
	}
	for _, secrets := range []map[string]string{
		{secretUsername: b.server.User, secretPassword: b.server.Password, secretDomain: samba.Domain},
		{secretUsername: samba.Domain + `\` + b.server.User, secretPassword: b.server.Password},
	} {
		if _, err := b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{Name: "v", Secrets: secrets}); err != nil {
			t.Error(err)
		}
	}
}

func TestC039_PasswordsAreUsedByteForByte(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	// pdbedit takes no backslash at the end.
	for i, password := range []string{"$x", "'", `"`, `\x`, "`", ",", ";", "%", ":", " both ends ", "pässwörd€", strings.Repeat("x", 127)} {
		b.server.SetPassword(password)
		_, err := b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{
			Name: fmt.Sprint("v", i), Secrets: map[string]string{secretUsername: b.server.User, secretPassword: password}})
		if err != nil {
			t.Errorf("password %q: %v", password, err)
		}
		_, err = b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{
			Name: fmt.Sprint("v", i), Secrets: map[string]string{secretUsername: b.server.User, secretPassword: password + " "}})
		if !errors.Is(err, csikit.ErrUnauthenticated) {
			t.Errorf("password %q and a blank: %v", password, err)
		}
	}
}

func TestC044_EncryptionIsRequiredOrNot(t *testing.T) {
	tests := []struct {
		server   string
		share    bool
		required bool
		works    bool
	}{
		{"off", false, false, true}, {"off", false, true, false},
		{"desired", false, false, true}, {"", false, true, false},
		{"required", false, false, true}, {"required", false, true, true},
		{"", true, false, true}, {"", true, true, true},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			b := newBed(t, samba.Options{Encryption: test.server, Shares: []samba.Share{{Name: "data", Encrypt: test.share}}},
				func(c *Config) { c.RequireEncryption = test.required })
			err := b.tryCreate("v")
			if test.works && err != nil {
				t.Error(err)
			}
			if !test.works {
				b.wantError(err, csikit.ErrPrecondition, "-smb-require-encryption")
				b.wantMissing(b.disk("v"))
				b.wantMissing(b.disk(privateFolder))
			}
		})
	}
}

func TestWrongPlaces(t *testing.T) {
	b := newBed(t, samba.Options{}, func(c *Config) { c.AnySource = true })
	b.write(b.disk("file"), "no folder")
	secrets := map[string]string{secretUsername: b.server.User, secretPassword: b.server.Password}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	deaf := listener.Addr().String()
	defer listener.Close() // takes connections, and says nothing
	for source, kind := range map[string]error{
		"//files.example/none":           csikit.ErrNotFound,
		"//files.example/data/none":      csikit.ErrNotFound,
		"//files.example/data/bäse/file": csikit.ErrPrecondition,
		"//127.0.0.1:1/data":             csikit.ErrUnavailable,
		"//" + deaf + "/data":            context.DeadlineExceeded,
	} {
		timeout := testTimeout
		if errors.Is(kind, context.DeadlineExceeded) {
			timeout = time.Second
		}
		ctx, cancel := context.WithTimeout(b.ctx, timeout)
		_, err := b.CreateVolume(ctx, csikit.CreateVolumeRequest{Name: "v", Parameters: map[string]string{paramSource: source}, Secrets: secrets})
		b.wantError(err, kind)
		// A delete that finds no share knows nothing of the volume.
		if err := b.DeleteVolume(ctx, csikit.VolumeRequest{VolumeID: "smb:" + source + "/v", Secrets: secrets}); err == nil {
			t.Errorf("%s: a volume counts as deleted", source)
		}
		cancel()
	}
	_, err = b.CreateVolume(b.ctx, csikit.CreateVolumeRequest{Name: "v", Parameters: map[string]string{paramSource: "//elsewhere.example/data"}})
	b.wantError(err, csikit.ErrUnauthenticated)
	if err := b.Probe(b.ctx); err != nil {
		t.Errorf("probe: %v", err)
	}
	b.server.Stop()
	b.wantError(b.Probe(b.ctx), csikit.ErrUnavailable)
}

// A server that ends in the middle fails what is under way, and nothing after it.
func TestServerRestartsInTheMiddle(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	source := b.create("source", nil)
	const files = 600
	for i := range files {
		b.write(fmt.Sprintf("%s/%d", b.folder(source.ID), i), "data")
	}
	request := csikit.CreateVolumeRequest{Name: "clone", Source: &csikit.ContentSource{VolumeID: source.ID}}
	var group sync.WaitGroup
	var failed error
	group.Go(func() { _, failed = b.CloneVolume(b.ctx, request) })
	time.Sleep(150 * time.Millisecond)
	b.server.Stop()
	group.Wait()
	if failed == nil {
		t.Log("the copy was faster than the end of the server")
	} else if !errors.Is(failed, csikit.ErrUnavailable) {
		t.Errorf("copy: %v", failed)
	}
	b.server.Run()
	clone, err := b.CloneVolume(b.ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		b.wantFile(fmt.Sprintf("%s/%d", b.folder(clone.ID), i), "data")
	}
}

// A call that is given up takes no other with it.
func TestCancelledCallsLeaveOthersAlone(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			ctx, cancel := context.WithCancel(b.ctx)
			defer cancel()
			if i%2 == 1 {
				time.AfterFunc(time.Duration(i)*2*time.Millisecond, cancel)
			}
			_, err := b.CreateVolume(ctx, csikit.CreateVolumeRequest{Name: fmt.Sprint("v", i)})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("v%d: %v", i, err)
			}
		})
	}
	group.Wait()
	for i := range 32 {
		b.create(fmt.Sprint("v", i), nil)
	}
}

// A session in which the server cannot do what it should serves nobody else: with a
// server that has a process for each connection, only the next one can help.
func TestASessionThatIsOfNoUseIsNotKept(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	key := sessionKey{b.server.Address(), account{user: b.server.User, password: b.server.Password}}
	for _, test := range []struct {
		err  error
		kept bool
	}{
		{nil, true}, {csikit.ErrNotFound, true},
		{&smb2.ResponseError{Code: statusNoMemory}, false}, {&smb2.ResponseError{Code: statusInsufficient}, false},
	} {
		err := b.pool.do(b.ctx, key, func(*smb2.Session) error { return test.err })
		if (err == nil) != (test.err == nil) {
			t.Errorf("%v became %v", test.err, err)
		}
		b.pool.mutex.Lock()
		kept := len(b.pool.idle[key])
		b.pool.mutex.Unlock()
		if (kept == 1) != test.kept {
			t.Errorf("after %v, %d sessions are kept", test.err, kept)
		}
	}
}

// relay passes what is sent to a server and back, until it is told to swallow what the
// client sends.
type relay struct {
	net.Listener
	isDeaf    atomic.Bool
	swallowed chan struct{} // closed at the first that is
	once      sync.Once
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener, swallowed: make(chan struct{})}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			group.Go(func() { defer client.Close(); _, _ = io.Copy(client, server) })
			group.Go(func() { defer server.Close(); _, _ = io.Copy(r.to(server), client) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); group.Wait() })
	return r
}

func (r *relay) to(server io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		if r.isDeaf.Load() {
			r.once.Do(func() { close(r.swallowed) })
			return len(p), nil
		}
		return server.Write(p)
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// While one session too many is ended with a server that has gone silent, calls to other
// servers go on.
func TestTheEndOfASessionHoldsUpNobody(t *testing.T) {
	b := newBed(t, samba.Options{}, nil)
	r := newRelay(t, b.server.Address())
	t.Cleanup(func() { _ = b.Close() }) // before the relay ends
	key := sessionKey{r.Addr().String(), account{user: b.server.User, password: b.server.Password}}
	open, mayEnd, last := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var others, group sync.WaitGroup
	for i := range idleMax + 1 {
		wait, all := mayEnd, &others
		if i == idleMax {
			wait, all = last, &group
		}
		all.Go(func() {
			err := b.pool.do(b.ctx, key, func(*smb2.Session) error { open <- struct{}{}; <-wait; return nil })
			if err != nil {
				t.Error(err)
				open <- struct{}{}
			}
		})
	}
	for range idleMax + 1 {
		<-open
	}
	close(mayEnd)
	others.Wait()
	r.isDeaf.Store(true)
	close(last)
	select {
	case <-r.swallowed:
		if b.pool.mutex.TryLock() {
			b.pool.mutex.Unlock()
		} else {
			t.Error("the pool waits for the end of a session")
		}
	case <-b.ctx.Done():
		t.Error("no session was ended")
	}
	group.Wait()
}
