package host

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func groupObject(t *testing.T, version, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetAPIVersion("scheduling.k8s.io/" + version)
	u.SetKind("PodGroup")
	u.SetNamespace("default")
	u.SetName("ring")
	u.SetUID("ring-1")
	return roundTrip(t, u)
}

// roundTrip gives numbers the types that a client reads.
func roundTrip(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	data, err := u.MarshalJSON()
	out := &unstructured.Unstructured{}
	if err == nil {
		err = out.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReadGroup: what a PodGroup asks for, and how it says that it is scheduled, is read in each version that API servers serve.
func TestReadGroup(t *testing.T) {
	for name, c := range map[string]struct {
		version, text, condition string
		want                     podGroup
	}{
		"1.36: a string is the disruption mode, and the condition has its old name": {"v1alpha2", `
spec: {schedulingPolicy: {gang: {minCount: 4}}, disruptionMode: PodGroup}
status: {conditions: [{type: PodGroupScheduled, status: "True"}]}`,
			"PodGroupScheduled", podGroup{minCount: 4, whole: true, scheduled: true}},
		"1.36: one by one":            {"v1alpha2", `spec: {schedulingPolicy: {basic: {}}, disruptionMode: Pod}`, "PodGroupScheduled", podGroup{minCount: 1}},
		"1.37: all, in an alpha":      {"v1alpha3", `spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {all: {}}}`, "PodGroupInitiallyScheduled", podGroup{minCount: 2, whole: true}},
		"1.37: single":                {"v1beta1", `spec: {schedulingPolicy: {basic: {}}, disruptionMode: {single: {}}}`, "PodGroupInitiallyScheduled", podGroup{minCount: 1}},
		"the condition of an old one": {"v1beta1", `{spec: {}, status: {conditions: [{type: PodGroupScheduled, status: "True"}]}}`, "PodGroupInitiallyScheduled", podGroup{minCount: 1}},
		"a topology, a parent, a class and a policy": {"v1", `
spec:
  parentCompositePodGroupName: train
  schedulingPolicy: {gang: {minCount: 3}}
  schedulingConstraints: {topology: [{key: rack}]}
  priorityClassName: low
  priority: 0
  preemptionPolicy: Never
status: {conditions: [{type: PodGroupInitiallyScheduled, status: "False"}]}`,
			"PodGroupInitiallyScheduled", podGroup{minCount: 3, topologyKey: "rack", parent: "train", prioritized: true, policy: corev1.PreemptNever}},
		"a priority without a class":           {"v1beta1", `spec: {schedulingPolicy: {gang: {minCount: 3}}, priority: -7}`, "PodGroupInitiallyScheduled", podGroup{minCount: 3, prioritized: true, priority: -7}},
		"admission wrote 0 where none is said": {"v1beta1", `spec: {schedulingPolicy: {gang: {minCount: 3}}, priority: 0}`, "PodGroupInitiallyScheduled", podGroup{minCount: 3}},
	} {
		got := readGroup(groupObject(t, c.version, c.text))
		c.want.namespace, c.want.name, c.want.uid = "default", "ring", "ring-1"
		c.want.gvr, c.want.object = got.gvr, got.object
		if *got != c.want || got.gvr.Version != c.version || got.condition() != c.condition {
			t.Errorf("%s: %+v with condition %s, want %+v with %s", name, *got, got.condition(), c.want, c.condition)
		}
	}
}

// TestReadClaimsOfAGroup: the claims that a PodGroup lists, and the names of those that were made for it, are read in each version; what has another shape is passed
// over.
func TestReadClaimsOfAGroup(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha3", "v1alpha2"} {
		got := readGroup(groupObject(t, version, `
spec:
  schedulingConstraints: {topology: [{key: rack}]}
  resourceClaims: [{name: ring, resourceClaimName: one}, {name: 7}, {name: own, resourceClaimTemplateName: many}]
status: {resourceClaimStatuses: [{name: own, resourceClaimName: ring-own-x}]}`)).object
		claims, made := got.Spec.ResourceClaims, got.Status.ResourceClaimStatuses
		if len(claims) != 2 || claims[0].Name != "ring" || *claims[0].ResourceClaimName != "one" || claims[1].Name != "own" || *claims[1].ResourceClaimTemplateName != "many" {
			t.Errorf("%s: claims %+v", version, claims)
		}
		if len(made) != 1 || made[0].Name != "own" || *made[0].ResourceClaimName != "ring-own-x" || got.UID != "ring-1" || got.Name != "ring" || got.Spec.SchedulingConstraints == nil {
			t.Errorf("%s: the group %+v", version, got)
		}
	}
	if got := readGroup(groupObject(t, "v1", `spec: {}`)).object; got.Spec.ResourceClaims != nil || got.Spec.SchedulingConstraints != nil {
		t.Errorf("a group without claims: %+v", got)
	}
}

// TestTheGroupsPriority: the priority and the preemption policy of a PodGroup stand for those of its pods: for who takes, for who is taken, and in the queue,
// also where the group comes after its pods run.
func TestTheGroupsPriority(t *testing.T) {
	states := func(n int32) *podGroup {
		return &podGroup{namespace: "default", name: "ring", minCount: 2, prioritized: true, priority: n}
	}
	for name, c := range map[string]struct {
		low, high int32 // of the pods
		before    *podGroup
		after     *podGroup // where it comes once the pods run
		ring      bool      // the group preempts, and is not the victim
		want      []string
	}{
		"a victim by its own priority":                        {low: 1, high: 10, before: &podGroup{minCount: 2}, want: []string{"g0", "g1"}},
		"a victim by its group, though its pods stand higher": {low: 20, high: 10, before: states(1), want: []string{"g0", "g1"}},
		"no victim by its group, though its pods stand lower": {low: 1, high: 10, before: states(20)},
		"the group comes when the pods run":                   {low: 20, high: 10, before: &podGroup{minCount: 2}, after: states(1), want: []string{"g0", "g1"}},
		"it takes by its group":                               {low: 5, high: 1, before: states(10), ring: true, want: []string{"low-0", "low-1"}},
		"it does not take by its group":                       {low: 5, high: 10, before: states(1), ring: true},
		"it never takes":                                      {low: 5, high: 10, before: &podGroup{minCount: 2, policy: corev1.PreemptNever}, ring: true},
		"it takes, though its pods say never":                 {low: 5, high: -1, before: &podGroup{minCount: 2, prioritized: true, priority: 10, policy: corev1.PreemptLowerPriority}, ring: true, want: []string{"low-0", "low-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			evicted := p.taken()
			p.node("a", "4")
			p.node("b", "4")
			p.c.setGroup("default/ring", c.before)
			never := corev1.PreemptNever
			if c.ring {
				for _, n := range []string{"a", "b"} {
					p.runs(map[string]string{"a": "low-0", "b": "low-1"}[n], "3", n, online(c.low), on(n))
				}
				for _, n := range []string{"g0", "g1"} {
					p.pod(n, "3", inGroup("ring"), online(max(c.high, 0)), func(o *corev1.Pod) {
						if c.high < 0 {
							o.Spec.PreemptionPolicy = &never
						}
					})
				}
			} else {
				one, two := p.pod("g0", "3", inGroup("ring"), online(c.low)), p.pod("g1", "3", inGroup("ring"), online(c.low))
				p.settle()
				at := p.take()
				p.bound(one, at["g0"])
				p.bound(two, at["g1"])
				if c.after != nil {
					p.c.setGroup("default/ring", c.after)
				}
				p.pod("high", "3", online(c.high))
			}
			p.settle()
			slices.Sort(*evicted)
			if !slices.Equal(*evicted, c.want) {
				t.Errorf("evicted %v, want %v", *evicted, c.want)
			}
		})
	}
}

// TestDisruptionMode: of a group with disruptionMode all, no pod is taken alone, whatever its minimum; the others lose one pod while their minimum stays.
func TestDisruptionMode(t *testing.T) {
	for name, c := range map[string]struct {
		group podGroup
		want  []string
	}{
		"single":                    {podGroup{minCount: 2}, []string{"g2"}},
		"single, without a gang":    {podGroup{minCount: 1}, []string{"g2"}},
		"all":                       {podGroup{minCount: 2, whole: true}, []string{"g0", "g1", "g2"}},
		"all, without a gang":       {podGroup{minCount: 1, whole: true}, []string{"g0", "g1", "g2"}},
		"all, in one domain":        {podGroup{minCount: 1, whole: true, topologyKey: "rack"}, []string{"g0", "g1", "g2"}},
		"single, below its minimum": {podGroup{minCount: 3}, []string{"g0", "g1", "g2"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			evicted := p.taken()
			p.c.setGroup("default/ring", &c.group)
			var pods []*corev1.Pod
			for _, n := range []string{"0", "1", "2"} {
				p.node("n"+n, "4", func(n *corev1.Node) { n.Labels["rack"] = "r" })
			}
			for _, n := range []string{"0", "1", "2"} {
				pods = append(pods, p.pod("g"+n, "3", inGroup("ring"), online(1)))
			}
			p.settle()
			at := p.take()
			for i, o := range pods {
				started := *o
				p.bound(&started, at[pods[i].Name])
			}
			p.pod("high", "3", online(10), on(at["g2"]))
			p.settle()
			slices.Sort(*evicted)
			if !slices.Equal(*evicted, c.want) {
				t.Errorf("evicted %v, want %v", *evicted, c.want)
			}
		})
	}
}

// TestAGangIsNotTakenWhileOneIsBound: a gang that goes as a whole waits for the pod whose binding is under way, which would stay alone.
func TestAGangIsNotTakenWhileOneIsBound(t *testing.T) {
	for name, group := range map[string]podGroup{"all": {minCount: 2, whole: true}, "a minimum of all": {minCount: 3}, "all, without a gang": {minCount: 1, whole: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			evicted := p.taken()
			p.c.setGroup("default/ring", &group)
			var pods []*corev1.Pod
			for _, n := range []string{"0", "1", "2"} {
				p.node("n"+n, "4")
			}
			for _, n := range []string{"0", "1", "2"} {
				pods = append(pods, p.pod("g"+n, "3", inGroup("ring"), online(1)))
			}
			p.settle()
			at := p.take()
			p.bound(pods[1], at["g1"])
			p.bound(pods[2], at["g2"])
			p.pod("high", "3", online(10), on(at["g2"]))
			p.settle()
			if len(*evicted) != 0 {
				t.Fatalf("evicted %v while g0 is being bound", *evicted)
			}
			p.bound(pods[0], at["g0"])
			p.now = p.now.Add(time.Minute)
			p.c.tick(p.now)
			p.settle()
			slices.Sort(*evicted)
			if want := []string{"g0", "g1", "g2"}; !slices.Equal(*evicted, want) {
				t.Errorf("evicted %v, want %v", *evicted, want)
			}
		})
	}
}
