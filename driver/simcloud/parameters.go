package simcloud

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/sim/cloud"
)

// Parameters of a storage class and, the last two, of a volume attributes class.
const (
	ParameterBus  = "bus"  // one of cloud.Buses, in any case
	ParameterZone = "zone" // where the disk is made
	ParameterTier = "tier" // standard or premium
	ParameterIOPS = "iops" // a number, see cloud.IOPSMin
)

// metadataPrefix is that of what a sidecar adds with --extra-create-metadata: the
// names of the objects, which nothing here depends on.
const metadataPrefix = "csi.storage.k8s.io/"

// parameters are what a storage class says.
type parameters struct {
	bus, zone  string
	properties cloud.Properties
}

// readParameters reads the parameters with the keys that are allowed. A mistake
// names the parameter.
func readParameters(given map[string]string, allowed ...string) (parameters, error) {
	var p parameters
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value := given[key]
		if strings.HasPrefix(key, metadataPrefix) {
			continue
		}
		if !slices.Contains(allowed, key) {
			return p, fmt.Errorf("parameter %q: unknown, %s are known: %w", key, strings.Join(allowed, ", "), csikit.ErrInvalid)
		}
		if err := p.set(key, value); err != nil {
			return p, fmt.Errorf("parameter %q: %w", key, err)
		}
	}
	return p, nil
}

func (p *parameters) set(key, value string) error {
	if value == "" {
		return fmt.Errorf("empty: %w", csikit.ErrInvalid)
	}
	switch key {
	case ParameterBus:
		if !slices.ContainsFunc(cloud.Buses(), func(bus string) bool { return strings.EqualFold(bus, value) }) {
			return fmt.Errorf("%q, one of %s is allowed: %w", value, strings.Join(cloud.Buses(), ", "), csikit.ErrInvalid)
		}
		p.bus = value
	case ParameterZone:
		p.zone = value
	case ParameterTier:
		if value != cloud.TierStandard && value != cloud.TierPremium {
			return fmt.Errorf("%q, %s or %s is allowed: %w", value, cloud.TierStandard, cloud.TierPremium, csikit.ErrInvalid)
		}
		p.properties.Tier = value
	case ParameterIOPS:
		number, err := strconv.ParseInt(value, 10, 64)
		if err != nil || number < cloud.IOPSMin || number > cloud.IOPSMaxPremium {
			return fmt.Errorf("%q, a number from %d to %d is allowed: %w", value, cloud.IOPSMin, cloud.IOPSMaxPremium, csikit.ErrInvalid)
		}
		p.properties.IOPS = number
	}
	return nil
}

func classParameters(given map[string]string) (parameters, error) {
	return readParameters(given, ParameterBus, ParameterZone, ParameterTier, ParameterIOPS)
}

func mutableParameters(given map[string]string) (cloud.Properties, error) {
	p, err := readParameters(given, ParameterTier, ParameterIOPS)
	return p.properties, err
}

// CheckParameters implements csikit.ParameterChecker.
func (b *Backend) CheckParameters(given map[string]string) error {
	_, err := classParameters(given)
	return err
}

// CheckMutableParameters implements csikit.Modifier.
func (b *Backend) CheckMutableParameters(given map[string]string) error {
	_, err := mutableParameters(given)
	return err
}

// noParameters refuses parameters where there are none, as of a snapshot class.
func noParameters(given map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !strings.HasPrefix(key, metadataPrefix) {
			return fmt.Errorf("parameter %q: unknown: %w", key, csikit.ErrInvalid)
		}
	}
	return nil
}
