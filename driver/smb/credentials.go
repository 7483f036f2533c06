package smb

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/csi-windows/csi-windows/csikit"
)

// Keys of a secret, and files of a folder of credentials.
const (
	secretUsername = "username"
	secretPassword = "password"
	secretDomain   = "domain"
)

const credentialBytesMax = 4096

// Credentials are those of a user of a server. The password is passed on byte for
// byte, and never written down.
type Credentials struct {
	Username string // may be `user`, `domain\user` or `user@domain.tld`
	Domain   string // of a username that has none
	Password string
}

// CredentialsFolder reads credentials from the files username, password and domain
// (which may be missing) of a folder, as a mounted Secret has them. Not a byte is cut.
func CredentialsFolder(folder string) func(context.Context) (Credentials, error) {
	return func(context.Context) (Credentials, error) {
		var credentials Credentials
		for name, value := range map[string]*string{
			secretUsername: &credentials.Username, secretPassword: &credentials.Password, secretDomain: &credentials.Domain,
		} {
			data, err := readSmallFile(filepath.Join(folder, name))
			if os.IsNotExist(err) && name == secretDomain {
				continue
			}
			if err != nil {
				return Credentials{}, fmt.Errorf("credentials: %w: %w", err, csikit.ErrUnavailable)
			}
			*value = string(data)
		}
		return credentials, nil
	}
}

func readSmallFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, credentialBytesMax+1))
	if err == nil && len(data) > credentialBytesMax {
		err = fmt.Errorf("%s has more than %d bytes", path, credentialBytesMax)
	}
	return data, err
}

// account is a user as NTLM has it.
type account struct{ user, domain, password string }

// account says how the user is named: case C040 tells what goes wrong otherwise.
func (c Credentials) account() (account, error) {
	domain, user, qualified := strings.Cut(c.Username, `\`)
	if !qualified {
		domain, user = c.Domain, c.Username
	}
	switch {
	case user == "":
		return account{}, fmt.Errorf("secret %q is missing: %w", secretUsername, csikit.ErrInvalid)
	case strings.ContainsFunc(user+domain, unicode.IsControl):
		return account{}, fmt.Errorf("secret %q or %q has a control character, as a line break at its end: %w", secretUsername, secretDomain, csikit.ErrInvalid)
	case strings.Contains(user, `\`):
		return account{}, fmt.Errorf("secret %q has more than one backslash: %w", secretUsername, csikit.ErrInvalid)
	case qualified && c.Domain != "" && !strings.EqualFold(c.Domain, domain),
		!qualified && isOfOtherRealm(user, c.Domain):
		return account{}, fmt.Errorf("secrets %q and %q name different domains: %w", secretUsername, secretDomain, csikit.ErrInvalid)
	}
	if strings.Contains(user, "@") && !qualified {
		domain = "" // the user says it
	}
	return account{user, domain, c.Password}, nil
}

// isOfOtherRealm reports whether a user of the form user@domain names another domain.
func isOfOtherRealm(user, domain string) bool {
	_, realm, found := strings.Cut(user, "@")
	return found && domain != "" && !strings.EqualFold(realm, domain)
}

// accountFor is who works at a location: the user of the secrets, or else of the
// configured source.
func (b *Backend) accountFor(ctx context.Context, at location, secrets map[string]string) (account, error) {
	if secrets[secretUsername] != "" || secrets[secretPassword] != "" {
		return Credentials{secrets[secretUsername], secrets[secretDomain], secrets[secretPassword]}.account()
	}
	source := b.sourceOf(at)
	if source == nil || source.credentials == nil {
		return account{}, fmt.Errorf("the call has no secrets, and none are configured for %s: %w", at, csikit.ErrUnauthenticated)
	}
	credentials, err := source.credentials(ctx)
	if err != nil {
		return account{}, err
	}
	return credentials.account()
}
