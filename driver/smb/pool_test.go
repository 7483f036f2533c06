package smb

import (
	"io"
	"net"
	"testing"
	"time"
)

// A server is given the time to end what it does; one that never ends is left.
func TestAnAbandonedConnectionWaitsForTheServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		takes  time.Duration
		atMost time.Duration
		ends   bool
	}{
		"ends":  {50 * time.Millisecond, time.Minute, true},
		"never": {time.Minute, 50 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			plain, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			server, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			asked, left := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(asked)
				defer server.Close()
				_, _ = io.Copy(io.Discard, server) // until the client sends no more
				select {
				case <-time.After(test.takes):
				case <-left:
				}
			}()
			conn := newServerConn(plain)
			read := make(chan struct{})
			go func() { // as the SMB client does
				defer close(read)
				_, _ = io.Copy(io.Discard, struct{ io.Reader }{conn})
			}()
			begin := time.Now()
			conn.end(test.atMost)
			took := time.Since(begin)
			if test.ends && took < test.takes || took >= time.Minute {
				t.Errorf("it took %s", took)
			}
			close(left)
			<-asked
			<-read
		})
	}
}
