package driver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-windows/csi-windows/sim"
	"github.com/csi-windows/csi-windows/test/wine/bed"
)

// A stop by the console while a call hangs in the node: the call has the grace time,
// then the driver ends in order, and the next one can use the same pipe.
func TestStopWhileACallHangs(t *testing.T) {
	const grace = 2 * time.Second
	l := open(t)
	bed.Start(t, "-host=windows").WaitReady(t)
	endpoint := pipeEndpoint()
	flags := []string{"-mode=node", "-driver=iscsi", "-host=proxy", "-grace-period=" + grace.String()}
	d := l.drive(endpoint, flags...)
	l.OK(l.Control.AddFault(t.Context(), sim.Fault{Call: "*", Count: -1, Hang: true}))
	answered := make(chan error, 1)
	go func() {
		_, err := d.node.NodeStageVolume(t.Context(), d.stageRequest(volume{id: "iqn.2026-01.example:hung/0@192.0.2.1:3260"}))
		answered <- err
	}()
	<-time.After(grace / 4) // for the call to be in the node; if it is not, it is refused
	started := time.Now()
	interrupt(t, endpoint)
	select {
	case <-d.program.Ended:
	case <-time.After(callTime):
		t.Fatalf("it has not ended after %s", callTime)
	}
	if took := time.Since(started); took > grace+30*time.Second {
		t.Errorf("it took %s", took)
	}
	if code := d.program.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	d.says("csi-driver has stopped")
	if err := <-answered; status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled {
		t.Errorf("the call in flight: %v", err)
	}
	l.Reset()
	ok(l.drive(endpoint, flags...), d.identity.GetPluginInfo, &csi.GetPluginInfoRequest{})
}

// interrupt sends the program with a word in its command line the console event that
// Wine makes of SIGINT. Its number outside Wine is found there too.
func interrupt(t *testing.T, word string) {
	t.Helper()
	lines, err := filepath.Glob(`Z:\proc\[0-9]*\cmdline`)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		text, err := os.ReadFile(line)
		if err != nil || !bytes.Contains(text, []byte(word)) {
			continue // it has ended, or is another
		}
		// Windows programs start those of the machine through start.exe.
		kill := exec.Command("start.exe", "/wait", "/unix", "/bin/kill", "-INT", filepath.Base(filepath.Dir(line)))
		if output, err := kill.CombinedOutput(); err != nil {
			t.Fatalf("kill: %v: %s", err, output)
		}
		return
	}
	t.Fatalf("no program has %q in its command line", word)
}
