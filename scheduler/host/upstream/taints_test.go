package upstream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/springtide/springtide/scheduler/host"
)

// TestDeviceTaintRules: a device that a rule taints is given to claims that tolerate the taint alone; the rule's end gives it back.
func TestDeviceTaintRules(t *testing.T) {
	tolerant := []resourceapi.DeviceToleration{{Key: "broken", Operator: resourceapi.DeviceTolerationOpExists}}
	for _, c := range []struct {
		name     string
		selector *resourceapi.DeviceTaintSelector
		effect   resourceapi.DeviceTaintEffect
		claim    []resourceapi.DeviceToleration
		want     bool
	}{
		{"one device", &resourceapi.DeviceTaintSelector{Driver: ptr.To("gadgets.test"), Pool: ptr.To("n0"), Device: ptr.To("d0")}, resourceapi.DeviceTaintEffectNoSchedule, nil, false},
		{"all of a driver", &resourceapi.DeviceTaintSelector{Driver: ptr.To("gadgets.test")}, resourceapi.DeviceTaintEffectNoExecute, nil, false},
		{"all devices", &resourceapi.DeviceTaintSelector{}, resourceapi.DeviceTaintEffectNoSchedule, nil, false},
		{"another device", &resourceapi.DeviceTaintSelector{Driver: ptr.To("gadgets.test"), Pool: ptr.To("n1")}, resourceapi.DeviceTaintEffectNoSchedule, nil, true},
		{"tolerated", &resourceapi.DeviceTaintSelector{Driver: ptr.To("gadgets.test")}, resourceapi.DeviceTaintEffectNoSchedule, tolerant, true},
		{"told, not kept off", &resourceapi.DeviceTaintSelector{Driver: ptr.To("gadgets.test")}, resourceapi.DeviceTaintEffectNone, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "tolerates", UID: "tolerates"}, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
				Requests: []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gadget", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1, Tolerations: c.claim}}}}}}
			rule := &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "drain"}, Spec: resourceapi.DeviceTaintRuleSpec{DeviceSelector: c.selector,
				Taint: resourceapi.DeviceTaint{Key: "broken", Effect: c.effect, TimeAdded: ptr.To(metav1.Now())}}}
			client := fake.NewClientset(append(gadgets(), claim, rule)...)
			changed := make(chan struct{}, 1000)
			o := host.PluginOptions{Client: client, Informers: informers.NewSharedInformerFactory(client, 0), Changed: func() { changed <- struct{}{} }}
			// The first try is thrown away: the second one reads the same cluster.
			var j *Judge
			for range 2 {
				var err error
				if j, err = newJudge(t.Context(), o, devices{claims: true, taintRules: true}); err != nil {
					t.Fatal(err)
				}
			}
			o.Informers.Start(t.Context().Done())
			o.Informers.WaitForCacheSync(t.Context().Done())
			cache.WaitForCacheSync(t.Context().Done(), j.synced...)
			j.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", UID: "n0"}})
			fits := func() error {
				name := claim.Name
				trial, err := j.Begin(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "p", UID: "p"}, Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "app"}}, ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &name}}}})
				if err == nil {
					err = trial.Check(t.Context(), "n0")
				}
				return err
			}
			// Claims reach the plugin on a way of their own.
			for err := fits(); err != nil && strings.Contains(err.Error(), "could not find ResourceClaim"); err = fits() {
				time.Sleep(time.Millisecond)
			}
			if err := fits(); (err == nil) != c.want {
				t.Fatalf("with the rule: %v, want the node accepted: %v", err, c.want)
			}
			for len(changed) > 0 {
				<-changed
			}
			if err := client.ResourceV1().DeviceTaintRules().Delete(t.Context(), rule.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			for begun := time.Now(); fits() != nil; time.Sleep(time.Millisecond) {
				if time.Since(begun) > time.Minute {
					t.Fatalf("the rule is gone, and the node is refused: %v", fits())
				}
			}
			if !c.want {
				select {
				case <-changed: // which wakes the pods that wait
				case <-time.After(time.Minute):
					t.Error("the rule's end woke no pod")
				}
			}
		})
	}
}

// TestServedKinds: an informer of a kind that is not served is never made.
func TestServedKinds(t *testing.T) {
	for _, c := range []struct {
		served []string
		want   devices
	}{
		{nil, devices{}},
		{[]string{"resourceclaims", "resourceslices"}, devices{claims: true}},
		{[]string{"devicetaintrules", "resourceclaims", "resourceslices"}, devices{claims: true, taintRules: true}},
	} {
		client := fake.NewClientset()
		if c.served != nil {
			list := &metav1.APIResourceList{GroupVersion: "resource.k8s.io/v1"}
			for _, name := range c.served {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
			}
			client.Resources = append(client.Resources, list)
		}
		got, err := servedKinds(client)
		if fmt.Sprint(got) != fmt.Sprint(c.want) || err != nil {
			t.Errorf("of %v: %+v, %v; want %+v", c.served, got, err, c.want)
		}
	}
}
