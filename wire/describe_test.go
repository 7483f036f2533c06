package wire

import (
	"slices"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	official := 0
	for _, d := range Describe() {
		if d.API.Group != GroupExtension {
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
		t.Errorf("%d methods outside our own group, want 139", official)
	}
}

func TestDescribeSortsFieldsByNumber(t *testing.T) {
	t.Parallel()
	for _, m := range extensionVersions()[0].methods {
		if m.name != "ListDisks" {
			continue
		}
		if got := fields(nil, m.job.newResponse); !slices.Equal(got, []string{"repeated DiskInfo disks = 1"}) {
			t.Errorf("fields of ListDisksResponse: %q", got)
		}
	}
}
