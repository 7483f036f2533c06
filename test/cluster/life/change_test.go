package life

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// patchClaim changes what a claim asks for.
func (s *scene) patchClaim(name string, spec any) {
	s.t.Helper()
	data, err := json.Marshal(map[string]any{"spec": spec})
	s.must(err)
	s.must(s.mergeClaim(name, data))
}

// mergeClaim patches a claim, again when others change it all the time.
func (s *scene) mergeClaim(name string, patch []byte) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		_, err := s.c.Client.CoreV1().PersistentVolumeClaims(s.name).Patch(s.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// grow has a claim ask for another size.
func (s *scene) grow(name, size string) {
	s.t.Helper()
	s.patchClaim(name, map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}})
}

// grown waits until the volume has a size, and the claim says that the node is next.
func (s *scene) grown(claim, volume, size string) {
	s.t.Helper()
	want := resource.MustParse(size)
	s.wait("the volume has "+size, func(ctx context.Context) error {
		v, err := s.c.Client.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if have := v.Spec.Capacity[corev1.ResourceStorage]; have.Cmp(want) != 0 {
			return fmt.Errorf("it has %v: %s", have.String(), s.events(ctx, claim))
		}
		c, err := s.getClaim(ctx, claim)
		if err != nil {
			return err
		}
		have := c.Status.Capacity[corev1.ResourceStorage]
		isOpen := false // other conditions, as that of a claim in use, are others' business
		for _, one := range c.Status.Conditions {
			isOpen = isOpen || one.Type == corev1.PersistentVolumeClaimResizing || one.Type == corev1.PersistentVolumeClaimFileSystemResizePending
			if s.onNode && one.Type == corev1.PersistentVolumeClaimFileSystemResizePending {
				return nil
			}
		}
		if !s.onNode && have.Cmp(want) == 0 && !isOpen {
			return nil
		}
		return fmt.Errorf("the claim has %+v", c.Status)
	})
}

// A volume in use grows: the back-end, the volume, the claim.
func expand(s *scene) {
	mark := s.driver.mark()
	s.makeClass()
	s.claim("claim", "64Mi")
	volume := s.bound("claim")
	node := ""
	if s.zoneKey == "" {
		node = nodes[0] // a volume for any node could get its pod to strangeNode, where the driver is not
	}
	s.pod("pod", node, "claim")
	s.runs("pod")
	s.grow("claim", "128Mi")
	s.grown("claim", volume.Name, "128Mi")
	all, err := s.stored(s.t.Context())
	s.must(err)
	if bytes := all[volume.Spec.CSI.VolumeHandle].GetVolume().GetCapacityBytes(); bytes != 128<<20 {
		s.t.Errorf("the back-end has %d bytes", bytes)
	}
	s.called(mark, "ControllerExpandVolume", 1)
	s.noPod("pod")
	s.noClaim("claim")
}

// What a driver says of an expansion is not taken for success when it is none: the
// claim says so, the volume stays as it is, and grows when the driver is well.
func expandRefused(s *scene) {
	s.makeClass()
	for name, answer := range map[string]func() (proto.Message, error){
		"zero": func() (proto.Message, error) { return &csi.ControllerExpandVolumeResponse{}, nil },
		"less": func() (proto.Message, error) {
			return &csi.ControllerExpandVolumeResponse{CapacityBytes: 65 << 20}, nil
		},
		"timeout": func() (proto.Message, error) { return nil, status.Error(codes.DeadlineExceeded, "too late") },
		"refused": func() (proto.Message, error) { return nil, status.Error(codes.Internal, "broken disk") },
	} {
		s.claim(name, "64Mi")
		volume := s.bound(name)
		restore := s.driver.intercept(s.t, func(method string, _ []byte) (proto.Message, error) {
			if method == "ControllerExpandVolume" {
				return answer()
			}
			return nil, nil
		})
		s.grow(name, "128Mi")
		s.event(name, "VolumeResizeFailed", "")
		v, err := s.c.Client.CoreV1().PersistentVolumes().Get(s.t.Context(), volume.Name, metav1.GetOptions{})
		s.must(err)
		if have := v.Spec.Capacity[corev1.ResourceStorage]; have.Value() != 64<<20 {
			s.t.Errorf("%s: the volume has %v", name, have.String())
		}
		restore()
		s.grown(name, volume.Name, "128Mi")
		s.noClaim(name)
	}
}

// attributesClass makes a class of attributes that goes with the scene.
func (s *scene) attributesClass(kind string, parameters map[string]string) string {
	s.t.Helper()
	name := s.name + "-" + kind
	_, err := s.c.Client.StorageV1().VolumeAttributesClasses().Create(s.t.Context(), &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: s.target.name, Parameters: parameters,
	}, metav1.CreateOptions{})
	s.must(err)
	s.t.Cleanup(func() {
		s.must(s.c.Client.StorageV1().VolumeAttributesClasses().Delete(context.WithoutCancel(s.t.Context()), name, metav1.DeleteOptions{}))
	})
	return name
}

// hasClass waits until claim and volume are of a class and nothing is under way.
func (s *scene) hasClass(claim, volume, class string) {
	s.t.Helper()
	s.wait("the volume is of the class "+class, func(ctx context.Context) error {
		v, err := s.c.Client.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c, err := s.getClaim(ctx, claim)
		if err != nil {
			return err
		}
		of, current := v.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName
		if of == nil || *of != class || current == nil || *current != class || c.Status.ModifyVolumeStatus != nil {
			return fmt.Errorf("volume %v, claim %v, under way %+v: %s", text(of), text(current), c.Status.ModifyVolumeStatus, s.events(ctx, claim))
		}
		return nil
	})
}

func text(value *string) string {
	if value == nil {
		return "none"
	}
	return *value
}

// A volume is made with attributes and gets others; what is not possible is said, and
// the way back is open.
func attributes(s *scene) {
	s.makeClass()
	slow, fast, bad := s.attributesClass("slow", s.slow), s.attributesClass("fast", s.fast), s.attributesClass("bad", s.bad)
	mark := s.driver.mark()
	s.claim("claim", "64Mi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = &slow })
	volume := s.bound("claim")
	s.hasClass("claim", volume.Name, slow)
	s.called(mark, "ControllerModifyVolume", 0)
	made := requestOf(s.t, s.driver.since(mark, "CreateVolume")[0], &csi.CreateVolumeRequest{})
	if fmt.Sprint(made.GetMutableParameters()) != fmt.Sprint(s.slow) {
		s.t.Errorf("it is made with %v", made.GetMutableParameters())
	}
	s.patchClaim("claim", map[string]any{"volumeAttributesClassName": fast})
	s.hasClass("claim", volume.Name, fast)
	s.called(mark, "ControllerModifyVolume", 1)
	s.patchClaim("claim", map[string]any{"volumeAttributesClassName": bad})
	s.wait("the bad class is refused", func(ctx context.Context) error {
		c, err := s.getClaim(ctx, "claim")
		if err != nil {
			return err
		}
		if of := c.Status.ModifyVolumeStatus; of == nil || of.Status != corev1.PersistentVolumeClaimModifyVolumeInfeasible || of.TargetVolumeAttributesClassName != bad {
			return fmt.Errorf("%+v", of)
		}
		return nil
	})
	s.event("claim", "VolumeModifyFailed", "")
	s.patchClaim("claim", map[string]any{"volumeAttributesClassName": fast})
	s.hasClass("claim", volume.Name, fast)
	s.noClaim("claim")
}
