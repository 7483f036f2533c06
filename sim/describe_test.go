package sim

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/csi-windows/csi-windows/winos/cim"
	"github.com/csi-windows/csi-windows/winos/win32"
)

// goType is the Go type in which values of a CIM type come. Source: package cim.
func goType(t cim.Type) reflect.Type {
	types := map[cim.Type]reflect.Type{
		cim.TypeString: reflect.TypeFor[string](), cim.TypeReference: reflect.TypeFor[string](), cim.TypeBoolean: reflect.TypeFor[bool](),
		cim.TypeChar16: reflect.TypeFor[uint16](), cim.TypeUint16: reflect.TypeFor[uint16](), cim.TypeUint32: reflect.TypeFor[uint32](),
		cim.TypeUint64: reflect.TypeFor[uint64](),
	}
	if t&cim.TypeArray != 0 {
		return reflect.SliceOf(types[t&^cim.TypeArray])
	}
	return types[t]
}

// Every value that a class hands out has the type that its description says.
func TestDescriptionsFitTheValues(t *testing.T) {
	t.Parallel()
	n := openNode(t, Config{ArrivalPolls: -1, ServicePolls: -1})
	ctx := context.Background()
	number := attach(t, n, DiskSpec{Bus: "SAS", Serial: "S"})
	path := query(t, n, "SELECT * FROM MSFT_Disk WHERE Number=%d", number)[0].Path
	for _, call := range []struct {
		method string
		in     cim.Values
	}{{"Initialize", nil}, {"CreatePartition", cim.Values{"UseMaximumSize": true, "AssignDriveLetter": true}}} {
		if r, err := n.Exec(ctx, cim.NamespaceStorage, path, call.method, call.in); err != nil || r.ReturnValue != 0 {
			t.Fatal(call.method, r, err)
		}
	}
	seen := 0
	for _, c := range n.schema.classes {
		d, err := n.DescribeClass(c.namespace, strings.ToUpper(c.name))
		if err != nil || d.Name != c.name {
			t.Fatal(c.name, d.Name, err)
		}
		if len(d.Properties) != len(c.order) || len(d.Methods) != len(c.methods) {
			t.Errorf("%s: %d properties and %d methods described", c.name, len(d.Properties), len(d.Methods))
		}
		n.mu.RLock()
		for _, row := range c.rows(n) {
			for name, value := range c.instance(n, row, nil).Props {
				p, _ := d.Property(name)
				if value == nil {
					continue
				}
				seen++
				if got, want := reflect.TypeOf(value), goType(p.Type); got != want {
					t.Errorf("%s.%s is a %v, its description says %v", c.name, name, got, want)
				}
			}
		}
		n.mu.RUnlock()
	}
	if seen < 100 {
		t.Errorf("only %d values compared", seen)
	}
}

func TestDescribeMethods(t *testing.T) {
	t.Parallel()
	n := instant(t)
	d, err := n.DescribeClass(`ROOT/Microsoft/Windows/Storage`, "msft_disk")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(d.Methods, func(m MethodDescription) bool { return m.Name == "CreatePartition" })
	if i < 0 {
		t.Fatal("CreatePartition is missing")
	}
	want := []TypedName{
		{"Size", cim.TypeUint64}, {"UseMaximumSize", cim.TypeBoolean}, {"Offset", cim.TypeUint64}, {"Alignment", cim.TypeUint32}, {"DriveLetter", cim.TypeChar16},
		{"AssignDriveLetter", cim.TypeBoolean}, {"MbrType", cim.TypeUint16}, {"GptType", cim.TypeString}, {"IsHidden", cim.TypeBoolean}, {"IsActive", cim.TypeBoolean},
	}
	if got := d.Methods[i].In; !slices.Equal(got, want) {
		t.Errorf("CreatePartition takes %v", got)
	}
	var failure *cim.Error
	if _, err := n.DescribeClass(cim.NamespaceStorage, "MSFT_None"); !errors.As(err, &failure) || failure.HRESULT != cim.InvalidClass {
		t.Errorf("unknown class: %v", err)
	}
	if _, err := n.DescribeClass(`root\none`, "MSFT_Disk"); !errors.As(err, &failure) || failure.HRESULT != cim.InvalidNamespace {
		t.Errorf("unknown namespace: %v", err)
	}
}

func TestDeviceNames(t *testing.T) {
	t.Parallel()
	n := instant(t)
	number := attach(t, n, DiskSpec{})
	names := n.DeviceNames()
	if number != 1 || len(names) != 3 || names[0] != "PhysicalDrive0" || names[1] != "PhysicalDrive1" ||
		!strings.HasPrefix(names[2], "Volume{") || !strings.HasSuffix(names[2], "}") {
		t.Errorf("devices %v", names)
	}
	if err := n.PowerCut(context.Background()); err != nil {
		t.Fatal(err)
	}
	if names := n.DeviceNames(); len(names) != 0 {
		t.Errorf("devices %v of a node that is off", names)
	}
}

func TestReportService(t *testing.T) {
	t.Parallel()
	n := openNode(t, Config{ServicePolls: 50})
	ctx := context.Background()
	state := func() uint32 {
		_, status, err := n.QueryService(ctx, "MSiSCSI")
		if err != nil {
			t.Fatal(err)
		}
		return status.State
	}
	for _, step := range []struct {
		running bool
		want    uint32
	}{{true, serviceRunning}, {true, serviceRunning}, {false, serviceStopped}} {
		if err := n.ReportService(ctx, "msiscsi", step.running); err != nil {
			t.Fatal(err)
		}
		if got := state(); got != step.want {
			t.Errorf("running=%v: state %d", step.running, got)
		}
	}
	var failure *win32.Error
	if err := n.ReportService(ctx, "none", true); !errors.As(err, &failure) || failure.Code != win32.ErrServiceNotExist {
		t.Errorf("unknown service: %v", err)
	}
}
