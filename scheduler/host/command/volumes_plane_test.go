//go:build plane

package command_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// class makes a StorageClass of the case.
func (k *kase) class(name, provisioner string, mode storagev1.VolumeBindingMode) {
	k.t.Helper()
	o := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: k.id + "." + name}, Provisioner: provisioner, VolumeBindingMode: &mode}
	if _, err := k.api.StorageV1().StorageClasses().Create(k.t.Context(), o, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// volume makes a PersistentVolume of a class, on one node where one is named.
func (k *kase) volume(name, class, node string, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	k.t.Helper()
	o := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: k.id + "." + name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: k.id + "." + class, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/volumes/" + name}},
	}}
	if node != "" {
		o.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{expression(hostname, corev1.NodeSelectorOpIn, k.id+"."+node)}}}
	}
	for _, f := range change {
		f(o)
	}
	o, err := k.api.CoreV1().PersistentVolumes().Create(k.t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	o.Status.Phase = corev1.VolumeAvailable
	if o, err = k.api.CoreV1().PersistentVolumes().UpdateStatus(k.t.Context(), o, metav1.UpdateOptions{}); err != nil {
		k.t.Fatal(err)
	}
	return o
}

// ask makes a PersistentVolumeClaim.
func (k *kase) ask(name, class string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	k.t.Helper()
	full := k.id + "." + class
	o := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &full,
		AccessModes: []corev1.PersistentVolumeAccessMode{mode}, Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
	o, err := k.api.CoreV1().PersistentVolumeClaims(k.ns).Create(k.t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return o
}

// tie completes the binding of a claim and a volume, as the volume controller does, which the plane has none of.
func (k *kase) tie(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	volume = volume.DeepCopy()
	volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	volume, err := k.api.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	volume.Status.Phase = corev1.VolumeBound
	if _, err := k.api.CoreV1().PersistentVolumes().UpdateStatus(ctx, volume, metav1.UpdateOptions{}); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}, "spec": map[string]any{"volumeName": volume.Name}})
	if err != nil {
		return err
	}
	if _, err := k.api.CoreV1().PersistentVolumeClaims(k.ns).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	_, err = k.api.CoreV1().PersistentVolumeClaims(k.ns).Patch(ctx, claim.Name, types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`), metav1.PatchOptions{}, "status")
	return err
}

// bindVolumes plays the volume controller and a provisioner until the case ends: what the scheduler's writes before a binding ask for.
func (k *kase) bindVolumes() { k.bindVolumesAfter(0) }

// bindVolumesAfter does so with a provisioner that takes a time for each volume.
func (k *kase) bindVolumesAfter(takes time.Duration) {
	asked := map[types.UID]time.Time{}
	ctx := k.t.Context()
	go func() {
		for ctx.Err() == nil {
			claims, err := k.api.CoreV1().PersistentVolumeClaims(k.ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return
			}
			volumes, err := k.api.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return
			}
			for i := range claims.Items {
				c := &claims.Items[i]
				if c.Spec.VolumeName != "" {
					continue
				}
				for j := range volumes.Items {
					if v := &volumes.Items[j]; v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID == c.UID {
						_ = k.tie(ctx, c, v)
					}
				}
				node := c.Annotations["volume.kubernetes.io/selected-node"]
				if at, ok := asked[c.UID]; node != "" && !ok {
					asked[c.UID] = time.Now()
				} else if node != "" && time.Since(at) >= takes {
					v := k.volume("made-for-"+c.Name, "made", k.short(node))
					_ = k.tie(ctx, c, v)
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
}

// mounts uses a claim.
func mounts(claim string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
}

const late = storagev1.VolumeBindingWaitForFirstConsumer

// TestPlaneVolumes: pods with persistent volumes are judged by upstream's plugins, and their writes before the binding are made.
func TestPlaneVolumes(t *testing.T) {
	classes(t, connect(t))
	two := []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"))}
	none := "kubernetes.io/no-provisioner"
	claimed := func(claim, volume string) func(*kase, map[string]string) {
		return func(k *kase, _ map[string]string) {
			c, err := k.api.CoreV1().PersistentVolumeClaims(k.ns).Get(k.t.Context(), claim, metav1.GetOptions{})
			if err != nil || c.Spec.VolumeName != k.id+"."+volume {
				k.t.Errorf("the claim has volume %q: %v", c.Spec.VolumeName, err)
			}
		}
	}
	playAll(t, []behaviour{
		{name: "a bound volume with a node affinity", nodes: two, objects: func(k *kase) {
			k.class("disk", none, late)
			if err := k.tie(k.t.Context(), k.ask("data", "disk", corev1.ReadWriteOnce), k.volume("v", "disk", "b")); err != nil {
				k.t.Fatal(err)
			}
		}, pods: []*corev1.Pod{work("p", mounts("data"))}, want: map[string]string{"p": "b"}},
		{name: "a volume is chosen with the node, and bound before the pod", nodes: two, objects: func(k *kase) {
			k.class("disk", none, late)
			k.bindVolumes()
			k.ask("data", "disk", corev1.ReadWriteOnce)
			k.volume("v", "disk", "b")
		}, pods: []*corev1.Pod{work("p", mounts("data"))}, want: map[string]string{"p": "b"}, check: claimed("data", "v")},
		{name: "a volume is provisioned for the node that was chosen", nodes: two, objects: func(k *kase) {
			k.class("made", "example.com/test", late)
			k.bindVolumes()
			k.ask("data", "made", corev1.ReadWriteOnce)
		}, pods: []*corev1.Pod{work("p", mounts("data"), selects(zones, "z1"))}, want: map[string]string{"p": "a"}, check: claimed("data", "made-for-data")},
		{name: "no volume, then one comes", nodes: two, objects: func(k *kase) {
			k.class("disk", none, late)
			k.bindVolumes()
			k.ask("data", "disk", corev1.ReadWriteOnce)
		}, pods: []*corev1.Pod{work("p", mounts("data"))}, want: map[string]string{"p": ""}, then: func(k *kase) { k.volume("v", "disk", "a") }, after: map[string]string{"p": "a"}},
		{name: "no claim, then one comes", nodes: two, objects: func(k *kase) { k.class("disk", none, late); k.bindVolumes(); k.volume("v", "disk", "a") },
			pods: []*corev1.Pod{work("p", mounts("data"))}, want: map[string]string{"p": ""}, then: func(k *kase) { k.ask("data", "disk", corev1.ReadWriteOnce) }, after: map[string]string{"p": "a"}},
		{name: "a node gets the label that a volume asks for", nodes: two, objects: func(k *kase) {
			k.class("disk", none, late)
			v := k.volume("v", "disk", "", func(v *corev1.PersistentVolume) {
				v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{expression("array", corev1.NodeSelectorOpIn, "x")}}}
			})
			if err := k.tie(k.t.Context(), k.ask("data", "disk", corev1.ReadWriteOnce), v); err != nil {
				k.t.Fatal(err)
			}
		}, pods: []*corev1.Pod{work("p", mounts("data"))}, want: map[string]string{"p": ""}, then: func(k *kase) { k.patchNode("b", `{"metadata":{"labels":{"array":"x"}}}`) }, after: map[string]string{"p": "b"}},
		{name: "storage capacity comes", nodes: two, objects: func(k *kase) {
			driver, yes := k.id+".example.com", true
			if _, err := k.api.StorageV1().CSIDrivers().Create(k.t.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}}, metav1.CreateOptions{}); err != nil {
				k.t.Fatal(err)
			}
			k.class("made", driver, late)
			k.bindVolumes()
			k.ask("data", "made", corev1.ReadWriteOnce)
		}, pods: []*corev1.Pod{work("p", mounts("data"))}, want: map[string]string{"p": ""}, then: func(k *kase) {
			much := resource.MustParse("10Gi")
			o := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: "z2"}, StorageClassName: k.id + ".made", Capacity: &much, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{zones: "z2"}}}
			if _, err := k.api.StorageV1().CSIStorageCapacities(k.ns).Create(k.t.Context(), o, metav1.CreateOptions{}); err != nil {
				k.t.Fatal(err)
			}
		}, after: map[string]string{"p": "b"}},
		{name: "a volume for one pod alone", nodes: two, objects: func(k *kase) {
			k.class("disk", none, late)
			if err := k.tie(k.t.Context(), k.ask("data", "disk", corev1.ReadWriteOncePod), k.volume("v", "disk", "a", func(v *corev1.PersistentVolume) {
				v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
			})); err != nil {
				k.t.Fatal(err)
			}
		}, pods: []*corev1.Pod{work("first", mounts("data")), work("p", mounts("data"))}, want: map[string]string{"first": "a", "p": ""}, then: func(k *kase) { k.delete("first") }, after: map[string]string{"p": "a"}},
		{name: "a volume for one pod alone, and who stands lower has it", nodes: two, objects: func(k *kase) {
			k.class("disk", none, late)
			if err := k.tie(k.t.Context(), k.ask("data", "disk", corev1.ReadWriteOncePod), k.volume("v", "disk", "a", func(v *corev1.PersistentVolume) {
				v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
			})); err != nil {
				k.t.Fatal(err)
			}
		}, pods: []*corev1.Pod{work("first", of("low"), mounts("data"))}, want: map[string]string{"first": "a"}, then: func(k *kase) {
			k.pod(work("p", of("high"), mounts("data")))
			k.gone("first")
		}, after: map[string]string{"p": "a"}},
		{name: "the node stands in the status while its volume is made", nodes: two, objects: func(k *kase) {
			k.class("made", "example.com/test", late)
			k.ask("data", "made", corev1.ReadWriteOnce)
		}, pods: []*corev1.Pod{work("p", mounts("data"), selects(zones, "z1"))}, want: map[string]string{}, then: func(k *kase) {
			k.poll("pod p has a nominated node", func(context.Context) (bool, error) { return k.get("p").Status.NominatedNodeName == k.id+".a", nil })
			k.bindVolumes()
		}, after: map[string]string{"p": "a"}},
		{name: "room is held while a volume is made", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) {
			k.class("made", "example.com/test", late)
			k.ask("data", "made", corev1.ReadWriteOnce)
			k.bindVolumesAfter(5 * time.Second)
		}, pods: []*corev1.Pod{work("slow", cores("3"), mounts("data"))}, want: map[string]string{}, then: func(k *kase) {
			k.poll("the volume is being made", func(context.Context) (bool, error) { return k.get("slow").Status.NominatedNodeName == k.id+".a", nil })
			k.pod(work("quick", cores("2")))
			k.are(map[string]string{"quick": ""})
		}, after: map[string]string{"slow": "a", "quick": ""}},
		{name: "apart while volumes are made", nodes: []*corev1.Node{host("a"), host("b"), host("c")}, objects: func(k *kase) {
			k.class("made", "example.com/test", late)
			for _, name := range []string{"d0", "d1", "d2"} {
				k.ask(name, "made", corev1.ReadWriteOnce)
			}
			k.bindVolumesAfter(3 * time.Second)
		}, pods: []*corev1.Pod{work("p0", with("app", "db"), apart(term(hostname, "app", "db")), mounts("d0")), work("p1", with("app", "db"), apart(term(hostname, "app", "db")), mounts("d1")),
			work("p2", with("app", "db"), apart(term(hostname, "app", "db")), mounts("d2"))}, then: func(*kase) {},
			after: map[string]string{"p0": "*", "p1": "*", "p2": "*"}},
		{name: "spread while volumes are made", nodes: two, objects: func(k *kase) {
			k.class("made", "example.com/test", late)
			for _, name := range []string{"d0", "d1", "d2", "d3"} {
				k.ask(name, "made", corev1.ReadWriteOnce)
			}
			k.bindVolumesAfter(3 * time.Second)
		}, pods: []*corev1.Pod{work("p0", spread(zones, 1, corev1.DoNotSchedule), mounts("d0")), work("p1", spread(zones, 1, corev1.DoNotSchedule), mounts("d1")),
			work("p2", spread(zones, 1, corev1.DoNotSchedule), mounts("d2")), work("p3", spread(zones, 1, corev1.DoNotSchedule), mounts("d3"))}, then: func(*kase) {},
			after: map[string]string{"p0": "*", "p1": "*", "p2": "*", "p3": "*"}},
		{name: "the volumes of a CSI driver are counted", nodes: two, objects: func(k *kase) {
			k.class("disk", none, late)
			one := int32(1)
			for _, node := range []string{"a", "b"} {
				o := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: k.id + "." + node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "csi.example.com", NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &one}}}}}
				if _, err := k.api.StorageV1().CSINodes().Create(k.t.Context(), o, metav1.CreateOptions{}); err != nil {
					k.t.Fatal(err)
				}
			}
			for _, name := range []string{"one", "two", "three"} {
				v := k.volume(name, "disk", "", func(v *corev1.PersistentVolume) {
					v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: k.id + name}}
				})
				if err := k.tie(k.t.Context(), k.ask(name, "disk", corev1.ReadWriteOnce), v); err != nil {
					k.t.Fatal(err)
				}
			}
		}, pods: []*corev1.Pod{work("p1", mounts("one"), selects(zones, "z1")), work("p2", mounts("two")), work("p3", mounts("three"))}, want: map[string]string{"p1": "a", "p2": "b", "p3": ""}},
	})
}

// devices offers devices of the case's driver on a node.
func (k *kase) devices(node string, names ...string) {
	k.t.Helper()
	full := k.id + "." + node
	o := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: full}, Spec: resourcev1.ResourceSliceSpec{Driver: k.id + ".example.com", NodeName: &full,
		Pool: resourcev1.ResourcePool{Name: full, Generation: 1, ResourceSliceCount: 1}}}
	for _, name := range names {
		o.Spec.Devices = append(o.Spec.Devices, resourcev1.Device{Name: name})
	}
	if _, err := k.api.ResourceV1().ResourceSlices().Create(k.t.Context(), o, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// deviceClass makes the class of the case's devices.
func (k *kase) deviceClass() { k.deviceClassFor(nil) }

// deviceClassFor makes the class of the case's devices, which stands for an extended resource.
func (k *kase) deviceClassFor(resource *string) {
	k.t.Helper()
	o := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: k.id + ".example.com"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: resource, Selectors: []resourcev1.DeviceSelector{{
		CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + k.id + `.example.com"`}}}}}
	if _, err := k.api.ResourceV1().DeviceClasses().Create(k.t.Context(), o, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// resourceClaim asks for one device.
func (k *kase) resourceClaim(name string, owners ...metav1.OwnerReference) {
	k.t.Helper()
	o := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: k.id + ".example.com"}}}}}}
	if _, err := k.api.ResourceV1().ResourceClaims(k.ns).Create(k.t.Context(), o, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// uses a resource claim.
func uses(claim string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "device", ResourceClaimName: &claim})
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	}
}

