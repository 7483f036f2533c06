package provisioner

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSecretReference(t *testing.T) {
	t.Parallel()
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "team", Annotations: map[string]string{"example.com/s": "mine"}}}
	const stageName, stageSpace = "csi.storage.k8s.io/node-stage-secret-name", "csi.storage.k8s.io/node-stage-secret-namespace"
	for name, test := range map[string]struct {
		parameters []string
		want       string // namespace/name, or
		err        string
	}{
		"none":                     {nil, "", ""},
		"plain":                    {[]string{stageName, "s", stageSpace, "n"}, "n/s", ""},
		"tokens":                   {[]string{stageName, "${pv.name}-${pvc.name}-${pvc.namespace}", stageSpace, "${pvc.namespace}"}, "team/v-data-team", ""},
		"volume's name as space":   {[]string{stageName, "s", stageSpace, "${pv.name}"}, "v/s", ""},
		"annotation":               {[]string{stageName, "${pvc.annotations['example.com/s']}", stageSpace, "n"}, "n/mine", ""},
		"annotation missing":       {[]string{stageName, "${pvc.annotations['x']}", stageSpace, "n"}, "", "not known"},
		"claim's name as space":    {[]string{stageName, "s", stageSpace, "${pvc.name}"}, "", "not allowed there"},
		"annotation as space":      {[]string{stageName, "s", stageSpace, "${pvc.annotations['example.com/s']}"}, "", "not allowed there"},
		"name only":                {[]string{stageName, "s"}, "", "both name and namespace"},
		"namespace only":           {[]string{stageSpace, "n"}, "", "both name and namespace"},
		"empty":                    {[]string{stageName, "", stageSpace, "n"}, "", "empty parameter"},
		"not a name":               {[]string{stageName, "S_", stageSpace, "n"}, "", "not a secret's name"},
		"not a namespace":          {[]string{stageName, "s", stageSpace, "a.b"}, "", "not a namespace's name"},
		"old":                      {[]string{"csiNodeStageSecretName", "s", "csiNodeStageSecretNamespace", "n"}, "n/s", ""},
		"old and new":              {[]string{"csiNodeStageSecretName", "s", stageName, "s", stageSpace, "n"}, "", "twice"},
		"default":                  {[]string{"csi.storage.k8s.io/secret-name", "d", "csi.storage.k8s.io/secret-namespace", "n"}, "n/d", ""},
		"own goes before default":  {[]string{"csi.storage.k8s.io/secret-name", "d", "csi.storage.k8s.io/secret-namespace", "n", stageName, "s", stageSpace, "n"}, "n/s", ""},
		"of another use":           {[]string{"csi.storage.k8s.io/node-publish-secret-name", "s", "csi.storage.k8s.io/node-publish-secret-namespace", "n"}, "", ""},
		"dollar without its token": {[]string{stageName, "a$", stageSpace, "n"}, "", "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref, err := secretNodeStage.reference(pairsOf(test.parameters), "v", c)
			got := ""
			if ref != nil {
				got = ref.Namespace + "/" + ref.Name
			}
			if got != test.want || (err != nil) != (test.err != "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %q, %v; want %q, %q", got, err, test.want, test.err)
			}
		})
	}
}
