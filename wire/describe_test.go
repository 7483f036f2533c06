package wire

import (
	"slices"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	official := 0
	for _, d := range Describe() {
		if d.API.Group != GroupExtension && d.API.Group != GroupNode {
			official++
		}
		if d.Path == "/v1beta2.Disk/SetAttachState" {
			if d.Op != "SetDiskState" || d.Name() != "SetAttachState" || !d.OldRequest || d.OldResponse {
				t.Errorf("SetAttachState is described as %+v", d)
			}
			if want := []string{"string text = 1", "bool flag = 2"}; !slices.Equal(d.Request, want) {
				t.Errorf("its request is %q, want %q", d.Request, want)
			}
		}
		if d.Op == "GetVolume" && !slices.Equal(d.Response, []string{"VolumeInfo volume = 1"}) {
			t.Errorf("GetVolume answers %q", d.Response)
		}
	}
	if official != 139 {
		t.Errorf("%d methods outside our own groups, want 139", official)
	}
}

// What lies within a request is described too, and secrets are marked.
func TestDescribeMessages(t *testing.T) {
	t.Parallel()
	i := slices.IndexFunc(Describe(), func(d Description) bool { return d.Path == "/v1alpha1.Node/Stage" })
	got := map[string][]string{}
	for _, m := range Describe()[i].Messages {
		got[m.Name] = m.Fields
	}
	if len(got) != 7 || !slices.Equal(got["TargetPortal"], []string{"string target_address = 1", "uint32 target_port = 2"}) ||
		!slices.Contains(got["SMBSource"], "string password = 4 (secret)") {
		t.Errorf("messages in a stage request: %q", got)
	}
}

func TestDescribeSortsFieldsByNumber(t *testing.T) {
	t.Parallel()
	for _, m := range extensionVersions()[0].methods {
		if m.name != "ListDisks" {
			continue
		}
		if got := fields(descriptorOf(m.job.newResponse)); !slices.Equal(got, []string{"repeated DiskInfo disks = 1"}) {
			t.Errorf("fields of ListDisksResponse: %q", got)
		}
	}
}
