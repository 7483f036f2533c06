package registrar

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/sidecar"
)

// Config says where and how a driver is registered.
type Config struct {
	// PluginRegistrationPath is the folder of the registration socket: the
	// kubelet's plugins_registry as this process sees it. Empty is
	// /registration, on Windows C:\registration.
	PluginRegistrationPath string
	// KubeletRegistrationPath is the path of the driver's socket as the kubelet
	// sees it. The kubelet is told it letter by letter. It must be given.
	KubeletRegistrationPath string
	// RegistrationTimeout is how long a new registration socket waits for the
	// kubelet's call before it is made anew; 0 is one minute.
	RegistrationTimeout time.Duration
	// ConfirmTimeout is how long the kubelet, once it has called, may take to
	// say how the registration ended; 0 is five minutes. It asks the driver and
	// writes objects in that time.
	ConfirmTimeout time.Duration
	// Tries is how many sockets in a row may stay without a registration before
	// Run gives up; 0 is 5. The kubelet itself waits up to two minutes between
	// its own tries.
	Tries int
	// WatchInterval is the time between two looks at the socket's file; 0 is
	// five seconds.
	WatchInterval time.Duration
	// Timeout bounds a call to the driver, at first: one that takes longer gets
	// more time the next time. 0 is one second.
	Timeout time.Duration
}

// New makes a registrar. Nothing is touched before Run.
func New(env *sidecar.Env, config Config) (*Registrar, error) {
	config = config.withDefaults(runtime.GOOS)
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &Registrar{env: env, config: config, log: env.Log.With("component", sidecar.Registrar)}, nil
}

func (c Config) withDefaults(system string) Config {
	if c.PluginRegistrationPath == "" {
		c.PluginRegistrationPath = "/registration"
		if system == "windows" {
			c.PluginRegistrationPath = `C:\registration`
		}
	}
	c.RegistrationTimeout = cmp.Or(c.RegistrationTimeout, time.Minute)
	c.ConfirmTimeout = cmp.Or(c.ConfirmTimeout, 5*time.Minute)
	c.Tries = cmp.Or(c.Tries, 5)
	c.WatchInterval = cmp.Or(c.WatchInterval, 5*time.Second)
	c.Timeout = cmp.Or(c.Timeout, time.Second)
	return c
}

func (c Config) validate() error {
	wrong := func(field string, value any, limit string) error {
		return &sidecar.SettingError{Of: sidecar.Registrar, Field: field, Value: value, Must: limit}
	}
	const field = "KubeletRegistrationPath"
	path := c.KubeletRegistrationPath
	switch {
	case path == "":
		return wrong(field, nil, "given: it is the path of the driver's socket as the kubelet sees it")
	case strings.ContainsFunc(path, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return wrong(field, path, "without control characters")
	case !isRooted(path):
		return wrong(field, path, "an absolute path, since the kubelet has another working folder, and a plain one, without unix:")
	case len(path) > socketPathBytesMax:
		return wrong(field, path, fmt.Sprintf("at most %d bytes long, which is the limit of a socket's path, and has %d bytes", socketPathBytesMax, len(path)))
	}
	for _, duration := range []struct {
		field string
		value time.Duration
	}{
		{"RegistrationTimeout", c.RegistrationTimeout}, {"ConfirmTimeout", c.ConfirmTimeout},
		{"WatchInterval", c.WatchInterval}, {"Timeout", c.Timeout},
	} {
		if duration.value <= 0 {
			return wrong(duration.field, duration.value, "above 0")
		}
	}
	if c.Tries < 0 {
		return wrong("Tries", c.Tries, "above 0")
	}
	return nil
}
