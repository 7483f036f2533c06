package agent

import (
	"errors"
	"strings"

	"github.com/csi-windows/csi-windows/host"
)

// withSecrets notes texts of the request that no error and no log may repeat.
func (c *call) withSecrets(secrets ...string) *call {
	c.secrets = secrets
	return c
}

// errWithheld stands for a cause that repeats a secret.
var errWithheld = errors.New("the cause is withheld: its text repeats a secret of the request")

// conceal takes the cause from an error that repeats a secret of the request.
// Whatever the operating system was asked can have failed: it has seen the
// secret once, and puts what it likes into its texts. The whole cause goes,
// since a gap in a known text would tell what is missing.
func (c *call) conceal(err error) error {
	failure, ok := any(err).(*host.Error)
	if !ok || failure.Cause == nil || !c.repeatsSecret(failure.Cause.Error()) {
		return err
	}
	return &host.Error{Op: failure.Op, Object: failure.Object, Kind: failure.Kind, Cause: errWithheld}
}

func (c *call) repeatsSecret(text string) bool {
	for _, secret := range c.secrets {
		if secret != "" && strings.Contains(text, secret) {
			return true
		}
	}
	return false
}
