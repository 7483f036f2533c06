package samba_test

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/csi-windows/csi-windows/test/samba"
)

func TestServerStopsAndStarts(t *testing.T) {
	t.Parallel()
	s := samba.Start(t, samba.Options{Shares: []samba.Share{{Name: "data"}}})
	if info, err := os.Stat(s.Folder("data")); err != nil || !info.IsDir() {
		t.Fatalf("folder of the share: %v", err)
	}
	conn, err := net.DialTimeout("tcp", s.Address(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s.Stop()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("the connection outlives the server: %v", err)
	}
	if conn, err := net.DialTimeout("tcp", s.Address(), time.Second); err == nil {
		conn.Close()
		t.Error("the server answers after its end")
	}
	s.Run()
	conn, err = net.DialTimeout("tcp", s.Address(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
