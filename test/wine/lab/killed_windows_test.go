package lab

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/test/wine/bed"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// openerVariable makes this test binary a program that opens a folder of the node.
const openerVariable = "CSI_LAB_OPENER"

func TestMain(m *testing.M) {
	if os.Getenv(openerVariable) == "" {
		os.Exit(m.Run())
	}
	open := win32.Open{Access: win32.FileListDir, Share: win32.ShareRead | win32.ShareWrite | win32.ShareDelete, Directory: true}
	if _, err := win32.System().CreateFile(context.Background(), `\\?\C:\`, open); err != nil {
		panic(err)
	}
	println("open")
	time.Sleep(time.Minute)
}

// What a killed program had open is closed at the node, as Windows closes it.
func TestKilledProgram(t *testing.T) {
	n := bed.Connect(t)
	n.Fresh()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	count := func() int {
		handles, err := n.Control.HandleCount(ctx)
		n.OK(err)
		return handles
	}
	self, err := os.Executable()
	n.OK(err)
	program := exec.CommandContext(ctx, self)
	program.Env = append(os.Environ(), openerVariable+"=1")
	said, err := program.StderrPipe()
	n.OK(err)
	n.OK(program.Start())
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || line != "open\n" {
		t.Errorf("the program said %q, %v", line, err)
	}
	if got := count(); got != 1 {
		t.Errorf("%d handles while it runs", got)
	}
	n.OK(program.Process.Kill())
	_ = program.Wait() // it was killed
	for count() > 0 {
		if ctx.Err() != nil {
			t.Fatal("what the killed program had open stays open")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
