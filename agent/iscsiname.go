package agent

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/csi-windows/csi-windows/host"
)

// Limits of secrets and users in bytes. Source: Microsoft iSCSI initiator, CHAP
// secrets of 12 to 16 bytes.
const (
	chapSecretBytesMin = 12
	chapSecretBytesMax = 16
	chapUserBytesMax   = 223
	portMax            = 65535
)

// parsePortal checks a portal and fills in the standard port.
func parsePortal(portal host.TargetPortal) (host.TargetPortal, error) {
	if portal.Address == "" {
		return portal, invalid("targetPortal", "address is missing")
	}
	if portal.Port > portMax {
		return portal, invalid("targetPortal.port", "%d is above %d", portal.Port, portMax)
	}
	if portal.Port == 0 {
		portal.Port = host.DefaultISCSIPort
	}
	if address, err := netip.ParseAddr(portal.Address); err == nil {
		if !isHostName(address.Zone()) {
			return portal, invalid("targetPortal.address", "%q has no zone of an address", host.PrintableText(portal.Address))
		}
		portal.Address = address.String()
		return portal, nil
	}
	if len(portal.Address) > serverBytesMax {
		return portal, invalid("targetPortal.address", "longer than %d bytes", serverBytesMax)
	}
	if !isHostName(portal.Address) {
		return portal, invalid("targetPortal.address", "%q is neither an address nor a host name", host.PrintableText(portal.Address))
	}
	return portal, nil
}

// isHostName reports whether the text has no other characters than host names.
func isHostName(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '-' && c != '.' && c != '_' && !isLetter(c) && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// portalText is the portal as "address:port", with brackets around an IPv6 address.
func portalText(portal host.TargetPortal) string {
	port := strconv.FormatUint(uint64(portal.Port), 10)
	if strings.Contains(portal.Address, ":") {
		return host.PrintableText("[" + portal.Address + "]:" + port)
	}
	return host.PrintableText(portal.Address + ":" + port)
}

// samePortal reports whether two portals are one. Addresses compare as
// addresses, names without regard to case.
func samePortal(a, b host.TargetPortal) bool {
	if a.Port != b.Port {
		return false
	}
	first, errA := netip.ParseAddr(a.Address)
	second, errB := netip.ParseAddr(b.Address)
	if errA == nil && errB == nil {
		return first == second
	}
	return strings.EqualFold(a.Address, b.Address)
}

// parseIQN checks the name of a target and returns it in lower case, as RFC 3722
// prepares such names for comparison.
func parseIQN(text string) (string, error) {
	name, err := host.ISCSIName(text)
	if err != nil {
		return "", invalid("iqn", "%s", host.PrintableText(err.Error()))
	}
	return name, nil
}

// checkChap checks credentials. No text of an error holds any of them.
func checkChap(options host.ConnectOptions) error {
	switch options.AuthType {
	case host.AuthNone:
		if options.ChapSecret != "" {
			return invalid("authType", "NONE does not go with a CHAP secret")
		}
		return nil
	case host.AuthOneWayCHAP, host.AuthMutualCHAP:
	default:
		return invalid("authType", "%d is none of 0 (none), 1 (one-way CHAP) and 2 (mutual CHAP)", options.AuthType)
	}
	if len(options.ChapUsername) > chapUserBytesMax || hasControl(options.ChapUsername) {
		return invalid("chapUsername", "longer than %d bytes, or with control characters", chapUserBytesMax)
	}
	return checkSecret("chapSecret", options.ChapSecret)
}

// checkSecret checks the length of a CHAP secret.
func checkSecret(field, secret string) error {
	if n := len(secret); n < chapSecretBytesMin || n > chapSecretBytesMax {
		return invalid(field, "the secret must have %d to %d bytes", chapSecretBytesMin, chapSecretBytesMax)
	}
	if strings.IndexByte(secret, 0) >= 0 {
		return invalid(field, "the secret holds a NUL byte")
	}
	return nil
}

// hasControl reports whether the text has control characters or is no text.
func hasControl(text string) bool {
	return !utf8.ValidString(text) || strings.IndexFunc(text, unicode.IsControl) >= 0
}
