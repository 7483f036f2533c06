package registrar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// ErrProbeBlind is found in the error of a [Probe] that cannot tell: no marker
// can be kept in the folder, in a container whose root is read-only for
// instance. Upstream's registrar counts that as good.
var ErrProbeBlind = errors.New("whether the driver is registered cannot be told")

// Probe reports whether the driver with the kubelet registration path given is
// registered: nil when a registrar with the same path, which may be another
// process, has heard so from the kubelet.
func Probe(kubeletRegistrationPath string) error {
	if kubeletRegistrationPath == "" {
		return errors.New("registration probe: the kubelet registration path must be given")
	}
	path := markerPath(kubeletRegistrationPath, runtime.GOOS)
	if path == "" {
		return fmt.Errorf("registration probe: %w: %q is a path of another system", ErrProbeBlind, kubeletRegistrationPath)
	}
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().IsRegular():
		return nil
	case err == nil:
		return fmt.Errorf("registration probe: %s is no file but %s", path, info.Mode())
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("registration probe: %w", err)
	}
	if err := tryFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("registration probe: %w: %w", ErrProbeBlind, err)
	}
	return fmt.Errorf("registration probe: the kubelet has not registered the driver yet: there is no %s", path)
}

// tryFolder reports why no file can be made in a folder.
func tryFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, "."+markerName+"-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// setMarker makes the marker, if there is a place for it.
func setMarker(path string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// clearMarker removes the marker. A file with content is not ours.
func clearMarker(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() > 0:
		return fmt.Errorf("%s (%s, %d bytes) is no marker of a registration; it is left alone", path, info.Mode(), info.Size())
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
