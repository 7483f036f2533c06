package smb

import (
	"context"
	"os"
	"testing"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/internal/leaktest"
)

// Of the process that a test ends while it copies.
const (
	envCloneAddress  = "CSI_TEST_CLONE_ADDRESS"
	envCloneUser     = "CSI_TEST_CLONE_USER"
	envClonePassword = "CSI_TEST_CLONE_PASSWORD"
	envCloneSource   = "CSI_TEST_CLONE_SOURCE"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(envCloneAddress); address != "" {
		os.Exit(cloneInProcess(address))
	}
	leaktest.Main(m)
}

// cloneInProcess copies one volume, as a controller would that is ended meanwhile.
func cloneInProcess(address string) int {
	b, err := New(Config{AnySource: true, Dial: map[string]string{"files.example": address}})
	if err != nil {
		return 2
	}
	_, err = b.CloneVolume(context.Background(), csikit.CreateVolumeRequest{
		Name:       "clone",
		Parameters: map[string]string{paramSource: os.Getenv(envCloneSource)},
		Secrets:    map[string]string{secretUsername: os.Getenv(envCloneUser), secretPassword: os.Getenv(envClonePassword)},
		Source:     &csikit.ContentSource{VolumeID: "smb:" + os.Getenv(envCloneSource) + "/source"},
	})
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		return 1
	}
	return 0
}
