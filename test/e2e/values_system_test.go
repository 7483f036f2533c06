package e2e_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/e2e/stack"
	"github.com/csi-windows/csi-windows/test/upstream"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wirepb"
)

// C055: every state and start type of Windows has its name on the wire, and a number
// nobody knows is UNKNOWN (or BOOT, which is 0), without a panic.
func TestC055_GetServiceMapsEveryNumber(t *testing.T) {
	t.Parallel()
	s := stack.New(t, func(cfg *stack.Config) { cfg.Node.ServicePolls = 1000 }) // a pending state stays
	states := map[uint32]string{
		1: `"STOPPED"`, 2: `"START_PENDING"`, 3: `"STOP_PENDING"`, 4: `"RUNNING"`, 5: `"CONTINUE_PENDING"`, 6: `"PAUSE_PENDING"`, 7: `"PAUSED"`,
		8: "", 99: "", 4294967295: "",
	}
	starts := map[uint32]string{0: "", 1: `"SYSTEM"`, 2: `"AUTOMATIC"`, 3: `"MANUAL"`, 4: `"DISABLED"`, 5: "", 4294967295: ""}
	for state, stateName := range states {
		for start, startName := range starts {
			s.OK(s.Node.SetService(context.Background(), sim.Service{Name: "svc", DisplayName: "D", StartType: start, State: state}))
			want := `{"displayName":"D"`
			if startName != "" {
				want += `,"startType":` + startName
			}
			if stateName != "" {
				want += `,"status":` + stateName
			}
			if answer := s.Must("system", "v1alpha1", "GetService", `{"name":"svc"}`); answer != want+"}" {
				t.Errorf("state %d, start type %d: %s, want %s", state, start, answer, want+"}")
			}
		}
	}
}

// C055: start and stop, with what stands in the way.
func TestC055_ServicesOverTheWire(t *testing.T) {
	t.Parallel()
	s := stack.New(t, func(cfg *stack.Config) { cfg.Node.ServicePolls = 3 })
	ctx := context.Background()
	s.OK(s.Node.SetService(ctx, sim.Service{Name: "off", StartType: 4, State: serviceStopped}))
	s.OK(s.Node.SetService(ctx, sim.Service{Name: "base", StartType: 3, State: serviceRunning}))
	s.OK(s.Node.SetService(ctx, sim.Service{Name: "needs", StartType: 3, State: serviceRunning, DependsOn: []string{"base"}}))
	s.OK(s.Node.SetService(ctx, sim.Service{Name: "broken", StartType: 3, State: serviceStopped, FailStart: 1053}))
	for _, call := range []struct {
		method, request string
		want            codes.Code
	}{
		{"StartService", `{"name":"base"}`, codes.OK},
		{"StartService", `{"name":"MSISCSI"}`, codes.OK},
		{"StartService", `{"name":"off"}`, codes.FailedPrecondition},
		{"StartService", `{"name":"none"}`, codes.NotFound},
		{"StartService", `{"name":""}`, codes.InvalidArgument},
		{"StartService", `{"name":"a\u0000b"}`, codes.InvalidArgument},
		{"StopService", `{"name":"base"}`, codes.FailedPrecondition},
		{"StopService", `{"name":"off"}`, codes.OK},
		{"StopService", `{"name":"none","force":true}`, codes.NotFound},
		{"StopService", `{"name":"base","force":true}`, codes.OK},
		{"StopService", `{"name":"base","force":true}`, codes.OK},
		{"GetService", `{"name":"none"}`, codes.NotFound},
		{"GetService", `{"name":"..\\base"}`, codes.InvalidArgument},
	} {
		if _, err := s.Call("system", "v1alpha1", call.method, call.request); status.Code(err) != call.want {
			t.Errorf("%s %s: %v, want %v", call.method, call.request, err, call.want)
		}
	}
	if _, err := s.Call("system", "v1alpha1", "StartService", `{"name":"broken"}`); err == nil || status.Code(err) == codes.Unknown {
		t.Errorf("a service that does not start: %v", err)
	}
	mustBeInState(s, "MSiSCSI", serviceRunning)
	mustBeInState(s, "base", serviceStopped)
	mustBeInState(s, "needs", serviceStopped)
}

// A pipe serves the methods of its own API, and says Unimplemented to those of every
// other, also to those of later versions: whoever is given one pipe reaches one API.
func TestOtherAPIsAreUnimplemented(t *testing.T) {
	t.Parallel()
	s, methods := stack.New(t), everyMethod()
	for _, at := range wire.APIs() {
		if at.Group == wire.GroupExtension {
			continue
		}
		own := serviceName(at.Group, at.Version)
		paths := []string{"/" + own + "/Nonsense"}
		for _, c := range upstream.Cases() {
			if service := serviceName(c.Group, c.Version); service != own {
				paths = append(paths, "/"+service+"/"+c.Method)
			}
			if !methods[at.String()+"/"+c.Method] {
				paths = append(paths, "/"+own+"/"+c.Method)
			}
		}
		conn := s.Conn(at.Group, at.Version)
		for _, path := range paths {
			err := conn.Invoke(t.Context(), path, &wirepb.RescanRequest{}, &wirepb.RescanResponse{})
			if status.Code(err) != codes.Unimplemented {
				t.Errorf("the pipe of %s serves %s: %v", at, path, err)
			}
		}
	}
}
