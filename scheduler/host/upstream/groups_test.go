package upstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/springtide/springtide/scheduler/host"
)

// group is a PodGroup with a claim, and the claim that the controller for claims made of its template.
func group(claim schedulingv1beta1.PodGroupResourceClaim) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "ring", UID: "ring"}, Spec: schedulingv1beta1.PodGroupSpec{ResourceClaims: []schedulingv1beta1.PodGroupResourceClaim{claim}}}
}

func claimOf(name, owner string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID("x" + name), ResourceVersion: "1"}, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
		Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gadget", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}}}}}}
	if yes := true; owner != "" {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "scheduling.k8s.io/v1beta1", Kind: "PodGroup", Name: owner, UID: types.UID(owner), Controller: &yes}}
	}
	return c
}

// inRing is a pod of the group, with a claim. made is the name that the controller for claims wrote for a template; empty for none.
func inRing(name string, claim corev1.PodResourceClaim, made string) *corev1.Pod {
	ring := "ring"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}},
		SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &ring}, ResourceClaims: []corev1.PodResourceClaim{claim}}}
	if made != "" {
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: claim.Name, ResourceClaimName: &made}}
	}
	return p
}

// judgeOf is a judge of claims that has read some objects, with some nodes.
func judgeOf(t *testing.T, objects []runtime.Object, nodes ...string) (*Judge, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(objects...)
	o := host.PluginOptions{Client: client, Informers: informers.NewSharedInformerFactory(client, 0)}
	j, err := newJudge(t.Context(), o, devices{claims: true})
	if err != nil {
		t.Fatal(err)
	}
	o.Informers.Start(t.Context().Done())
	o.Informers.WaitForCacheSync(t.Context().Done())
	cache.WaitForCacheSync(t.Context().Done(), j.synced...)
	for _, n := range nodes {
		j.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n, UID: types.UID(n)}})
	}
	return j, client
}