// TestPlaneClaims: pods with resource claims are judged by upstream's plugin, and the claim is allocated and reserved before the pod is bound.
func TestPlaneClaims(t *testing.T) {
	two := []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"))}
	reserved := func(claim string, pods ...string) func(*kase, map[string]string) {
		return func(k *kase, _ map[string]string) {
			c, err := k.api.ResourceV1().ResourceClaims(k.ns).Get(k.t.Context(), claim, metav1.GetOptions{})
			if err != nil {
				k.t.Fatal(err)
			}
			if c.Status.Allocation == nil || len(c.Status.ReservedFor) != len(pods) {
				k.t.Errorf("the claim has allocation %+v and is reserved for %v, want %v", c.Status.Allocation, c.Status.ReservedFor, pods)
			}
		}
	}
	playAll(t, []behaviour{
		{name: "the node that has the device", nodes: two, objects: func(k *kase) { k.deviceClass(); k.devices("b", "d0"); k.resourceClaim("c") }, pods: []*corev1.Pod{work("p", uses("c"))}, want: map[string]string{"p": "b"}, check: reserved("c", "p")},
		{name: "a device is used once, and another one comes", nodes: two, objects: func(k *kase) { k.deviceClass(); k.devices("b", "d0"); k.resourceClaim("c1"); k.resourceClaim("c2") },
			pods: []*corev1.Pod{work("p1", uses("c1")), work("p2", uses("c2"))}, want: map[string]string{"p1": "b", "p2": ""}, then: func(k *kase) { k.devices("a", "d0") }, after: map[string]string{"p2": "a"}},
		{name: "two pods share a claim", nodes: two, objects: func(k *kase) { k.deviceClass(); k.devices("b", "d0"); k.resourceClaim("c") }, pods: []*corev1.Pod{work("p1", uses("c")), work("p2", uses("c"))}, want: map[string]string{"p1": "b", "p2": "b"}, check: reserved("c", "p1", "p2")},
		{name: "no claim, then one comes", nodes: two, objects: func(k *kase) { k.deviceClass(); k.devices("a", "d0") }, pods: []*corev1.Pod{work("p", uses("c"))}, want: map[string]string{"p": ""}, then: func(k *kase) { k.resourceClaim("c") }, after: map[string]string{"p": "a"}},
		{name: "room and device on one node", nodes: two, objects: func(k *kase) { k.deviceClass(); k.devices("a", "d0"); k.devices("b", "d0"); k.resourceClaim("c") }, running: []*corev1.Pod{work("r", on("a"), cores("3"))},
			pods: []*corev1.Pod{work("p", cores("2"), uses("c"))}, want: map[string]string{"p": "b"}},
		{name: "a rule taints the devices of one node", nodes: two, objects: func(k *kase) {
			k.deviceClass()
			k.devices("a", "d0")
			k.devices("b", "d0")
			k.taintDevices("a")
			k.resourceClaim("c1")
			k.resourceClaim("c2")
		},
			pods: []*corev1.Pod{work("p1", uses("c1")), work("p2", uses("c2"))}, want: map[string]string{"p1": "b", "p2": ""}, then: func(k *kase) {
				if err := k.api.ResourceV1().DeviceTaintRules().Delete(k.t.Context(), k.id+".a", metav1.DeleteOptions{}); err != nil {
					k.t.Fatal(err)
				}
			}, after: map[string]string{"p2": "a"}},
	})
}

