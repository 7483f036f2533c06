package client_test

import (
	"testing"

	"github.com/csi-windows/csi-windows/client"
	"github.com/csi-windows/csi-windows/wire"
	"github.com/csi-windows/csi-windows/wire/wiretest"
)

// C061, C062: a client that comes while the server opens its pipes sees old ones
// beside newer ones that are not there yet. What it takes then it keeps, so it
// must not be an old one.
func TestC061_StartingServerIsNotTakenForAnOldOne(t *testing.T) {
	t.Parallel()
	place := wiretest.Place(t)
	for range 40 {
		chosen := make(chan string)
		go func() {
			for {
				c, err := client.New(client.Options{Place: place, Groups: []string{wire.GroupVolume}})
				if err != nil {
					chosen <- err.Error()
					return
				}
				err = c.Connect(t.Context())
				version := c.Chosen()[wire.GroupVolume]
				_ = c.Close()
				if err == nil || t.Context().Err() != nil {
					chosen <- version
					return
				}
			}
		}()
		stop := start(t, richHost(), place, wire.GroupVolume)
		if version := <-chosen; version != "v2alpha1" {
			t.Errorf("chose %q of a server that was starting", version)
		}
		stop()
	}
}
