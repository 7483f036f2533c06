package pipe

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
)

// A pipe that another process answers is in use, whoever made it.
func TestC058_PipeOfAnotherProcess(t *testing.T) {
	t.Parallel()
	err := ownPipe(uint32(os.Getpid())+1, nil)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "process ") {
		t.Errorf("got %v", err)
	}
	for name, err := range map[string]error{"ours": ownPipe(uint32(os.Getpid()), nil), "nobody's": ownPipe(0, errors.New("busy"))} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := serverPID("a\x00b"); err == nil {
		t.Error("a path with a zero byte has a server")
	}
}

func TestProcessImage(t *testing.T) {
	t.Parallel()
	want, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got := ProcessImage(uint32(os.Getpid())); !strings.EqualFold(got, want) {
		t.Errorf("this is %q, want %q", got, want)
	}
	if got := ProcessImage(0xfffffff0); got != "" {
		t.Errorf("a process that does not exist is %q", got)
	}
}

// Whoever cannot be known is not known.
func TestPeerOfOtherConnections(t *testing.T) {
	t.Parallel()
	memory, _ := net.Pipe()
	for name, conn := range map[string]net.Conn{"memory": memory, "no pipe": notAPipe{memory}} {
		if pid, known := PeerPID(conn); known {
			t.Errorf("%s: process %d", name, pid)
		}
	}
}

// notAPipe has a handle that is no pipe's.
type notAPipe struct{ net.Conn }

func (notAPipe) Fd() uintptr { return 0 }