// listing has a group list a claim: one by name, or one that is made of a template.
func listing(claim, template string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) {
		c := schedulingv1beta1.PodGroupResourceClaim{Name: "device"}
		if claim != "" {
			c.ResourceClaimName = &claim
		} else {
			c.ResourceClaimTemplateName = &template
		}
		g.Spec.ResourceClaims = append(g.Spec.ResourceClaims, c)
	}
}

// usesTemplate asks for a claim that is made of a template.
func usesTemplate(name string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "device", ResourceClaimTemplateName: &name})
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	}
}

// claimForGroup makes the claim of a group, and names it in the status of the group and of its pods, as the controller for claims does, which the plane has none of.
func (k *kase) claimForGroup(group string, pods ...string) {
	k.t.Helper()
	ctx := k.t.Context()
	g, err := k.api.SchedulingV1beta1().PodGroups(k.ns).Get(ctx, group, metav1.GetOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	yes, name := true, group+"-device"
	k.resourceClaim(name, metav1.OwnerReference{APIVersion: "scheduling.k8s.io/v1beta1", Kind: "PodGroup", Name: g.Name, UID: g.UID, Controller: &yes})
	g.Status.ResourceClaimStatuses = []schedulingv1beta1.PodGroupResourceClaimStatus{{Name: "device", ResourceClaimName: &name}}
	if _, err := k.api.SchedulingV1beta1().PodGroups(k.ns).UpdateStatus(ctx, g, metav1.UpdateOptions{}); err != nil {
		k.t.Fatal(err)
	}
	patch := []byte(`{"status":{"resourceClaimStatuses":[{"name":"device","resourceClaimName":"` + name + `"}]}}`)
	for _, pod := range pods {
		if _, err := k.api.CoreV1().Pods(k.ns).Patch(ctx, pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			k.t.Fatal(err)
		}
	}
}

// TestPlaneClaimsOfGroups: a claim that a PodGroup lists is reserved for the group, and its pods share it. The group is placed whole where the claim can be.
func TestPlaneClaimsOfGroups(t *testing.T) {
	two := []*corev1.Node{host("a"), host("b")}
	none := map[string]string{}
	reserved := func(claim string, want ...string) func(*kase, map[string]string) {
		return func(k *kase, _ map[string]string) {
			k.t.Helper()
			k.poll("the claim is reserved", func(ctx context.Context) (bool, error) {
				c, err := k.api.ResourceV1().ResourceClaims(k.ns).Get(ctx, claim, metav1.GetOptions{})
				if err != nil {
					return false, err
				}
				var got []string
				for _, r := range c.Status.ReservedFor {
					got = append(got, r.Resource+"/"+r.Name)
				}
				slices.Sort(got)
				return c.Status.Allocation != nil && slices.Equal(got, want), nil
			})
		}
	}
	wait := func(k *kase, message string, pods ...string) {
		k.t.Helper()
		for _, name := range pods {
			k.poll("pod "+name+" waits: "+message, func(context.Context) (bool, error) {
				p := k.get(name)
				if p.Spec.NodeName != "" {
					k.t.Fatalf("pod %s is on %s", name, p.Spec.NodeName)
				}
				return unschedulable(p) && strings.Contains(condition(p).Message, message), nil
			})
		}
	}
	playAll(t, []behaviour{
		{name: "by name", nodes: two, objects: func(k *kase) {
			k.deviceClass()
			k.devices("b", "d0")
			k.resourceClaim("c")
			k.group("g", 3, "", listing("c", ""))
		}, pods: times(3, "g", member("g"), uses("c"), cores("1")), want: none, then: func(k *kase) {
			k.are(map[string]string{"g-0": "b", "g-1": "b", "g-2": "b"})
			reserved("c", "podgroups/g")(k, nil)
		}, after: none},
		{name: "by template, and the claim comes later", nodes: two, objects: func(k *kase) { k.deviceClass(); k.devices("b", "d0"); k.group("g", 2, "", listing("", "t")) },
			pods: times(2, "g", member("g"), usesTemplate("t"), cores("1")), want: none, then: func(k *kase) {
				wait(k, "ResourceClaim not created yet", "g-0", "g-1")
				k.claimForGroup("g", "g-0", "g-1")
				k.are(map[string]string{"g-0": "b", "g-1": "b"})
				reserved("g-device", "podgroups/g")(k, nil)
			}, after: none},
		{name: "whole where the claim can be", nodes: []*corev1.Node{host("a"), host("b"), host("c", holds(corev1.ResourceCPU, "8"))}, objects: func(k *kase) {
			k.deviceClass()
			k.devices("b", "d0")
			k.resourceClaim("c")
			k.group("g", 2, "", listing("c", ""))
		}, pods: times(2, "g", member("g"), uses("c"), cores("3")), want: none, then: func(k *kase) {
			wait(k, "no room for all of its gang at once", "g-0", "g-1")
			k.devices("c", "d0")
		}, after: map[string]string{"g-0": "c", "g-1": "c"}},
		{name: "a late pod shares it", nodes: two, objects: func(k *kase) {
			k.deviceClass()
			k.devices("b", "d0")
			k.resourceClaim("c")
			k.group("g", 2, "", listing("c", ""))
		}, pods: times(2, "g", member("g"), uses("c"), cores("1")), want: none, then: func(k *kase) {
			k.are(map[string]string{"g-0": "b", "g-1": "b"})
			k.pod(work("late", member("g"), uses("c"), cores("1")))
			k.are(map[string]string{"late": "b"})
			reserved("c", "podgroups/g")(k, nil)
		}, after: none},
		{name: "without a gang", nodes: two, objects: func(k *kase) {
			k.deviceClass()
			k.devices("b", "d0")
			k.resourceClaim("c")
			k.group("g", 0, "", listing("c", ""))
		}, pods: times(2, "g", member("g"), uses("c"), cores("1")), want: none, then: func(k *kase) {
			k.are(map[string]string{"g-0": "b", "g-1": "b"})
			reserved("c", "podgroups/g")(k, nil)
		}, after: none},
	})
}

// taintDevices makes a rule that keeps pods off the case's devices of a node.
func (k *kase) taintDevices(node string) {
	k.t.Helper()
	name, driver := k.id+"."+node, k.id+".example.com"
	o := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceTaintRuleSpec{DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: &driver, Pool: &name},
		Taint: resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}}
	if _, err := k.api.ResourceV1().DeviceTaintRules().Create(k.t.Context(), o, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// TestPlaneExtendedDevices: a pod asks for an extended resource that a DeviceClass stands for. A node with a device plugin gives what it has; of other nodes
// upstream's plugin judges, makes a claim for the pod, and allocates it before the pod is bound.
func TestPlaneExtendedDevices(t *testing.T) {
	two := []*corev1.Node{host("a"), host("b")}
	stand := func(name string) func(*kase) { return func(k *kase) { k.deviceClassFor(&name) } }
	claims := func(k *kase, pod string, want int) {
		k.t.Helper()
		list, err := k.api.ResourceV1().ResourceClaims(k.ns).List(k.t.Context(), metav1.ListOptions{})
		if err != nil {
			k.t.Fatal(err)
		}
		p, err := k.api.CoreV1().Pods(k.ns).Get(k.t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			k.t.Fatal(err)
		}
		if got := p.Status.ExtendedResourceClaimStatus != nil; len(list.Items) != want || got != (want > 0) {
			k.t.Errorf("there are %d claims and the pod names one: %v; want %d", len(list.Items), got, want)
		}
		for i := range list.Items {
			if c := &list.Items[i]; c.Status.Allocation == nil || len(c.Status.ReservedFor) != 1 {
				k.t.Errorf("claim %s has allocation %+v and is reserved for %v", c.Name, c.Status.Allocation, c.Status.ReservedFor)
			}
		}
	}
	playAll(t, []behaviour{
		{name: "the node that has the device", nodes: two, objects: func(k *kase) { stand("one.example.com/card")(k); k.devices("b", "d0") },
			pods: []*corev1.Pod{work("p", asks("one.example.com/card", "1"))}, want: map[string]string{"p": "b"}, check: func(k *kase, _ map[string]string) { claims(k, "p", 1) }},
		{name: "by the name of the class", nodes: two, objects: func(k *kase) { k.deviceClass(); k.devices("b", "d0") },
			pods: []*corev1.Pod{work("p", asks("deviceclass.resource.kubernetes.io/extendeddevices-1.example.com", "1"))}, want: map[string]string{"p": "b"}},
		{name: "GPUs", nodes: two, objects: func(k *kase) { stand("three.example.com/gpu")(k); k.devices("b", "d0", "d1") },
			pods: []*corev1.Pod{work("p", asks("three.example.com/gpu", "2")), work("more", asks("three.example.com/gpu", "1"))}, want: map[string]string{"p": "b", "more": ""},
			then: func(k *kase) { k.devices("a", "d0") }, after: map[string]string{"more": "a"}},
		{name: "a device plugin on one node", nodes: []*corev1.Node{host("a", holds("four.example.com/gpu", "1")), host("b")}, objects: func(k *kase) { stand("four.example.com/gpu")(k); k.devices("b", "d0") },
			pods: []*corev1.Pod{work("p1", asks("four.example.com/gpu", "1")), work("p2", asks("four.example.com/gpu", "1")), work("p3", asks("four.example.com/gpu", "1"))},
			want: map[string]string{"p1": "*", "p2": "*", "p3": ""}, check: func(k *kase, at map[string]string) {
				if at["p1"] == at["p2"] {
					k.t.Errorf("both are on %s", at["p1"])
				}
			}},
		{name: "the class comes later", nodes: two, objects: func(k *kase) { k.devices("b", "d0") },
			pods: []*corev1.Pod{work("p", asks("five.example.com/gpu", "1"))}, want: map[string]string{"p": ""}, then: stand("five.example.com/gpu"), after: map[string]string{"p": "b"}},
		{name: "a claim of an earlier attempt", nodes: two, objects: stand("six.example.com/card"),
			pods: []*corev1.Pod{work("p", asks("six.example.com/card", "1"))}, want: map[string]string{"p": ""}, then: func(k *kase) { k.leftBehind("p"); k.devices("b", "d0") },
			after: map[string]string{"p": "b"}},
	})
}

// leftBehind makes the claim of a pod for an extended resource, as a scheduler leaves it that ends before the binding.
func (k *kase) leftBehind(pod string) {
	k.t.Helper()
	p, err := k.api.CoreV1().Pods(k.ns).Get(k.t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	yes := true
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{GenerateName: pod + "-extended-resources-", Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &yes}}},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "container-0-request-0",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: k.id + ".example.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}}}
	if _, err := k.api.ResourceV1().ResourceClaims(k.ns).Create(k.t.Context(), c, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}
