package registrar

import (
	"fmt"
	"path/filepath"
	"strings"
)

const (
	// socketPathBytesMax is the size of a path in a socket's address without its
	// terminator, on Linux and on Windows.
	//
	// Source: unix(7), sun_path; afunix.h, UNIX_PATH_MAX.
	socketPathBytesMax = 107
	// driverNameCharsMax is the length of a driver's name.
	//
	// Source: CSI, GetPluginInfoResponse.name.
	driverNameCharsMax = 63
	// markerName is the file beside the driver's socket that says that the
	// driver is registered, for exec probes.
	markerName = "registration"
)

// checkDriverName refuses a name that CSI does not allow. Beyond that, the
// name becomes part of a file's name here and of a label in the cluster.
func checkDriverName(name string) error {
	isAlphanumeric := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	switch {
	case name == "":
		return fmt.Errorf("the driver's name is empty")
	case len(name) > driverNameCharsMax:
		return fmt.Errorf("driver name %.80q: %d characters, the limit is %d", name, len(name), driverNameCharsMax)
	case !isAlphanumeric(name[0]) || !isAlphanumeric(name[len(name)-1]):
		return fmt.Errorf("driver name %q: must begin and end with a letter or digit", name)
	}
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && c != '-' && c != '.' {
			return fmt.Errorf("driver name %q: %q may not be in it, only letters, digits, dots and dashes", name, c)
		}
	}
	return nil
}

// socketPath is the path of the registration socket of a driver.
func (c Config) socketPath(driver string) (string, error) {
	if err := checkDriverName(driver); err != nil {
		return "", err
	}
	path := filepath.Join(c.PluginRegistrationPath, driver+"-reg.sock")
	if len(path) > socketPathBytesMax {
		return "", fmt.Errorf("plugin registration path %q: the registration socket %q in it has %d bytes, the limit of a socket's path is %d",
			c.PluginRegistrationPath, path, len(path), socketPathBytesMax)
	}
	return path, nil
}

// isRooted reports whether a path begins at the top of a file system, as
// Windows or as others write it: the kubelet's system need not be this one.
func isRooted(path string) bool {
	if strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\`) {
		return true
	}
	return len(path) > 2 && path[1] == ':' && isSlash(path[2]) && (path[0]|0x20 >= 'a' && path[0]|0x20 <= 'z')
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// markerPath is the path of the marker of a driver whose socket has the path
// given. It is empty where the path is one of another system.
func markerPath(kubeletRegistrationPath, system string) string {
	separators := `/`
	if system == "windows" {
		separators = `/\`
	} else if !strings.HasPrefix(kubeletRegistrationPath, "/") {
		return ""
	}
	return kubeletRegistrationPath[:strings.LastIndexAny(kubeletRegistrationPath, separators)+1] + markerName
}
