package sim

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
)

func TestSessionErrors(t *testing.T) {
	t.Parallel()
	n := instant(t)
	ctx := context.Background()
	queries := func(namespace, text string) func() error {
		return func() error { _, err := n.Query(ctx, namespace, text); return err }
	}
	executes := func(namespace, path, method string, in cim.Values) func() error {
		return func() error { _, err := n.Exec(ctx, namespace, path, method, in); return err }
	}
	storage := cim.NamespaceStorage
	gone := diskPath(t, n, 0)
	gone = strings.Replace(gone, "disk&", "none&", 1)
	for _, c := range []struct {
		name string
		do   func() error
		want uint32
	}{
		{"unknown class", queries(storage, "SELECT * FROM MSFT_None"), cim.InvalidClass},
		{"class of another namespace", queries(cim.NamespaceSMB, "SELECT * FROM MSFT_Disk"), cim.InvalidClass},
		{"unknown namespace", queries(`root\none`, "SELECT * FROM MSFT_Disk"), cim.InvalidNamespace},
		{"namespace with slashes", queries(`ROOT/Microsoft/Windows/Storage`, "SELECT Number FROM msft_disk"), 0},
		{"no query", queries(storage, "DROP TABLE"), cim.InvalidQuery},
		{"unknown column", queries(storage, "SELECT Nope FROM MSFT_Disk"), cim.InvalidQuery},
		{"unknown property in WHERE", queries(storage, "SELECT * FROM MSFT_Disk WHERE Nope = 1"), cim.InvalidQuery},
		{"unknown association", queries(storage, "ASSOCIATORS OF {"+diskPath(t, n, 0)+"} WHERE AssocClass = MSFT_None"), cim.InvalidClass},
		{"associators of nothing", queries(storage, "ASSOCIATORS OF {"+gone+"}"), cim.NotFound},
		{"unknown class in Exec", executes(storage, "MSFT_None", "Get", nil), cim.InvalidClass},
		{"unknown method", executes(storage, diskPath(t, n, 0), "Explode", nil), cim.InvalidMethod},
		{"method of no object", executes(storage, gone, "Refresh", nil), cim.NotFound},
		{"instance method on the class", executes(storage, "MSFT_Disk", "Refresh", nil), cim.InvalidMethodParam},
		{"bad path", executes(storage, `MSFT_Disk.ObjectId="x`, "Refresh", nil), cim.InvalidObjectPath},
		{"unknown parameter", executes(storage, diskPath(t, n, 0), "Initialize", cim.Values{"Style": uint16(2)}), cim.InvalidMethodParam},
		{"type of a parameter", executes(storage, diskPath(t, n, 0), "Initialize", cim.Values{"PartitionStyle": uint32(2)}), cim.TypeMismatch},
		{"unset parameter", executes(storage, diskPath(t, n, 0), "initialize", cim.Values{"partitionstyle": nil}), 0},
	} {
		got := uint32(0)
		err := c.do()
		var e *cim.Error
		if errors.As(err, &e) {
			got = e.HRESULT
		} else if err != nil {
			t.Errorf("%s: %v is no *cim.Error", c.name, err)
		}
		if got != c.want {
			t.Errorf("%s: 0x%08X, want 0x%08X", c.name, got, c.want)
		}
	}
}

func TestPathNeedsTheKey(t *testing.T) {
	t.Parallel()
	n := instant(t)
	if r := one(t, n, "SELECT Number FROM MSFT_Disk"); r.Path != "" || len(r.Props) != 1 {
		t.Errorf("without key: %q %v", r.Path, r.Props)
	}
	r := one(t, n, "SELECT number, objectid FROM MSFT_Disk")
	if r.Path == "" || r.Props["ObjectId"] == nil || r.Props["Number"] != uint32(0) {
		t.Errorf("with key: %q %v", r.Path, r.Props)
	}
	id := r.Props["ObjectId"].(string)
	if !strings.HasPrefix(id, `{1}\\SIMNODE\root/Microsoft/Windows/Storage/Providers_v2\WSP_Disk.ObjectId="{`) || !strings.HasSuffix(id, `"`) {
		t.Errorf("object id %s", id)
	}
	upper := strings.Replace(r.Path, `root/Microsoft`, `ROOT/Microsoft`, 1)
	if got := exec(t, n, upper, "Refresh", nil); got.ReturnValue != 0 {
		t.Errorf("object ids compare without case: %d", got.ReturnValue)
	}
	full := `\\SIMNODE\root\Microsoft\Windows\Storage:` + r.Path
	if got := exec(t, n, full, "Refresh", nil); got.ReturnValue != 0 {
		t.Errorf("full path: %d", got.ReturnValue)
	}
}

func TestAssociationClassesHoldPaths(t *testing.T) {
	t.Parallel()
	n := instant(t)
	formatted(t, n, attach(t, n, DiskSpec{Bus: "NVMe"}))
	links := query(t, n, "SELECT * FROM MSFT_PartitionToVolume")
	if len(links) != 2 {
		t.Fatalf("%d links, want 2", len(links))
	}
	for _, link := range links {
		partition := link.Props["Partition"].(string)
		if rows := query(t, n, "ASSOCIATORS OF {%s} WHERE ResultClass = MSFT_Volume", partition); len(rows) != 1 {
			t.Errorf("%s: %d volumes", partition, len(rows))
		}
		if rows := query(t, n, "ASSOCIATORS OF {%s} WHERE ResultRole = Disk", partition); len(rows) != 1 || rows[0].Class != "MSFT_Disk" {
			t.Errorf("%s: %v", partition, rows)
		}
	}
}

func TestEveryPropertyOfEveryClass(t *testing.T) {
	t.Parallel()
	n := iscsiNode(t, nil)
	formatted(t, n, attach(t, n, DiskSpec{Bus: "NVMe"}))
	discover(t, n)
	connect(t, n, 0)
	for _, c := range n.schema.classes {
		rows, err := n.Query(context.Background(), c.namespace, "SELECT * FROM "+c.name)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if len(rows) == 0 && c.name != "MSFT_SmbGlobalMapping" {
			t.Errorf("%s: no rows", c.name)
		}
		for _, row := range rows {
			for name, value := range row.Props {
				switch value.(type) {
				case nil, string, bool, uint16, uint32, uint64, []uint16, []string:
				default:
					t.Errorf("%s.%s is a %T", c.name, name, value)
				}
			}
		}
	}
}

func TestBIOS(t *testing.T) {
	t.Parallel()
	n := openNode(t, Config{BIOSSerial: "SN-1", HostName: "NODE7"})
	if r := one(t, n, "SELECT SerialNumber FROM Win32_BIOS"); r.Props["SerialNumber"] != "SN-1" {
		t.Fatal(r.Props)
	}
	if r := one(t, n, "SELECT ObjectId FROM MSFT_Disk"); !strings.Contains(r.Path, "NODE7") {
		t.Fatal(r.Path)
	}
}

func TestStorageSetting(t *testing.T) {
	t.Parallel()
	n := instant(t)
	setting := exec(t, n, "MSFT_StorageSetting", "Get", nil).Out["StorageSetting"].(cim.Instance)
	if setting.Props["NewDiskPolicy"] != uint16(policyOfflineShared) {
		t.Fatal(setting.Props)
	}
	code(t, n, setting.Path, "Set", cim.Values{"NewDiskPolicy": uint16(9)}, codeInvalidParameter)
}
