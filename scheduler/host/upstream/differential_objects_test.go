package upstream

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// driver makes volumes of which each node takes few.
const driver = "csi.test"

// claimed are the claims on volumes of each namespace: bound to a volume of a zone (by its affinity, or by the label of old volumes), to one of a node, to
// one that a single pod may use; to be bound to a volume that is there when the pod has a node, or to one that is made in a zone then; and bound to nothing.
var claimed = []string{"zone-a", "zone-b", "label-c", "node-1", "single", "single-b", "late", "made", "nothing", "missing"}

// storage is what there is of volumes.
func storage() []runtime.Object {
	now, wait := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	out := []runtime.Object{
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "static"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &now},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "made"}, Provisioner: driver, VolumeBindingMode: &wait,
			AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{"a", "c"}}}}}},
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}},
	}
	for i := range 5 {
		limit := int32(1 + i%3)
		out = append(out, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: fmt.Sprint("n", i), Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}}}})
	}
	for _, namespace := range []string{"x", "y", "z"} {
		for _, name := range claimed {
			if name == "missing" {
				continue
			}
			mode, class := corev1.ReadWriteMany, "static"
			switch {
			case strings.HasPrefix(name, "single"):
				mode = corev1.ReadWriteOncePod
			case name == "late", name == "made":
				class = name
			}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
				Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{mode},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
			out = append(out, claim)
			if name == "made" || name == "nothing" {
				continue
			}
			volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
				Spec: corev1.PersistentVolumeSpec{StorageClassName: class, AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
					PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: namespace + name}}}}
			out = append(out, volume)
			switch name {
			case "zone-a", "zone-b", "single-b":
				volume.Spec.NodeAffinity = on(corev1.LabelTopologyZone, name[len(name)-1:])
			case "node-1", "late":
				volume.Spec.NodeAffinity = on(corev1.LabelHostname, "n1", "n2")
			case "label-c":
				volume.Labels = map[string]string{corev1.LabelTopologyZone: "c"}
			}
			if name == "late" {
				continue // it is there, and waits for the pod's node
			}
			volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name, UID: claim.UID}
			volume.Status.Phase, claim.Status.Phase = corev1.VolumeBound, corev1.ClaimBound
			claim.Spec.VolumeName = volume.Name
			claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		}
	}
	return out
}

func on(label string, values ...string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: values}}}}}}
}

func (h *history) volumes() []corev1.Volume {
	var out []corev1.Volume
	for i := range pick(h.r, "volumes", 1, 1, 2) {
		name := pick(h.r, "claim", claimed...)
		out = append(out, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
	return out
}

// asked are the DRA claims of each namespace: given out on a node, still to be given out, more devices than a node has, and of a class that is not there.
var asked = []string{"given", "wanted", "many", "classless", "missing"}

// gadgets are devices, and claims on them.
func gadgets() []runtime.Object {
	out := []runtime.Object{&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gadget"}}}
	for i, devices := range []int{1, 2, 4} {
		node := fmt.Sprint("n", i)
		s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourceapi.ResourceSliceSpec{Driver: "gadgets.test", NodeName: &node,
			Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}}
		for k := range devices {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: fmt.Sprint("d", k)})
		}
		out = append(out, s)
	}
	for _, namespace := range []string{"x", "y", "z"} {
		for _, name := range asked {
			exact := &resourceapi.ExactDeviceRequest{DeviceClassName: "gadget", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}
			switch name {
			case "missing":
				continue
			case "many":
				exact.Count = 3
			case "classless":
				exact.DeviceClassName = "none"
			}
			c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
				Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "r", Exactly: exact}}}}}
			if name == "given" && namespace == "x" {
				c.Status.Allocation = &resourceapi.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}},
					Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: "gadgets.test", Pool: "n1", Device: "d0"}}}}
			}
			out = append(out, c)
		}
	}
	return out
}

func (h *history) claims() []corev1.PodResourceClaim {
	name := pick(h.r, "claim", asked...)
	return []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &name}}
}
