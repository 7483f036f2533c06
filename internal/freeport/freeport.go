// Package freeport gives tests addresses for programs that take no listener.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports below those that systems give to whoever asks for any: no other program
// has one a moment later.
const (
	portMin = 10_000
	portMax = 29_999
)

// Address is one of loopback that nothing listens on.
func Address(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprint("127.0.0.1:", portMin+rand.IntN(portMax-portMin+1))
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close() // it took no connections
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}
