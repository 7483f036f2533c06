package registrar

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// testWait bounds waits that a good run ends in milliseconds.
const testWait = 20 * time.Second

// kubeletAPI is a version of the registration API as a client has it.
type kubeletAPI interface {
	info(ctx context.Context, conn *grpc.ClientConn) (pluginInfo, error)
	notify(ctx context.Context, conn *grpc.ClientConn, isRegistered bool, text string) error
}

type pluginInfo struct {
	kind, name, endpoint string
	versions             []string
}

// v1 uses the client of the package.
type v1 struct{}

func (v1) info(ctx context.Context, conn *grpc.ClientConn) (pluginInfo, error) {
	i, err := registration.NewRegistrationClient(conn).GetInfo(ctx, &registration.InfoRequest{})
	return pluginInfo{i.GetType(), i.GetName(), i.GetEndpoint(), i.GetSupportedVersions()}, err
}

func (v1) notify(ctx context.Context, conn *grpc.ClientConn, isRegistered bool, text string) error {
	status := &registration.RegistrationStatus{PluginRegistered: isRegistered, Error: text}
	_, err := registration.NewRegistrationClient(conn).NotifyRegistrationStatus(ctx, status)
	return err
}

// described uses the messages of another version, known by their description
// only: its package cannot be in the same program.
type described struct{ file protoreflect.FileDescriptor }

func readDescribed(t *testing.T) described {
	t.Helper()
	text, err := os.ReadFile("testdata/registration.txtpb")
	if err != nil {
		t.Fatal(err)
	}
	message := &descriptorpb.FileDescriptorProto{}
	if err := prototext.Unmarshal(text, message); err != nil {
		t.Fatal(err)
	}
	name := "other.proto"
	message.Name = &name
	file, err := protodesc.NewFile(message, &protoregistry.Files{})
	if err != nil {
		t.Fatal(err)
	}
	return described{file}
}

func (d described) message(name protoreflect.Name) *dynamicpb.Message {
	return dynamicpb.NewMessage(d.file.Messages().ByName(name))
}

func field(m *dynamicpb.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(name)
}

func (d described) info(ctx context.Context, conn *grpc.ClientConn) (pluginInfo, error) {
	answer := d.message("PluginInfo")
	err := conn.Invoke(ctx, "/pluginregistration.Registration/GetInfo", d.message("InfoRequest"), answer)
	text := func(name protoreflect.Name) string { return answer.Get(field(answer, name)).String() }
	i := pluginInfo{kind: text("type"), name: text("name"), endpoint: text("endpoint")}
	versions := answer.Get(field(answer, "supported_versions")).List()
	for n := range versions.Len() {
		i.versions = append(i.versions, versions.Get(n).String())
	}
	return i, err
}

func (d described) notify(ctx context.Context, conn *grpc.ClientConn, isRegistered bool, text string) error {
	status := d.message("RegistrationStatus")
	status.Set(field(status, "plugin_registered"), protoreflect.ValueOfBool(isRegistered))
	status.Set(field(status, "error"), protoreflect.ValueOfString(text))
	return conn.Invoke(ctx, "/pluginregistration.Registration/NotifyRegistrationStatus", status, d.message("RegistrationStatusResponse"))
}

// reaction is what a kubelet does with a socket it has seen.
type reaction int

const (
	registers reaction = iota
	ignores
	asksOnly // and hangs before it says how it ended
	refuses
)

// fakeKubelet watches a folder and calls what is made there, each socket once.
type fakeKubelet struct {
	t   *testing.T
	api kubeletAPI
	// react says what is done with the socket that is the nth, from 0.
	react func(n int) reaction

	mu    sync.Mutex
	noted []string // "seen", "registered NAME ENDPOINT", "gone"
	infos []pluginInfo
}

// fileEvent is what a kubelet is told of its folder.
type fileEvent struct {
	path   string
	isGone bool
}

func startKubelet(t *testing.T, folder string, api kubeletAPI, react func(n int) reaction) *fakeKubelet {
	t.Helper()
	k := &fakeKubelet{t: t, api: api, react: react}
	if k.react == nil {
		k.react = func(int) reaction { return registers }
	}
	events, stop := watchFolder(t, folder)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		n := 0
		for event := range events {
			if event.isGone {
				k.note("gone")
				continue
			}
			k.note("seen")
			k.call(ctx, event.path, k.react(n))
			n++
		}
	}()
	t.Cleanup(func() { cancel(); stop(); <-done })
	return k
}

// call does with a socket what the kubelet does.
func (k *fakeKubelet) call(ctx context.Context, path string, what reaction) {
	if what == ignores {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, testWait/2)
	defer cancel()
	// A socket is seen before it answers, and then tried again for a while.
	conn, err := grpc.NewClient("passthrough:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: testWait,
			Backoff: backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond}}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		k.note(err.Error())
		return
	}
	defer func() { _ = conn.Close() }()
	info, err := k.api.info(ctx, conn)
	if err != nil { // as of a socket that has just been replaced
		k.note("no info: " + err.Error())
		return
	}
	k.mu.Lock()
	k.infos = append(k.infos, info)
	k.mu.Unlock()
	switch what {
	case registers:
		k.note(fmt.Sprintf("registered %s %s", info.name, info.endpoint))
		err = k.api.notify(ctx, conn, true, "")
	case refuses:
		k.note("refused")
		err = k.api.notify(ctx, conn, false, "no handler for it")
	}
	if err != nil {
		k.note("not told: " + err.Error())
	}
}

func (k *fakeKubelet) note(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.noted = append(k.noted, text)
}

// all is what was noted so far.
func (k *fakeKubelet) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.noted)
}

// first is what the kubelet was told first.
func (k *fakeKubelet) first() pluginInfo {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.infos[0]
}

func (k *fakeKubelet) count(text string) (n int) {
	for _, one := range k.all() {
		if one == text {
			n++
		}
	}
	return n
}

// await waits until a text was noted n times.
func (k *fakeKubelet) await(text string, n int) {
	k.t.Helper()
	eventually(k.t, func() error {
		if k.count(text) < n {
			return fmt.Errorf("not %d times %q in %q", n, text, k.all())
		}
		return nil
	})
}

// eventually waits until check gives no error.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(testWait)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}
