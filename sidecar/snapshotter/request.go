package snapshotter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// secretRef names a secret.
type secretRef struct{ namespace, name string }

// reservedParameters are what may follow the reserved prefix in a class.
var reservedParameters = []string{
	"snapshotter-secret-name", "snapshotter-secret-namespace",
	"snapshotter-list-secret-name", "snapshotter-list-secret-namespace",
	"group-snapshotter-secret-name", "group-snapshotter-secret-namespace",
	"group-snapshotter-get-secret-name", "group-snapshotter-get-secret-namespace",
}

// requestOf gives what the driver gets to take a content's snapshot, and the
// secret of it.
func (m *machine) requestOf(ctx context.Context, c *content) (request, *secretRef, error) {
	if !c.bound() {
		return request{}, nil, fmt.Errorf("content %s is not bound to a %s", c.meta.Name, c.words.noun)
	}
	if c.className == "" {
		return request{}, nil, fmt.Errorf("content %s names no class", c.meta.Name)
	}
	class, _, found, err := m.kind.class(c.className)
	if err == nil && !found {
		err = errors.New("there is no such class")
	}
	if err != nil {
		return request{}, nil, fmt.Errorf("class %s: %w", c.className, err)
	}
	parameters, err := m.parametersOf(c, class)
	if err != nil {
		return request{}, nil, err
	}
	secret := m.annotatedSecret(c)
	if secret == nil {
		if secret, err = c.classSecret(class, c.words.classSecret); err != nil {
			return request{}, nil, err
		}
	}
	secrets, err := m.secretsOf(ctx, secret)
	if err != nil {
		return request{}, nil, err
	}
	return request{name: m.nameOf(c), parameters: parameters, secrets: secrets}, secret, nil
}

// nameOf is the snapshot's name at the back-end: the same for every call for
// one snapshot object, so that a repeated one finds what was made before.
func (m *machine) nameOf(c *content) string {
	uid := string(c.ref.UID)
	if m.uidLength > 0 {
		uid = strings.ReplaceAll(uid, "-", "")
		uid = uid[:min(len(uid), m.uidLength)]
	}
	return m.namePrefix + "-" + uid
}

// parametersOf are the parameters of the class that are meant for the driver.
func (m *machine) parametersOf(c *content, class map[string]string) (map[string]string, error) {
	parameters := map[string]string{}
	for key, value := range class {
		rest, reserved := strings.CutPrefix(key, reservedPrefix)
		switch {
		case !reserved:
			parameters[key] = value
		case !slices.Contains(reservedParameters, rest):
			return nil, fmt.Errorf("class %s: parameter %q is unknown, and keys with %q are reserved", c.className, key, reservedPrefix)
		}
	}
	if m.config.ExtraCreateMetadata {
		prefix := reservedPrefix + c.words.metadata
		parameters[prefix+"/name"] = c.ref.Name
		parameters[prefix+"/namespace"] = c.ref.Namespace
		parameters[prefix+"content/name"] = c.meta.Name
	}
	return parameters, nil
}

// annotatedSecret is the secret a content names, nil if it names none.
func (m *machine) annotatedSecret(c *content) *secretRef {
	if !c.has(c.words.secretName) || !c.has(c.words.secretNamespace) {
		return nil
	}
	return &secretRef{name: c.meta.Annotations[c.words.secretName], namespace: c.meta.Annotations[c.words.secretNamespace]}
}

// classSecret is the secret a class names with parameters that begin with key,
// nil if it names none.
func (c *content) classSecret(class map[string]string, key string) (*secretRef, error) {
	key = reservedPrefix + key
	name, named := class[key+"-name"]
	namespace, spaced := class[key+"-namespace"]
	if !named && !spaced {
		return nil, nil
	}
	if name == "" || namespace == "" {
		return nil, fmt.Errorf("class %s: %s-name and %s-namespace must both be set, or none", c.className, key, key)
	}
	template := c.words.template
	tokens := map[string]string{
		template + "content.name": c.meta.Name,
		template + ".namespace":   c.ref.Namespace,
	}
	var err error
	ref := &secretRef{}
	if ref.namespace, err = filled(namespace, tokens, validation.IsDNS1123Label); err != nil {
		return nil, fmt.Errorf("class %s: %s-namespace: %w", c.className, key, err)
	}
	// The name of a snapshot is its user's choice, and must not lead into
	// other namespaces: it may be part of the secret's name only.
	tokens = maps.Clone(tokens)
	tokens[template+".name"] = c.ref.Name
	if ref.name, err = filled(name, tokens, validation.IsDNS1123Subdomain); err != nil {
		return nil, fmt.Errorf("class %s: %s-name: %w", c.className, key, err)
	}
	return ref, nil
}

// filled replaces the tokens of a template, and checks what comes out.
func filled(template string, tokens map[string]string, check func(string) []string) (string, error) {
	var unknown []string
	text := os.Expand(template, func(token string) string {
		value, ok := tokens[token]
		if !ok {
			unknown = append(unknown, token)
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("%q has unknown tokens: %q", template, unknown)
	}
	if problems := check(text); len(problems) > 0 {
		return "", fmt.Errorf("%q gives %q: %s", template, text, strings.Join(problems, "; "))
	}
	return text, nil
}

// lookSecrets are the secrets for a look at a snapshot. A class may be gone
// after the snapshot was taken, and then there are none.
func (m *machine) lookSecrets(ctx context.Context, c *content) (map[string]string, error) {
	if c.isMember() {
		return m.secretsOf(ctx, m.annotatedSecret(c))
	}
	if c.className == "" {
		return nil, nil
	}
	class, _, found, err := m.kind.class(c.className)
	if err != nil || !found {
		return nil, err
	}
	ref, err := c.classSecret(class, c.words.classLookSecret)
	if err != nil {
		return nil, err
	}
	return m.secretsOf(ctx, ref)
}

// removalSecrets are the secrets for a removal: those that were noted when the
// snapshot was taken. Nobody notes any for one that was there before, unless
// its content's author did, so that its class is asked, and it is removed
// without where the class or its secret is gone.
func (m *machine) removalSecrets(ctx context.Context, c *content) (map[string]string, error) {
	ref := m.annotatedSecret(c)
	if ref != nil || c.given == "" || c.className == "" {
		return m.secretsOf(ctx, ref)
	}
	class, _, found, err := m.kind.class(c.className)
	if err != nil || !found {
		return nil, err
	}
	if ref, err = c.classSecret(class, c.words.classSecret); err != nil {
		return nil, err
	}
	secrets, err := m.secretsOf(ctx, ref)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		m.log.WarnContext(ctx, "The secret of the class cannot be read, the removal goes without", "content", c.meta.Name, "error", err)
		return nil, nil
	}
	return secrets, err
}

// secretsOf reads a secret, if one is named.
func (m *machine) secretsOf(ctx context.Context, ref *secretRef) (map[string]string, error) {
	if ref == nil {
		return nil, nil
	}
	if ref.name == "" || ref.namespace == "" {
		return nil, errors.New("the annotations for the secret are empty")
	}
	ctx, cancel := context.WithTimeout(ctx, m.config.Timeout)
	defer cancel()
	secret, err := m.kube.CoreV1().Secrets(ref.namespace).Get(ctx, ref.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read secret %s/%s: %w", ref.namespace, ref.name, err)
	}
	values, err := csiclient.Secrets(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", ref.namespace, ref.name, err)
	}
	return values, nil
}
