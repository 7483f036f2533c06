package csiclient_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-windows/csi-windows/sidecar/csiclient"
)

func TestSecretsAreText(t *testing.T) {
	t.Parallel()
	got, err := csiclient.Secrets(map[string][]byte{"user": []byte("jörg"), "key": nil})
	if diff := cmp.Diff(map[string]string{"user": "jörg", "key": ""}, got); err != nil || diff != "" {
		t.Errorf("%v, want - got +:\n%s", err, diff)
	}
	got, err = csiclient.Secrets(map[string][]byte{"user": []byte("jörg"), "keytab": []byte("hush\xff")})
	if err == nil || !strings.Contains(err.Error(), `"keytab"`) || strings.Contains(err.Error(), "hush") || got != nil {
		t.Errorf("%q, %v", got, err)
	}
}
