package iscsi

import (
	"fmt"
	"slices"

	"github.com/csi-windows/csi-windows/csikit"
	"github.com/csi-windows/csi-windows/host"
)

// Keys of the node-stage secret, those of open-iscsi, which secrets for other iSCSI
// drivers of Kubernetes have as well.
const (
	secretUser     = "node.session.auth.username"
	secretPassword = "node.session.auth.password"
	// The target proves itself with the second pair. Windows has one secret of the
	// initiator for all targets and takes no user name for it.
	secretUserIn     = "node.session.auth.username_in"
	secretPasswordIn = "node.session.auth.password_in"
)

// Source: Microsoft iSCSI initiator, CHAP secrets of 12 to 16 bytes.
const (
	chapSecretBytesMin = 12
	chapSecretBytesMax = 16
)

// credentials are those of a secret. No text of an error holds any of them.
func credentials(secrets map[string]string) (host.ConnectOptions, string, error) {
	none := host.ConnectOptions{}
	user, password, passwordIn := secrets[secretUser], secrets[secretPassword], secrets[secretPasswordIn]
	if (user == "") != (password == "") {
		return none, "", invalidf("secrets: %s and %s go together", secretUser, secretPassword)
	}
	if passwordIn == "" && secrets[secretUserIn] != "" {
		return none, "", invalidf("secrets: %s needs %s", secretUserIn, secretPasswordIn)
	}
	if passwordIn != "" && password == "" {
		return none, "", invalidf("secrets: %s needs %s and %s", secretPasswordIn, secretUser, secretPassword)
	}
	for key, secret := range map[string]string{secretPassword: password, secretPasswordIn: passwordIn} {
		if n := len(secret); n > 0 && (n < chapSecretBytesMin || n > chapSecretBytesMax) {
			return none, "", invalidf("secrets: %s must have %d to %d bytes on Windows", key, chapSecretBytesMin, chapSecretBytesMax)
		}
	}
	if passwordIn != "" && passwordIn == password { // source: RFC 7143, 9.2.1
		return none, "", invalidf("secrets: %s and %s must differ, or each side could answer with what the other said", secretPassword, secretPasswordIn)
	}
	switch {
	case passwordIn != "":
		return host.ConnectOptions{AuthType: host.AuthMutualCHAP, ChapUsername: user, ChapSecret: password}, passwordIn, nil
	case password != "":
		return host.ConnectOptions{AuthType: host.AuthOneWayCHAP, ChapUsername: user, ChapSecret: password}, "", nil
	default:
		return none, "", nil
	}
}

// allPortals are the portals of the id, and then those of the context it lacks.
func allPortals(u Unit, fromContext string) ([]host.TargetPortal, error) {
	portals := slices.Clone(u.Portals)
	if fromContext != "" {
		more, err := ParsePortals(fromContext)
		if err != nil {
			return nil, invalidf("volume_context[%s]: %w", ContextPortals, err)
		}
		for _, portal := range more {
			if !slices.Contains(portals, portal) {
				portals = append(portals, portal)
			}
		}
	}
	switch {
	case len(portals) == 0:
		return nil, invalidf("volume_context[%s]: neither the volume id nor the context names a portal", ContextPortals)
	case len(portals) > portalsMax:
		return nil, invalidf("volume_context[%s]: more than %d portals with those of the volume id", ContextPortals, portalsMax)
	default:
		return portals, nil
	}
}

// isPersistent reads the key Persistent of a map, which is named as field in the error.
func isPersistent(field string, values map[string]string) (bool, error) {
	switch value := values[Persistent]; value {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, invalidf("%s[%s]: %.64q is neither true nor false", field, Persistent, value)
	}
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", csikit.ErrInvalid, fmt.Errorf(format, args...))
}
