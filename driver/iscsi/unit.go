package iscsi

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// Limits of a unit.
const (
	idBytesMax      = 128   // of a volume id; source: CSI, Size Limits
	lunMax          = 16383 // source: SAM-5, 4.7.7.3, flat space addressing
	portalsMax      = 32
	portMax         = 65535
	addressBytesMax = 255 // source: RFC 1035, 2.3.4
)

// Unit is one logical unit and the ways to it.
type Unit struct {
	IQN     string // in lower case
	LUN     uint32
	Portals []host.TargetPortal // ports are set; may be empty when the context has them
}

// ParseUnit reads a volume id, `iqn…/lun@portal,portal`. A portal is `address` or
// `address:port`, with brackets around an IPv6 address. The portals, with the sign
// before them, may be missing. The error says what is wrong with the id.
func ParseUnit(id string) (Unit, error) {
	var u Unit
	if len(id) > idBytesMax {
		return u, fmt.Errorf("volume id: longer than %d bytes", idBytesMax)
	}
	target, portals, hasPortals := strings.Cut(id, "@")
	name, lun, found := strings.Cut(target, "/")
	if !found {
		return u, errors.New("volume id: is not of the form IQN/LUN@PORTAL,PORTAL")
	}
	var err error
	if u.IQN, err = host.ISCSIName(name); err != nil {
		return Unit{}, fmt.Errorf("volume id: target: %w", err)
	}
	if u.LUN, err = parseNumber(lun, lunMax); err != nil {
		return Unit{}, fmt.Errorf("volume id: LUN: %w", err)
	}
	if hasPortals {
		if u.Portals, err = ParsePortals(portals); err != nil {
			return Unit{}, fmt.Errorf("volume id: %w", err)
		}
	}
	return u, nil
}

// String is the volume id of the unit, without the default port.
func (u Unit) String() string {
	text := u.IQN + "/" + strconv.FormatUint(uint64(u.LUN), 10)
	if len(u.Portals) > 0 {
		text += "@" + FormatPortals(u.Portals)
	}
	return text
}

// key is the same for all ids of one unit, whatever ways to it they name.
func (u Unit) key() string { return Unit{IQN: u.IQN, LUN: u.LUN}.String() }

// ParsePortals reads a list of portals with commas between them.
func ParsePortals(text string) ([]host.TargetPortal, error) {
	var portals []host.TargetPortal
	seen := map[host.TargetPortal]bool{}
	for part := range strings.SplitSeq(text, ",") {
		portal, err := parsePortal(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if seen[portal] {
			return nil, fmt.Errorf("portal %s: is named twice", FormatPortals([]host.TargetPortal{portal}))
		}
		if seen[portal] = true; len(seen) > portalsMax {
			return nil, fmt.Errorf("portals: more than %d", portalsMax)
		}
		portals = append(portals, portal)
	}
	return portals, nil
}

// FormatPortals is the opposite of ParsePortals.
func FormatPortals(portals []host.TargetPortal) string {
	texts := make([]string, 0, len(portals))
	for _, portal := range portals {
		text := portal.Address
		if strings.Contains(text, ":") {
			text = "[" + text + "]"
		}
		if portal.Port != host.DefaultISCSIPort && portal.Port != 0 {
			text += ":" + strconv.FormatUint(uint64(portal.Port), 10)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ",")
}

func parsePortal(text string) (host.TargetPortal, error) {
	portal := host.TargetPortal{Port: host.DefaultISCSIPort}
	address, rest := text, ""
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return portal, fmt.Errorf("portal %.64q: lacks a bracket", text)
		}
		address, rest = text[1:end], text[end+1:]
		parsed, err := netip.ParseAddr(address)
		if err != nil || !parsed.Is6() || !isHostName(parsed.Zone(), true) {
			return portal, fmt.Errorf("portal %.64q: no IPv6 address is in the brackets", text)
		}
		portal.Address = parsed.String()
	} else {
		if at := strings.IndexByte(text, ':'); at >= 0 {
			address, rest = text[:at], text[at:]
		}
		if !isHostName(address, false) || strings.Count(rest, ":") > 1 {
			return portal, fmt.Errorf("portal %.64q: is neither a host name, an IPv4 address nor an IPv6 address in brackets", text)
		}
		portal.Address = strings.ToLower(address)
	}
	if rest == "" {
		return portal, nil
	}
	port, err := parseNumber(strings.TrimPrefix(rest, ":"), portMax)
	if err != nil || rest[0] != ':' || port == 0 {
		return portal, fmt.Errorf("portal %.64q: the port must be a number from 1 to %d", text, portMax)
	}
	portal.Port = port
	return portal, nil
}

// isHostName reports whether the text has no other characters than host names.
func isHostName(text string, mayBeEmpty bool) bool {
	isOther := func(r rune) bool {
		return r != '-' && r != '.' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	return (text != "" || mayBeEmpty) && len(text) <= addressBytesMax && strings.IndexFunc(text, isOther) < 0
}

// parseNumber reads a decimal number as it is written, without sign or leading zeros.
func parseNumber(text string, most uint32) (uint32, error) {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil || number > uint64(most) || strconv.FormatUint(number, 10) != text {
		return 0, fmt.Errorf("%.16q is no number from 0 to %d", text, most)
	}
	return uint32(number), nil
}
