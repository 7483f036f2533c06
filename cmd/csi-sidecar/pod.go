package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// accountFolder has what the kubelet gives a pod to speak with the API server.
//
// Source: Kubernetes, Accessing the API from a Pod.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// identity tells this process from all others of the driver: it is the name of the
// pod. The host's name is that of the pod too, but for pods in the network of
// their node: two of them on one node would each think that they hold the lease.
func (e environment) identity() (string, error) {
	if name := cmp.Or(e.Getenv("POD_NAME"), podOfToken(e.accountFile("token"))); name != "" {
		return name, nil
	}
	name, err := e.Hostname()
	if err != nil {
		return "", fmt.Errorf("name of the host: %w", err)
	}
	return name, nil
}

// namespace is where leases are, unless they are to be in the one given.
func (e environment) namespace(given string) string {
	return cmp.Or(given, e.Getenv("POD_NAMESPACE"), e.Getenv("NAMESPACE"), strings.TrimSpace(e.accountFile("namespace")), "default")
}

// accountFile is the text of a file of the service account; empty outside a pod.
func (e environment) accountFile(name string) string {
	text, err := os.ReadFile(filepath.Join(cmp.Or(e.AccountFolder, accountFolder), name))
	if err != nil {
		return ""
	}
	return string(text)
}

// podOfToken is the name of the pod that a service account's token was made for.
// Nothing is believed of it but that it is the kubelet's file.
//
// Source: Kubernetes, Managing Service Accounts, bound tokens: claim kubernetes.io.
func podOfToken(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Kubernetes struct {
			Pod struct {
				Name string `json:"name"`
			} `json:"pod"`
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Kubernetes.Pod.Name
}
