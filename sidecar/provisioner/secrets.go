package provisioner

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

// parameterPrefix begins the parameters of a class that are meant for the
// sidecar and not for the driver.
const parameterPrefix = "csi.storage.k8s.io/"

// secretUse is one use of secrets, with the parameters that name the secret.
// The old parameters are still understood, and stay among those the driver
// gets, as they always did.
type secretUse struct{ name, old string }

var (
	secretDefault           = secretUse{"", ""}
	secretProvisioner       = secretUse{"provisioner-", "csiProvisioner"}
	secretControllerPublish = secretUse{"controller-publish-", "csiControllerPublish"}
	secretNodeStage         = secretUse{"node-stage-", "csiNodeStage"}
	secretNodePublish       = secretUse{"node-publish-", "csiNodePublish"}
	secretControllerExpand  = secretUse{"controller-expand-", ""}
	secretNodeExpand        = secretUse{"node-expand-", ""}
	secretControllerModify  = secretUse{"controller-modify-", ""}
)

// keys are the parameters for name and namespace, newest spelling first.
func (u secretUse) keys() (names, namespaces []string) {
	names = []string{parameterPrefix + u.name + "secret-name"}
	namespaces = []string{parameterPrefix + u.name + "secret-namespace"}
	if u.old != "" {
		names = append(names, u.old+"SecretName")
		namespaces = append(namespaces, u.old+"SecretNamespace")
	}
	return names, namespaces
}

func (u secretUse) String() string {
	if u.name == "" {
		return "default"
	}
	return strings.TrimSuffix(u.name, "-")
}

// templates are what the class says of a use's secret, "" for nothing.
func (u secretUse) templates(parameters map[string]string) (name, namespace string, err error) {
	pick := func(keys []string) (value string, found bool, err error) {
		for _, key := range keys {
			text, ok := parameters[key]
			switch {
			case ok && found:
				return "", false, fmt.Errorf("class names the %s secret twice, one of them as %s", u, key)
			case ok && text == "":
				return "", false, fmt.Errorf("class has an empty parameter %s", key)
			case ok:
				value, found = text, true
			}
		}
		return value, found, nil
	}
	names, namespaces := u.keys()
	name, hasName, err := pick(names)
	if err != nil {
		return "", "", err
	}
	namespace, hasNamespace, err := pick(namespaces)
	if err != nil {
		return "", "", err
	}
	if hasName != hasNamespace {
		return "", "", fmt.Errorf("class must give both name and namespace of the %s secret", u)
	}
	return name, namespace, nil
}

// reference is the secret that a class wants for a use, nil for none. Tokens
// of the namespace are not under the control of the claim's author, those of the
// name may be. Neither is looked up.
func (u secretUse) reference(parameters map[string]string, volumeName string, claim *v1.PersistentVolumeClaim) (*v1.SecretReference, error) {
	name, namespace, err := u.templates(parameters)
	if err == nil && name == "" {
		name, namespace, err = secretDefault.templates(parameters)
	}
	if err != nil || name == "" {
		return nil, err
	}
	tokens := map[string]string{"pv.name": volumeName, "pvc.namespace": claim.Namespace}
	ref := &v1.SecretReference{}
	if ref.Namespace, err = fill(namespace, tokens); err != nil {
		return nil, fmt.Errorf("namespace of the %s secret: %w", u, err)
	}
	if wrong := validation.IsDNS1123Label(ref.Namespace); len(wrong) > 0 {
		return nil, fmt.Errorf("namespace of the %s secret: %q, from %q, is not a namespace's name", u, ref.Namespace, namespace)
	}
	tokens["pvc.name"] = claim.Name
	for key, value := range claim.Annotations {
		tokens["pvc.annotations['"+key+"']"] = value
	}
	if ref.Name, err = fill(name, tokens); err != nil {
		return nil, fmt.Errorf("name of the %s secret: %w", u, err)
	}
	if wrong := validation.IsDNS1123Subdomain(ref.Name); len(wrong) > 0 {
		return nil, fmt.Errorf("name of the %s secret: %q, from %q, is not a secret's name", u, ref.Name, name)
	}
	return ref, nil
}

// fill puts values in the place of ${tokens}.
func fill(template string, tokens map[string]string) (string, error) {
	var unknown []string
	text := os.Expand(template, func(token string) string {
		value, ok := tokens[token]
		if !ok {
			unknown = append(unknown, token)
		}
		return value
	})
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return "", fmt.Errorf("%q has tokens that are not known or not allowed there: %q", template, unknown)
	}
	return text, nil
}

// credentials reads a secret. The error names the secret, never its content.
func (r *run) credentials(ctx context.Context, ref *v1.SecretReference) (map[string]string, error) {
	if ref == nil || ref.Name == "" {
		return nil, nil
	}
	secret, err := r.env.Kube.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	values, err := csiclient.Secrets(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return values, nil
}