// claimsJudge is a judge that has read some claims, with the nodes n0 and n1.
func claimsJudge(t *testing.T, claims ...*resourceapi.ResourceClaim) (*Judge, *fake.Clientset) {
	t.Helper()
	objects := gadgets()
	for _, c := range claims {
		objects = append(objects, c)
	}
	j, client := judgeOf(t, objects, "n0", "n1")
	wanted := claims[0].Name
	for begun := time.Now(); ; time.Sleep(time.Millisecond) { // claims and slices reach the plugin on ways of their own
		p := inRing("probe", corev1.PodResourceClaim{Name: "c", ResourceClaimName: &wanted}, "")
		p.Spec.SchedulingGroup = nil
		trial, err := reserveOn(t.Context(), j, p, "n0")
		if err == nil {
			trial.Unreserve(t.Context(), "n0")
			return j, client
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
}

func reserveOn(ctx context.Context, j *Judge, p *corev1.Pod, node string) (host.Trial, error) {
	trial, err := j.Begin(ctx, p)
	if err == nil {
		if err = trial.Check(ctx, node); err == nil {
			err = trial.Reserve(ctx, node)
		}
	}
	return trial, err
}

// TestClaimsOfAGroup: a claim that a PodGroup lists is allocated once and reserved for the group, whichever of its pods is written first. A claim that the pods
// share and the group does not list is reserved for each of them.
func TestClaimsOfAGroup(t *testing.T) {
	wanted, template, made, other := "mine", "t", "made", "other"
	byName := corev1.PodResourceClaim{Name: "c", ResourceClaimName: &wanted}
	byTemplate := corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: &template}
	for _, c := range []struct {
		name    string
		group   schedulingv1beta1.PodGroupResourceClaim
		pods    corev1.PodResourceClaim
		made    string // in the status of the pods
		owner   string // of the claim made
		claim   string
		want    []string // for which it is reserved
		refused string
	}{
		{name: "by name", group: schedulingv1beta1.PodGroupResourceClaim{Name: "c", ResourceClaimName: &wanted}, pods: byName, claim: wanted, want: []string{"podgroups/ring"}},
		{name: "by template", group: schedulingv1beta1.PodGroupResourceClaim{Name: "c", ResourceClaimTemplateName: &template}, pods: byTemplate, made: made, owner: "ring", claim: made, want: []string{"podgroups/ring"}},
		{name: "under another name", group: schedulingv1beta1.PodGroupResourceClaim{Name: "d", ResourceClaimName: &wanted}, pods: byName, claim: wanted, want: []string{"pods/one", "pods/two"}},
		{name: "another one", group: schedulingv1beta1.PodGroupResourceClaim{Name: "c", ResourceClaimName: &other}, pods: byName, claim: wanted, want: []string{"pods/one", "pods/two"}},
		{name: "not made yet", group: schedulingv1beta1.PodGroupResourceClaim{Name: "c", ResourceClaimTemplateName: &template}, pods: byTemplate, refused: "ResourceClaim not created yet"},
		{name: "of another group", group: schedulingv1beta1.PodGroupResourceClaim{Name: "c", ResourceClaimTemplateName: &template}, pods: byTemplate, made: made, owner: "round", refused: "was not created for Pod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			j, client := claimsJudge(t, claimOf(wanted, ""), claimOf(made, c.owner))
			j.SetGroup(group(c.group))
			pods := []*corev1.Pod{inRing("one", c.pods, c.made), inRing("two", c.pods, c.made)}
			end := j.Gang()
			var trials []host.Trial
			for _, p := range pods {
				trial, err := reserveOn(ctx, j, p, "n0")
				if c.refused != "" {
					if err == nil || !strings.Contains(err.Error(), c.refused) {
						t.Fatalf("the pod is refused with %v, want %q", err, c.refused)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				trials = append(trials, trial)
			}
			end()
			second := make(chan error)
			go func() { second <- trials[1].PreBind(ctx, "n0", func() {}) }()
			select {
			case err := <-second:
				t.Fatalf("the second pod did not wait for the first one's allocation: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			if err := trials[0].PreBind(ctx, "n0", func() {}); err != nil {
				t.Fatal(err)
			}
			if err := <-second; !errors.Is(err, host.ErrAgain) {
				t.Fatalf("the second pod is written with %v", err)
			}
			trials[1].Unreserve(ctx, "n0")
			if _, err := reserveOn(ctx, j, pods[1], "n1"); err == nil {
				t.Error("the claim is given out on a second node")
			}
			again, err := reserveOn(ctx, j, pods[1], "n0")
			if err != nil {
				t.Fatal(err)
			}
			if err := again.PreBind(ctx, "n0", func() {}); err != nil {
				t.Fatal(err)
			}
			got, err := client.ResourceV1().ResourceClaims("x").Get(ctx, c.claim, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var reserved []string
			for _, r := range got.Status.ReservedFor {
				reserved = append(reserved, r.Resource+"/"+r.Name)
			}
			if got.Status.Allocation == nil || !slices.Equal(reserved, c.want) {
				t.Errorf("the claim has allocation %v and is reserved for %v, want %v", got.Status.Allocation, reserved, c.want)
			}
		})
	}
}

// TestAGroupGivesBackItsClaim: a claim that is allocated where the group fits no more is given back, once none of its pods has a node: one by name, and one that
// nothing is reserved for.
func TestAGroupGivesBackItsClaim(t *testing.T) {
	wanted := "mine"
	for name, c := range map[string]struct {
		reservedFor []resourceapi.ResourceClaimConsumerReference
		runs        string // a pod that has a node, by its group
		constrained bool
		kept        bool
	}{
		"reserved for the group":            {reservedFor: []resourceapi.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "ring", UID: "ring"}}},
		"reserved for none":                 {},
		"a pod of another group has a node": {runs: "round"},
		"a pod of it has a node":            {runs: "ring", kept: true, reservedFor: []resourceapi.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "ring", UID: "ring"}}},
		"in one domain":                     {constrained: true, kept: true},
		"reserved for another pod too": {reservedFor: []resourceapi.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "ring", UID: "ring"},
			{Resource: "pods", Name: "z", UID: "z"}}, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			held := claimOf("held", "")
			held.Status.ReservedFor = c.reservedFor
			held.Status.Allocation = &resourceapi.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}},
				Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: "gadgets.test", Pool: "n1", Device: "d0"}}}}
			j, client := claimsJudge(t, claimOf("mine", ""), held)
			name := "held"
			ring := group(schedulingv1beta1.PodGroupResourceClaim{Name: "c", ResourceClaimName: &name})
			if c.constrained {
				ring.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{}
			}
			j.SetGroup(ring)
			if c.runs != "" {
				p := inRing("runs", corev1.PodResourceClaim{Name: "c", ResourceClaimName: &wanted}, "")
				p.Spec.SchedulingGroup.PodGroupName = &c.runs
				j.Assume(p, "n1")
			}
			end := j.Gang()
			trial, err := j.Begin(ctx, inRing("one", corev1.PodResourceClaim{Name: "c", ResourceClaimName: &name}, ""))
			if err != nil {
				t.Fatal(err)
			}
			if err := trial.Check(ctx, "n0"); err == nil {
				t.Fatal("the claim is of another node")
			}
			end()
			trial.GiveUp(ctx)
			got, err := client.ResourceV1().ResourceClaims("x").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if (got.Status.Allocation != nil) != c.kept {
				t.Errorf("the claim has allocation %v and is reserved for %v", got.Status.Allocation, got.Status.ReservedFor)
			}
		})
	}
}
