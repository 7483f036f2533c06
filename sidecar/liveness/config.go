package liveness

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/csi-windows/csi-windows/sidecar"
)

// healthPortDefault is the port that manifests expect.
const healthPortDefault = 9808

// Config says how a driver's health is asked for and told.
type Config struct {
	// CSIAddress is the address of the driver. It must be given.
	CSIAddress string
	// Dial opens one connection to the driver; nil dials CSIAddress.
	Dial func(ctx context.Context) (net.Conn, error)
	// HTTPEndpoint is the TCP address of /healthz and of the metrics. Empty is
	// HealthPort on every address of the machine, without metrics.
	HTTPEndpoint string
	// HealthPort is the port of /healthz where no HTTPEndpoint is given; 0 is
	// 9808. Only one of the two may be given, but that manifests name this port
	// beside another endpoint.
	HealthPort int
	// MetricsAddress is a TCP address for the metrics alone. Not together with
	// HTTPEndpoint.
	MetricsAddress string
	// MetricsPath is the path of the metrics; empty is /metrics.
	MetricsPath string
	// ProbeTimeout bounds one probe, the connection included; 0 is one second.
	ProbeTimeout time.Duration
}

// New makes a liveness probe. Nothing listens before Run.
func New(env *sidecar.Env, config Config) (*Liveness, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	dial, err := config.dialer()
	if err != nil {
		return nil, &sidecar.SettingError{Of: sidecar.LivenessProbe, Field: "CSIAddress", Cause: err}
	}
	return newLiveness(env.Log.With("component", sidecar.LivenessProbe), config, dial), nil
}

func (c Config) validate() error {
	wrong := func(field string, value any, limit string, others ...string) error {
		return &sidecar.SettingError{Of: sidecar.LivenessProbe, Field: field, Value: value, Must: limit, Others: others}
	}
	switch {
	case c.CSIAddress == "" && c.Dial == nil:
		return wrong("CSIAddress", nil, "given")
	case c.HealthPort != 0 && c.HealthPort != healthPortDefault && c.HTTPEndpoint != "":
		return wrong("HealthPort", c.HealthPort, "left out when %s is given", "HTTPEndpoint")
	case c.MetricsAddress != "" && c.HTTPEndpoint != "":
		return wrong("MetricsAddress", c.MetricsAddress, "left out when %s is given", "HTTPEndpoint")
	case c.HealthPort < 0 || c.HealthPort > 65535:
		return wrong("HealthPort", c.HealthPort, "1 to 65535")
	case c.MetricsPath != "" && !strings.HasPrefix(c.MetricsPath, "/"):
		return wrong("MetricsPath", c.MetricsPath, "a path that begins with a slash")
	case c.MetricsPath == healthPath:
		return wrong("MetricsPath", c.MetricsPath, "another path than that of the health")
	case c.ProbeTimeout < 0:
		return wrong("ProbeTimeout", c.ProbeTimeout, "above 0")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.ProbeTimeout == 0 {
		c.ProbeTimeout = time.Second
	}
	if c.MetricsPath == "" {
		c.MetricsPath = "/metrics"
	}
	if c.HealthPort == 0 {
		c.HealthPort = healthPortDefault
	}
	return c
}

// Address is where /healthz is.
func (c Config) Address() string {
	if c.HTTPEndpoint != "" {
		return c.HTTPEndpoint
	}
	return net.JoinHostPort("", strconv.Itoa(cmp.Or(c.HealthPort, healthPortDefault)))
}
