package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
)

// Two pods in the network of one node have the same host name, and only one of
// them may hold a lease.
func TestTheIdentityIsThePods(t *testing.T) {
	t.Parallel()
	encode := base64.RawURLEncoding.EncodeToString
	bound := "h." + encode([]byte(`{"iss":"x","kubernetes.io":{"namespace":"csi","node":{"name":"n1"},"pod":{"name":"driver-7d4-x2","uid":"1"}}}`)) + ".s"
	for name, c := range map[string]struct {
		token string
		env   []string
		want  string
	}{
		"a pod":                       {token: bound, want: "driver-7d4-x2"},
		"a pod that is told its name": {token: bound, env: []string{"POD_NAME", "told"}, want: "told"},
		"no pod":                      {want: "host"},
		"a token of no pod":           {token: "h." + encode([]byte(`{"iss":"x"}`)) + ".s", want: "host"},
		"no token":                    {token: "h.{}.s", want: "host"},
		"another token":               {token: "opaque", want: "host"},
		"a claim of another kind":     {token: "h." + encode([]byte(`{"kubernetes.io":"x"}`)) + ".s", want: "host"},
	} {
		env := surroundings(c.env...)
		if c.token != "" {
			env.AccountFolder = t.TempDir()
			if err := os.WriteFile(filepath.Join(env.AccountFolder, "token"), []byte(c.token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := env.identity(); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestTheNamespaceOfTheLeases(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "namespace"), []byte("pods\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		given, folder, want string
		env                 []string
	}{
		{"given", folder, "given", []string{"NAMESPACE", "old"}},
		{"", folder, "new", []string{"NAMESPACE", "old", "POD_NAMESPACE", "new"}},
		{"", folder, "old", []string{"NAMESPACE", "old"}},
		{"", folder, "pods", nil},
		{"", "testdata/none", "default", nil},
	} {
		env := surroundings(c.env...)
		env.AccountFolder = c.folder
		if got := env.namespace(c.given); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
