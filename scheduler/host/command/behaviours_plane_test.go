//go:build plane

package command_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	hostname = corev1.LabelHostname
	zones    = corev1.LabelTopologyZone
)

// times makes pods of one kind: name-0, name-1 and so on.
func times(n int, name string, options ...podOption) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range n {
		out = append(out, work(fmt.Sprintf("%s-%d", name, i), options...))
	}
	return out
}

// TestPlaneFilters plays what upstream's tests of filters cover (docs/scheduler-behaviours.md).
func TestPlaneFilters(t *testing.T) {
	two := []*corev1.Node{host("a", zone("z1"), labelled("disk", "ssd"), labelled("rank", "3")), host("b", zone("z2"), labelled("disk", "hdd"), labelled("rank", "7"))}
	inNamespaces := func(names ...string) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) { t.Namespaces = names }
	}
	inAll := func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{} }
	byOperator := func(op metav1.LabelSelectorOperator, values ...string) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) {
			t.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: op, Values: values}}}
		}
	}
	matching := func(keys ...string) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys = keys }
	}
	must := corev1.DoNotSchedule
	tolerated := func(op corev1.TolerationOperator, value string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: "dedicated", Operator: op, Value: value, Effect: effect}
	}
	playAll(t, []behaviour{
		{name: "affinity: the zone of a pod that matches", nodes: two, running: []*corev1.Pod{work("db", on("b"), with("app", "db"))},
			pods: []*corev1.Pod{work("p", near(term(zones, "app", "db")))}, want: map[string]string{"p": "b"}},
		{name: "affinity: none matches, then one comes", nodes: two, pods: []*corev1.Pod{work("p", near(term(zones, "app", "db")))}, want: map[string]string{"p": ""},
			then: func(k *kase) { k.pod(work("db", on("a"), with("app", "db"))) }, after: map[string]string{"p": "a"}},
		{name: "affinity: the first pod of a group that asks for itself", nodes: two, pods: times(3, "p", with("app", "x"), near(term(hostname, "app", "x"))),
			want: map[string]string{"p-0": "*"}, check: func(k *kase, at map[string]string) { k.are(map[string]string{"p-1": at["p-0"], "p-2": at["p-0"]}) }},
		{name: "affinity: all terms must hold", nodes: two, running: []*corev1.Pod{work("db", on("a"), with("app", "db")), work("web", on("b"), with("app", "web"))},
			pods: []*corev1.Pod{work("p", near(term(zones, "app", "db"), term(zones, "app", "web")))}, want: map[string]string{"p": ""}},
		{name: "affinity: operators In, NotIn, Exists and DoesNotExist", nodes: two, running: []*corev1.Pod{work("db", on("a"), with("app", "db")), work("plain", on("b"), with("tier", "x"))},
			pods: []*corev1.Pod{work("in", near(term(zones, "", "", byOperator(metav1.LabelSelectorOpIn, "db", "cache")))), work("exists", near(term(zones, "", "", byOperator(metav1.LabelSelectorOpExists)))),
				work("lacks", near(term(zones, "", "", byOperator(metav1.LabelSelectorOpDoesNotExist)))), work("not", with("app", "none"), apart(term(zones, "", "", byOperator(metav1.LabelSelectorOpIn, "db"))))},
			want: map[string]string{"in": "a", "exists": "a", "lacks": "*", "not": "b"}},
		{name: "affinity: other namespaces do not count", nodes: two, running: []*corev1.Pod{work("db", on("b"), with("app", "db"))},
			pods: []*corev1.Pod{work("p", near(term(zones, "app", "db", inNamespaces("elsewhere"))))}, want: map[string]string{"p": ""}},
		{name: "affinity: a namespace selector", nodes: two, running: []*corev1.Pod{work("db", on("b"), with("app", "near-here"))},
			pods: []*corev1.Pod{work("p", near(term(zones, "app", "near-here", inAll)))}, want: map[string]string{"p": "b"}},
		{name: "affinity: matchLabelKeys", nodes: two, running: []*corev1.Pod{work("old", on("a"), with("app", "db"), with("rev", "1")), work("new", on("b"), with("app", "db"), with("rev", "2"))},
			pods: []*corev1.Pod{work("p", with("rev", "2"), near(term(zones, "app", "db", matching("rev"))))}, want: map[string]string{"p": "b"}},
		{name: "anti-affinity: not where one that matches is", nodes: two, running: []*corev1.Pod{work("db", on("a"), with("app", "db"))},
			pods: []*corev1.Pod{work("p", apart(term(zones, "app", "db")))}, want: map[string]string{"p": "b"}},
		{name: "anti-affinity: of the pod that runs", nodes: two, running: []*corev1.Pod{work("shy", on("b"), apart(term(zones, "app", "loud")))},
			pods: []*corev1.Pod{work("p", with("app", "loud"))}, want: map[string]string{"p": "a"}},
		{name: "anti-affinity: one on each node, and no more", nodes: two, pods: times(3, "p", with("app", "x"), apart(term(hostname, "app", "x"))),
			want: map[string]string{"p-0": "*", "p-1": "*", "p-2": ""}},
		{name: "anti-affinity: a namespace selector", nodes: two, running: []*corev1.Pod{work("db", on("a"), with("app", "not-here"))},
			pods: []*corev1.Pod{work("p", apart(term(zones, "app", "not-here", inAll)))}, want: map[string]string{"p": "b"}},
		{name: "affinity and anti-affinity together", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z1"))}, running: []*corev1.Pod{work("db", on("a"), with("app", "db"))},
			pods: []*corev1.Pod{work("p", near(term(zones, "app", "db")), apart(term(hostname, "app", "db")))}, want: map[string]string{"p": "b"}},

		{name: "taints: NoSchedule keeps off", nodes: []*corev1.Node{host("a", tainted("dedicated", "x", corev1.TaintEffectNoSchedule))}, pods: []*corev1.Pod{work("p"), work("equal", tolerates(tolerated(corev1.TolerationOpEqual, "x", corev1.TaintEffectNoSchedule))),
			work("other", tolerates(tolerated(corev1.TolerationOpEqual, "y", corev1.TaintEffectNoSchedule))), work("exists", tolerates(tolerated(corev1.TolerationOpExists, "", ""))), work("all", tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists}))},
			want: map[string]string{"p": "", "equal": "a", "other": "", "exists": "a", "all": "a"}},
		{name: "taints: NoExecute keeps off, and an effect must match", nodes: []*corev1.Node{host("a", tainted("dedicated", "x", corev1.TaintEffectNoExecute))}, pods: []*corev1.Pod{work("p"),
			work("wrong", tolerates(tolerated(corev1.TolerationOpExists, "", corev1.TaintEffectNoSchedule))), work("right", tolerates(tolerated(corev1.TolerationOpExists, "", corev1.TaintEffectNoExecute)))},
			want: map[string]string{"p": "", "wrong": "", "right": "a"}},
		{name: "taints: PreferNoSchedule does not keep off", nodes: []*corev1.Node{host("a", tainted("dedicated", "x", corev1.TaintEffectPreferNoSchedule))}, pods: []*corev1.Pod{work("p")}, want: map[string]string{"p": "a"}},
		{name: "taints: all must be tolerated", nodes: []*corev1.Node{host("a", tainted("dedicated", "x", corev1.TaintEffectNoSchedule), tainted("more", "", corev1.TaintEffectNoSchedule))},
			pods: []*corev1.Pod{work("p", tolerates(tolerated(corev1.TolerationOpExists, "", "")))}, want: map[string]string{"p": ""}},
		{name: "taints: Gt and Lt", nodes: []*corev1.Node{host("a", tainted("dedicated", "3", corev1.TaintEffectNoSchedule)), host("b", tainted("dedicated", "7", corev1.TaintEffectNoSchedule))},
			pods: []*corev1.Pod{work("more", tolerates(tolerated(corev1.TolerationOpGt, "5", corev1.TaintEffectNoSchedule))), work("less", tolerates(tolerated(corev1.TolerationOpLt, "5", corev1.TaintEffectNoSchedule))),
				work("none", tolerates(tolerated(corev1.TolerationOpGt, "7", corev1.TaintEffectNoSchedule)))}, want: map[string]string{"more": "b", "less": "a", "none": ""}},
		{name: "taints: a cordoned node, and who tolerates it", nodes: []*corev1.Node{host("a", cordoned)}, pods: []*corev1.Pod{work("p"),
			work("daemon", tolerates(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}))}, want: map[string]string{"p": "", "daemon": "a"}},

		{name: "spread: over zones by skew", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"))}, running: []*corev1.Pod{work("r", on("a"), with("app", "x"))},
			pods: []*corev1.Pod{work("p", spread(zones, 1, must))}, want: map[string]string{"p": "b"}},
		{name: "spread: no domain keeps the skew", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"), holds(corev1.ResourceCPU, "1"))}, running: []*corev1.Pod{work("r", on("a"), with("app", "x"))},
			pods: []*corev1.Pod{work("p", cores("2"), spread(zones, 1, must))}, want: map[string]string{"p": ""}},
		{name: "spread: two constraints", nodes: []*corev1.Node{host("a1", zone("z1")), host("a2", zone("z1")), host("b1", zone("z2")), host("b2", zone("z2"))},
			running: []*corev1.Pod{work("r1", on("a1"), with("app", "x")), work("r2", on("b1"), with("app", "x")), work("r3", on("b2"), with("app", "x"))},
			pods:    []*corev1.Pod{work("p", spread(zones, 1, must), spread(hostname, 1, must))}, want: map[string]string{"p": "a2"}},
		{name: "spread: minDomains", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"))}, running: []*corev1.Pod{work("r1", on("a"), with("app", "x")), work("r2", on("b"), with("app", "x"))},
			pods: []*corev1.Pod{work("p", spread(zones, 1, must, func(c *corev1.TopologySpreadConstraint) { three := int32(3); c.MinDomains = &three }))}, want: map[string]string{"p": ""}},
		{name: "spread: tainted nodes are honoured or ignored", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"), tainted("dedicated", "x", corev1.TaintEffectNoSchedule))},
			running: []*corev1.Pod{work("r", on("a"), with("app", "x"))}, pods: []*corev1.Pod{
				work("ignored", spread(zones, 1, must)),
				work("honoured", spread(zones, 1, must, func(c *corev1.TopologySpreadConstraint) {
					h := corev1.NodeInclusionPolicyHonor
					c.NodeTaintsPolicy = &h
				}))},
			want: map[string]string{"ignored": "", "honoured": "a"}},
		{name: "spread: a node without the key is out", nodes: []*corev1.Node{host("a"), host("b", zone("z2"))}, pods: []*corev1.Pod{work("p", spread(zones, 1, must))}, want: map[string]string{"p": "b"}},
		{name: "spread: matchLabelKeys", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"))}, running: []*corev1.Pod{work("old", on("b"), with("app", "x"), with("rev", "1")), work("new", on("a"), with("app", "x"), with("rev", "2"))},
			pods: []*corev1.Pod{work("p", with("rev", "2"), spread(zones, 1, must, func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"rev"} }))}, want: map[string]string{"p": "b"}},

		{name: "host ports: taken on one node", nodes: []*corev1.Node{host("a"), host("b")}, running: []*corev1.Pod{work("r", on("a"), port(8080, corev1.ProtocolTCP, ""))},
			pods: []*corev1.Pod{work("p", port(8080, corev1.ProtocolTCP, "")), work("more", port(8080, corev1.ProtocolTCP, ""))}, want: map[string]string{"p": "b", "more": ""}},
		{name: "host ports: protocol and address", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("r", on("a"), port(8080, corev1.ProtocolTCP, "127.0.0.1"))},
			pods: []*corev1.Pod{work("udp", port(8080, corev1.ProtocolUDP, "127.0.0.1")), work("address", port(8080, corev1.ProtocolTCP, "127.0.0.2")), work("all", port(8080, corev1.ProtocolTCP, "0.0.0.0"))},
			want: map[string]string{"udp": "a", "address": "a", "all": ""}},

		{name: "resources: CPU, memory, ephemeral storage and pods", nodes: []*corev1.Node{host("a", holds(corev1.ResourceEphemeralStorage, "10Gi"), holds(corev1.ResourcePods, "3"))}, pods: []*corev1.Pod{
			work("cpu", cores("5")), work("memory", asks(corev1.ResourceMemory, "9Gi")), work("disk", asks(corev1.ResourceEphemeralStorage, "11Gi")),
			work("p0", cores("1")), work("p1", cores("1")), work("p2", cores("1")), work("p3", cores("1"))},
			want: map[string]string{"cpu": "", "memory": "", "disk": "", "p0": "a", "p1": "a", "p2": "a", "p3": ""}},
		{name: "resources: extended ones", nodes: []*corev1.Node{host("a"), host("b", holds("example.com/fpga", "1"))}, pods: []*corev1.Pod{work("p", asks("example.com/fpga", "1")), work("more", asks("example.com/fpga", "1"))},
			want: map[string]string{"p": "b", "more": ""}},
		{name: "resources: init containers and sidecars", nodes: []*corev1.Node{host("a")}, pods: []*corev1.Pod{
			work("init", cores("1"), func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{container("init", "5", false)} }),
			work("side", cores("3"), func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{container("side", "2", true)} }),
			work("fits", cores("3"), func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{container("init", "4", false)} })},
			want: map[string]string{"init": "", "side": "", "fits": "a"}},
		{name: "resources: of the pod as a whole", nodes: []*corev1.Node{host("a")}, pods: []*corev1.Pod{
			work("large", func(p *corev1.Pod) {
				p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}}
			}),
			work("fits", func(p *corev1.Pod) {
				p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}
			})}, want: map[string]string{"large": "", "fits": "a"}},

		{name: "node affinity: a selector", nodes: two, pods: []*corev1.Pod{work("p", selects("disk", "ssd")), work("none", selects("disk", "tape"))}, want: map[string]string{"p": "a", "none": ""}},
		{name: "node affinity: operators", nodes: two, pods: []*corev1.Pod{work("in", nodeTerms(expression("disk", corev1.NodeSelectorOpIn, "ssd", "nvme"))), work("not", nodeTerms(expression("disk", corev1.NodeSelectorOpNotIn, "ssd"))),
			work("exists", nodeTerms(expression("tape", corev1.NodeSelectorOpExists))), work("lacks", nodeTerms(expression("tape", corev1.NodeSelectorOpDoesNotExist))),
			work("gt", nodeTerms(expression("rank", corev1.NodeSelectorOpGt, "5"))), work("lt", nodeTerms(expression("rank", corev1.NodeSelectorOpLt, "5")))},
			want: map[string]string{"in": "a", "not": "b", "exists": "", "lacks": "*", "gt": "b", "lt": "a"}},
		{name: "node affinity: one of several terms, all of a term's requirements", nodes: two, pods: []*corev1.Pod{
			work("or", nodeTerms(expression("disk", corev1.NodeSelectorOpIn, "tape"), expression("disk", corev1.NodeSelectorOpIn, "hdd"))),
			work("and", nodeTerms(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}, {Key: "rank", Operator: corev1.NodeSelectorOpGt, Values: []string{"5"}}}})),
			work("both", selects("disk", "ssd"), nodeTerms(expression("rank", corev1.NodeSelectorOpGt, "5")))}, want: map[string]string{"or": "b", "and": "", "both": ""}},
		{name: "node affinity: a field names the node", nodes: two, pods: []*corev1.Pod{work("p", nodeTerms(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}}))},
			want: map[string]string{"p": "b"}},

		{name: "nominated by another scheduler: its room is held", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) {
			k.pod(work("foreign", cores("3"), func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }))
			patch := fmt.Appendf(nil, `{"status":{"nominatedNodeName":%q}}`, k.id+".a")
			if _, err := k.api.CoreV1().Pods(k.ns).Patch(k.t.Context(), "foreign", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				k.t.Fatal(err)
			}
		}, pods: []*corev1.Pod{work("p", cores("3"))}, want: map[string]string{"p": ""}, then: func(k *kase) { k.delete("foreign") }, after: map[string]string{"p": "a"}},
		{name: "nominated by another component: the node is tried first", nodes: two, pods: []*corev1.Pod{work("p", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} })},
			then: func(k *kase) {
				patch := fmt.Appendf(nil, `{"status":{"nominatedNodeName":%q}}`, k.id+".b")
				if _, err := k.api.CoreV1().Pods(k.ns).Patch(k.t.Context(), "p", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
					k.t.Fatal(err)
				}
				k.patchPod("p", `{"spec":{"schedulingGates":null}}`)
			}, after: map[string]string{"p": "b"}},
		{name: "other schedulers' pods are left alone", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) {
			k.pod(work("foreign", func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }))
		}, pods: []*corev1.Pod{work("p")}, want: map[string]string{"p": "a"}, check: func(k *kase, _ map[string]string) {
			if p := k.get("foreign"); p.Spec.NodeName != "" || condition(p) != nil {
				k.t.Errorf("the pod of another scheduler is on %q with condition %v", p.Spec.NodeName, condition(p))
			}
		}},
	})
}

// container is an init container, or a sidecar.
func container(name, cpu string, sidecar bool) corev1.Container {
	c := corev1.Container{Name: name, Image: "registry.example/app:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
	if sidecar {
		always := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
	}
	return c
}

func (k *kase) get(name string) *corev1.Pod {
	k.t.Helper()
	p, err := k.api.CoreV1().Pods(k.ns).Get(k.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

func (k *kase) delete(name string) {
	k.t.Helper()
	if err := k.api.CoreV1().Pods(k.ns).Delete(k.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// patchNode and patchPod change one object by a patch.
func (k *kase) patchNode(name, patch string, sub ...string) {
	k.t.Helper()
	if _, err := k.api.CoreV1().Nodes().Patch(k.t.Context(), k.id+"."+name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kase) patchPod(name, patch string, sub ...string) {
	k.t.Helper()
	if _, err := k.api.CoreV1().Pods(k.ns).Patch(k.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, sub...); err != nil {
		k.t.Fatal(err)
	}
}

// TestPlaneScoring plays what upstream's tests of scoring cover.
func TestPlaneScoring(t *testing.T) {
	anyway := corev1.ScheduleAnyway
	playAll(t, []behaviour{
		{name: "resources: the emptier node", nodes: []*corev1.Node{host("a"), host("b")}, running: []*corev1.Pod{work("r", on("a"), cores("3"))}, pods: []*corev1.Pod{work("p", cores("500m"))}, want: map[string]string{"p": "b"}},
		{name: "node affinity: the preferred node, by weight", nodes: []*corev1.Node{host("a", labelled("disk", "ssd")), host("b", labelled("disk", "hdd")), host("c")}, pods: []*corev1.Pod{
			work("p", prefersNode(10, expression("disk", corev1.NodeSelectorOpIn, "hdd")), prefersNode(1, expression("disk", corev1.NodeSelectorOpIn, "ssd")))}, want: map[string]string{"p": "b"}},
		{name: "pod affinity: near the preferred pod", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"))}, running: []*corev1.Pod{work("r", on("b"), with("app", "db"))},
			pods: []*corev1.Pod{work("p", prefersNear(term(zones, "app", "db")))}, want: map[string]string{"p": "b"}},
		{name: "pod anti-affinity: away from it", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"))}, running: []*corev1.Pod{work("r", on("a"), with("app", "db"))},
			pods: []*corev1.Pod{work("p", prefersApart(term(zones, "app", "db")))}, want: map[string]string{"p": "b"}},
		{name: "a pod that runs prefers to stand apart", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"))}, running: []*corev1.Pod{work("r", on("a"), prefersApart(term(zones, "app", "web"))), work("w", on("b"), cores("3"))},
			pods: []*corev1.Pod{work("p", with("app", "web"))}, want: map[string]string{"p": "b"}},
		{name: "a pod that runs prefers company", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"))}, running: []*corev1.Pod{work("r", on("b"), cores("3"), prefersNear(term(zones, "app", "web")))},
			pods: []*corev1.Pod{work("p", with("app", "web"))}, want: map[string]string{"p": "b"}},
		{name: "taints: PreferNoSchedule is avoided", nodes: []*corev1.Node{host("a", tainted("k", "v", corev1.TaintEffectPreferNoSchedule)), host("b")}, running: []*corev1.Pod{work("r", on("b"), cores("1"))},
			pods: []*corev1.Pod{work("p"), work("tolerant", tolerates(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectPreferNoSchedule}))}, want: map[string]string{"p": "b", "tolerant": "*"}},
		{name: "spread: the emptier zone, where it need not be", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"))}, running: []*corev1.Pod{work("r1", on("a"), with("app", "x")), work("r2", on("a"), with("app", "x"))},
			pods: []*corev1.Pod{work("p", spread(zones, 1, anyway))}, want: map[string]string{"p": "b"}},
		{name: "spread: a preference gives way", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"), holds(corev1.ResourceCPU, "1"))}, running: []*corev1.Pod{work("r", on("a"), with("app", "x"))},
			pods: []*corev1.Pod{work("p", cores("2"), spread(zones, 1, anyway))}, want: map[string]string{"p": "a"}},
	})
}

// classes makes the priority classes of the cases.
func classes(t *testing.T, c *cluster) {
	never := corev1.PreemptNever
	for _, x := range []*schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 100}, {ObjectMeta: metav1.ObjectMeta{Name: "medium"}, Value: 200},
		{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 300}, {ObjectMeta: metav1.ObjectMeta{Name: "polite"}, Value: 300, PreemptionPolicy: &never}} {
		if _, err := c.api.SchedulingV1().PriorityClasses().Create(t.Context(), x, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// gone waits until pods are evicted.
func (k *kase) gone(names ...string) {
	k.t.Helper()
	for _, name := range names {
		k.poll("pod "+name+" is evicted", func(ctx context.Context) (bool, error) {
			p, err := k.api.CoreV1().Pods(k.ns).Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err) || err == nil && p.DeletionTimestamp != nil, nil
		})
	}
}

// lingers keeps a pod that is deleted there until the finalizer is taken away.
func lingers(p *corev1.Pod) { p.Finalizers = []string{"springtide.dev/test"} }

// nominated waits until a pod is nominated for a node.
func (k *kase) nominated(pod, node string) {
	k.t.Helper()
	k.poll("pod "+pod+" is nominated", func(context.Context) (bool, error) {
		p := k.get(pod)
		if p.Spec.NodeName != "" {
			return false, fmt.Errorf("it is bound to %s", p.Spec.NodeName)
		}
		return p.Status.NominatedNodeName == k.id+"."+node, nil
	})
}

// stays checks that pods run, undisturbed.
func (k *kase) stays(names ...string) {
	k.t.Helper()
	for _, name := range names {
		if p := k.get(name); p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
			k.t.Errorf("pod %s was taken", name)
		}
	}
}

// pdb protects the pods with a label.
func (k *kase) pdb(key, value string, available int) {
	k.t.Helper()
	least := intstr.FromInt32(int32(available))
	o := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "pdb-" + value}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}}
	if _, err := k.api.PolicyV1().PodDisruptionBudgets(k.ns).Create(k.t.Context(), o, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// evictions are the requests that a guard looks at.
func evictions() admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}}}
}

// deny has an admission policy deny evictions of one pod, and waits until the API server knows it.
func (k *kase) deny(pod string) {
	name := "deny-" + k.ns
	if _, err := k.api.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(k.t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: evictions()}}},
			Validations:      []admissionv1.Validation{{Expression: fmt.Sprintf("request.namespace != %q || request.name != %q", k.ns, pod), Message: "it is kept"}}}}, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.api.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(k.t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		_ = k.api.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
		_ = k.api.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	k.guarded(pod)
}

// silence has a webhook without a server look at evictions of one pod.
func (k *kase) silence(pod string) {
	name := "silent-" + k.ns
	fail, none, url := admissionv1.Fail, admissionv1.SideEffectClassNone, "https://127.0.0.1:1/"
	if _, err := k.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(k.t.Context(), &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionv1.ValidatingWebhook{{Name: "silent.example.com", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, Rules: []admissionv1.RuleWithOperations{evictions()},
			MatchConditions: []admissionv1.MatchCondition{{Name: "one", Expression: fmt.Sprintf("request.namespace == %q && request.name == %q", k.ns, pod)}}}}}, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		_ = k.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	k.guarded(pod)
}

// guarded waits until evictions of a pod are denied, though the pod is still to be made.
func (k *kase) guarded(pod string) {
	k.poll("the guard of pod "+pod, func(ctx context.Context) (bool, error) {
		err := k.api.PolicyV1().Evictions(k.ns).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: k.ns, Name: pod},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
		return err != nil && !apierrors.IsNotFound(err), nil
	})
}

// TestPlanePreemption plays what upstream's tests of preemption cover.
func TestPlanePreemption(t *testing.T) {
	classes(t, connect(t))
	playAll(t, []behaviour{
		{name: "the lower pod goes, and its place is held", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("low", on("a"), of("low"), cores("3"))}, pods: []*corev1.Pod{work("high", of("high"), cores("3"))},
			want: map[string]string{"high": "a"}, check: func(k *kase, _ map[string]string) { k.gone("low") }},
		{name: "as few as possible, of the lowest priority", nodes: []*corev1.Node{host("a"), host("b")}, running: []*corev1.Pod{work("low-1", on("a"), of("low"), cores("2")), work("low-2", on("a"), of("low"), cores("2")), work("medium", on("b"), of("medium"), cores("4"))},
			pods: []*corev1.Pod{work("high", of("high"), cores("2"))}, want: map[string]string{"high": "a"}, check: func(k *kase, _ map[string]string) {
				k.stays("medium")
				left := 0
				for _, name := range []string{"low-1", "low-2"} {
					if p, err := k.api.CoreV1().Pods(k.ns).Get(k.t.Context(), name, metav1.GetOptions{}); err == nil && p.DeletionTimestamp == nil {
						left++
					}
				}
				if left != 1 {
					k.t.Errorf("%d of two low pods are left, want one", left)
				}
			}},
		{name: "not among equals", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("r", on("a"), of("high"), cores("3"))}, pods: []*corev1.Pod{work("p", of("high"), cores("3"))},
			want: map[string]string{"p": ""}, check: func(k *kase, _ map[string]string) { k.stays("r") }},
		{name: "not in vain", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("low", on("a"), of("low"), cores("1"))}, pods: []*corev1.Pod{work("p", of("high"), cores("5"))},
			want: map[string]string{"p": ""}, check: func(k *kase, _ map[string]string) { k.stays("low") }},
		{name: "not on nodes that the pod may not use", nodes: []*corev1.Node{host("a", labelled("disk", "ssd")), host("b", tainted("k", "v", corev1.TaintEffectNoSchedule))}, running: []*corev1.Pod{work("low", on("b"), of("low"), cores("4")), work("same", on("a"), of("high"), cores("4"))},
			pods: []*corev1.Pod{work("p", of("high"), cores("3"))}, want: map[string]string{"p": ""}, check: func(k *kase, _ map[string]string) { k.stays("low", "same") }},
		{name: "a policy of Never", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("low", on("a"), of("low"), cores("3"))}, pods: []*corev1.Pod{work("p", of("polite"), cores("3"))},
			want: map[string]string{"p": ""}, check: func(k *kase, _ map[string]string) { k.stays("low") }},
		{name: "host ports that lower pods have", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("low", on("a"), of("low"), port(80, corev1.ProtocolTCP, "")), work("other", on("a"), of("low"))},
			pods: []*corev1.Pod{work("high", of("high"), port(80, corev1.ProtocolTCP, ""))}, want: map[string]string{"high": "a"}, check: func(k *kase, _ map[string]string) { k.gone("low"); k.stays("other") }},
		{name: "the anti-affinity of a lower pod, though there is room", nodes: []*corev1.Node{host("a", zone("z1"))}, running: []*corev1.Pod{work("shy", on("a"), of("low"), apart(term(zones, "app", "loud"))), work("other", on("a"), of("low"))},
			pods: []*corev1.Pod{work("high", of("high"), with("app", "loud"))}, want: map[string]string{"high": "a"}, check: func(k *kase, _ map[string]string) { k.gone("shy"); k.stays("other") }},
		{name: "the pod's own anti-affinity to a lower pod", nodes: []*corev1.Node{host("a", zone("z1"))}, running: []*corev1.Pod{work("low", on("a"), of("low"), with("app", "x")), work("other", on("a"), of("low"))},
			pods: []*corev1.Pod{work("high", of("high"), apart(term(zones, "app", "x")))}, want: map[string]string{"high": "a"}, check: func(k *kase, _ map[string]string) { k.gone("low"); k.stays("other") }},
		{name: "skew that lower pods make", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"), holds(corev1.ResourceCPU, "1"))}, running: []*corev1.Pod{work("low", on("a"), of("low"), with("app", "x"))},
			pods: []*corev1.Pod{work("high", of("high"), cores("2"), spread(zones, 1, corev1.DoNotSchedule))}, want: map[string]string{"high": "a"}, check: func(k *kase, _ map[string]string) { k.gone("low") }},
		{name: "a budget is kept where another node does without", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.pdb("app", "kept", 1) },
			running: []*corev1.Pod{work("kept", on("a"), of("low"), with("app", "kept"), cores("3")), work("free", on("b"), of("medium"), cores("3"))},
			pods:    []*corev1.Pod{work("high", of("high"), cores("3"))}, want: map[string]string{"high": "b"}, check: func(k *kase, _ map[string]string) { k.gone("free"); k.stays("kept") }},
		{name: "two budgets: the API server refuses, and another pod goes", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.pdb("app", "one", 0); k.pdb("team", "two", 0) },
			running: []*corev1.Pod{work("kept", on("a"), of("low"), with("app", "one"), with("team", "two"), cores("3")), work("free", on("b"), of("medium"), cores("3"))},
			pods:    []*corev1.Pod{work("high", of("high"), cores("3"))}, want: map[string]string{"high": "b"}, check: func(k *kase, _ map[string]string) { k.gone("free"); k.stays("kept") }},
		{name: "an admission policy denies, and another pod goes", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.deny("kept") },
			running: []*corev1.Pod{work("kept", on("a"), of("low"), cores("3")), work("free", on("b"), of("medium"), cores("3"))},
			pods:    []*corev1.Pod{work("high", of("high"), cores("3"))}, want: map[string]string{"high": "b"}, check: func(k *kase, _ map[string]string) { k.gone("free"); k.stays("kept") }},
		{name: "a webhook does not answer, and another pod goes", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.silence("kept") },
			running: []*corev1.Pod{work("kept", on("a"), of("low"), cores("3")), work("free", on("b"), of("medium"), cores("3"))},
			pods:    []*corev1.Pod{work("high", of("high"), cores("3"))}, want: map[string]string{"high": "b"}, check: func(k *kase, _ map[string]string) { k.gone("free"); k.stays("kept") }},
		{name: "the lower of two that wait does not take the place of the higher", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("low", on("a"), of("low"), cores("4"))},
			pods: []*corev1.Pod{work("high", of("high"), cores("3")), work("medium", of("medium"), cores("3"))}, want: map[string]string{"high": "a", "medium": ""}},
		{name: "the nominated node stands in the status", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("low", on("a"), of("low"), cores("3"), func(p *corev1.Pod) {
			p.Finalizers = []string{"springtide.dev/test"}
		})}, objects: nil, pods: []*corev1.Pod{work("high", of("high"), cores("3"))}, want: map[string]string{}, check: func(k *kase, _ map[string]string) {
			k.poll("pod high is nominated", func(context.Context) (bool, error) { return k.get("high").Status.NominatedNodeName == k.id+".a", nil })
			if p := k.get("high"); p.Spec.NodeName != "" {
				k.t.Error("it is bound while its victim is there")
			}
		}, then: func(k *kase) { k.patchPod("low", `{"metadata":{"finalizers":null}}`) }, after: map[string]string{"high": "a"}},
		{name: "a pod of higher priority takes what is free next to one that waits", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("low", on("a"), of("low"), cores("3"), lingers)},
			pods: []*corev1.Pod{work("medium", of("medium"), cores("4"))}, then: func(k *kase) {
				k.nominated("medium", "a")
				k.pod(work("high", of("high"), cores("500m")))
			}, after: map[string]string{"high": "a"}},
		{name: "a pod of higher priority takes what is free next to one whose victim a budget keeps", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) { k.pdb("app", "kept", 1) },
			running: []*corev1.Pod{work("kept", on("a"), of("low"), with("app", "kept"), cores("3"))}, then: func(k *kase) {
				// No budget keeps a pod that is Pending.
				kept := k.get("kept")
				kept.Status.Phase = corev1.PodRunning
				kept.Status.Conditions = append(kept.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
				if _, err := k.api.CoreV1().Pods(k.ns).UpdateStatus(k.t.Context(), kept, metav1.UpdateOptions{}); err != nil {
					k.t.Fatal(err)
				}
				k.poll("the budget counts pod kept", func(ctx context.Context) (bool, error) {
					b, err := k.api.PolicyV1().PodDisruptionBudgets(k.ns).Get(ctx, "pdb-kept", metav1.GetOptions{})
					return err == nil && b.Status.CurrentHealthy == 1 && b.Status.DisruptionsAllowed == 0, err
				})
				k.pod(work("medium", of("medium"), cores("4")))
				k.poll("pod medium waits", func(context.Context) (bool, error) { return unschedulable(k.get("medium")), nil })
				k.pod(work("high", of("high"), cores("500m")))
			}, after: map[string]string{"high": "a", "medium": ""}},
		{name: "a pod of higher priority has the room that is to come", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("low", on("a"), of("low"), cores("4"), lingers)},
			pods: []*corev1.Pod{work("medium", of("medium"), cores("4"))}, then: func(k *kase) {
				k.nominated("medium", "a")
				k.pod(work("high", of("high"), cores("4")))
				k.nominated("high", "a")
				k.patchPod("low", `{"metadata":{"finalizers":null}}`)
			}, after: map[string]string{"high": "a", "medium": ""}},
		{name: "one victim is enough for three pods", nodes: []*corev1.Node{host("a"), host("b")},
			running: []*corev1.Pod{work("low-a", on("a"), of("low"), cores("4"), lingers), work("low-b", on("b"), of("low"), cores("4"), lingers)},
			pods:    []*corev1.Pod{work("high-1", of("high"), cores("1")), work("high-2", of("high"), cores("1")), work("high-3", of("high"), cores("1"))}, then: func(k *kase) {
				for _, name := range []string{"high-1", "high-2", "high-3"} {
					k.nominated(name, "a")
				}
				k.stays("low-b")
				k.patchPod("low-a", `{"metadata":{"finalizers":null}}`)
			}, after: map[string]string{"high-1": "a", "high-2": "a", "high-3": "a"}},
		{name: "a pod that is deleted is room to come", nodes: []*corev1.Node{host("a"), host("b")},
			running: []*corev1.Pod{work("old", on("a"), of("high"), cores("4"), lingers), work("low", on("b"), of("low"), cores("4"))}, then: func(k *kase) {
				k.delete("old")
				k.pod(work("high", of("high"), cores("4")))
				k.nominated("high", "a")
				k.stays("low")
				k.patchPod("old", `{"metadata":{"finalizers":null}}`)
			}, after: map[string]string{"high": "a"}},
		{name: "the node of a nomination is deleted", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("low", on("a"), of("low"), cores("4"), lingers)},
			pods: []*corev1.Pod{work("high", of("high"), cores("4"))}, then: func(k *kase) {
				k.nominated("high", "a")
				if err := k.api.CoreV1().Nodes().Delete(k.t.Context(), k.id+".a", metav1.DeleteOptions{}); err != nil {
					k.t.Fatal(err)
				}
				k.node(host("b"))
			}, after: map[string]string{"high": "b"}},
		{name: "a new node is better than a victim that does not go", nodes: []*corev1.Node{host("a")}, running: []*corev1.Pod{work("low", on("a"), of("low"), cores("4"), lingers)},
			pods: []*corev1.Pod{work("high", of("high"), cores("4"))}, then: func(k *kase) {
				k.nominated("high", "a")
				k.node(host("b"))
			}, after: map[string]string{"high": "b"}},
		{name: "priority classes give the priority", nodes: []*corev1.Node{host("a")}, pods: []*corev1.Pod{work("p", of("medium"))}, want: map[string]string{"p": "a"}, check: func(k *kase, _ map[string]string) {
			if p := k.get("p"); p.Spec.Priority == nil || *p.Spec.Priority != 200 {
				k.t.Errorf("priority %v", p.Spec.Priority)
			}
		}},
	})
}

// TestPlaneQueueing plays what upstream's tests of queueing cover: which events help which pods that wait.
func TestPlaneQueueing(t *testing.T) {
	waits := map[string]string{"p": ""}
	placed := map[string]string{"p": "a"}
	one := []*corev1.Node{host("a", zone("z1"))}
	playAll(t, []behaviour{
		{name: "scheduling gates", nodes: one, pods: []*corev1.Pod{work("p", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} }), work("free")}, want: map[string]string{"free": "a"},
			check: func(k *kase, _ map[string]string) {
				if p := k.get("p"); p.Spec.NodeName != "" || condition(p) == nil || condition(p).Reason != corev1.PodReasonSchedulingGated {
					k.t.Errorf("the gated pod is on %q with condition %+v", p.Spec.NodeName, condition(p))
				}
			}, then: func(k *kase) { k.patchPod("p", `{"spec":{"schedulingGates":null}}`) }, after: placed},
		{name: "a node is added", nodes: []*corev1.Node{host("b")}, pods: []*corev1.Pod{work("p", selects("disk", "ssd"))}, want: waits, then: func(k *kase) { k.node(host("a", labelled("disk", "ssd"))) }, after: placed},
		{name: "a node gets the label", nodes: one, pods: []*corev1.Pod{work("p", selects("disk", "ssd"))}, want: waits, then: func(k *kase) { k.patchNode("a", `{"metadata":{"labels":{"disk":"ssd"}}}`) }, after: placed},
		{name: "a taint is taken away", nodes: []*corev1.Node{host("a", tainted("k", "v", corev1.TaintEffectNoSchedule))}, pods: []*corev1.Pod{work("p")}, want: waits, then: func(k *kase) { k.patchNode("a", `{"spec":{"taints":null}}`) }, after: placed},
		{name: "a node is uncordoned", nodes: []*corev1.Node{host("a", cordoned)}, pods: []*corev1.Pod{work("p")}, want: waits, then: func(k *kase) { k.patchNode("a", `{"spec":{"unschedulable":null,"taints":null}}`) }, after: placed},
		{name: "a node has more to give", nodes: one, pods: []*corev1.Pod{work("p", asks("example.com/fpga", "1"))}, want: waits, then: func(k *kase) {
			k.patchNode("a", `{"status":{"capacity":{"example.com/fpga":"1"},"allocatable":{"example.com/fpga":"1"}}}`, "status")
		}, after: placed},
		{name: "a pod is deleted", nodes: one, running: []*corev1.Pod{work("r", on("a"), cores("3"))}, pods: []*corev1.Pod{work("p", cores("3"))}, want: waits, then: func(k *kase) { k.delete("r") }, after: placed},
		{name: "a pod with a host port is deleted", nodes: one, running: []*corev1.Pod{work("r", on("a"), port(80, corev1.ProtocolTCP, ""))}, pods: []*corev1.Pod{work("p", port(80, corev1.ProtocolTCP, ""))}, want: waits, then: func(k *kase) { k.delete("r") }, after: placed},
		{name: "a pod that keeps others away is deleted", nodes: one, running: []*corev1.Pod{work("r", on("a"), apart(term(zones, "app", "x")))}, pods: []*corev1.Pod{work("p", with("app", "x"))}, want: waits, then: func(k *kase) { k.delete("r") }, after: placed},
		{name: "a pod gets the label that another asks for", nodes: one, running: []*corev1.Pod{work("r", on("a"))}, pods: []*corev1.Pod{work("p", near(term(zones, "app", "db")))}, want: waits, then: func(k *kase) { k.patchPod("r", `{"metadata":{"labels":{"app":"db"}}}`) }, after: placed},
		{name: "a pod loses the label that keeps another away", nodes: one, running: []*corev1.Pod{work("r", on("a"), with("app", "db"))}, pods: []*corev1.Pod{work("p", apart(term(zones, "app", "db")))}, want: waits, then: func(k *kase) { k.patchPod("r", `{"metadata":{"labels":{"app":null}}}`) }, after: placed},
		{name: "the pod itself changes: its own labels", nodes: one, running: []*corev1.Pod{work("r", on("a"), apart(term(zones, "app", "x")))}, pods: []*corev1.Pod{work("p", with("app", "x"))}, want: waits, then: func(k *kase) { k.patchPod("p", `{"metadata":{"labels":{"app":"y"}}}`) }, after: placed},
		{name: "a zone comes for a spread", nodes: one, running: []*corev1.Pod{work("r", on("a"), with("app", "x")), work("r2", on("a"), with("app", "x"))}, pods: []*corev1.Pod{work("p", spread(zones, 1, corev1.DoNotSchedule, func(c *corev1.TopologySpreadConstraint) { two := int32(2); c.MinDomains = &two }))}, want: waits,
			then: func(k *kase) { k.node(host("b", zone("z2"))) }, after: map[string]string{"p": "b"}},
		{name: "a pod is resized down in place", nodes: one, running: []*corev1.Pod{work("r", on("a"), cores("3"))}, pods: []*corev1.Pod{work("p", cores("3"))}, want: waits, then: func(k *kase) {
			patch := `{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"1"}}}]}}`
			if _, err := k.api.CoreV1().Pods(k.ns).Patch(k.t.Context(), "r", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize"); err != nil {
				k.t.Fatal(err)
			}
			status := `{"status":{"containerStatuses":[{"name":"app","image":"registry.example/app:1","imageID":"x","ready":true,"restartCount":0,"allocatedResources":{"cpu":"1"},"resources":{"requests":{"cpu":"1"}}}]}}`
			if _, err := k.api.CoreV1().Pods(k.ns).Patch(k.t.Context(), "r", types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
				k.t.Fatal(err)
			}
		}, after: placed},
		{name: "a pod is resized down, confirmed in two writes", nodes: one, running: []*corev1.Pod{work("r", on("a"), cores("3"))}, pods: []*corev1.Pod{work("p", cores("3"))}, want: waits, then: func(k *kase) {
			has := func(promised, has string) {
				k.patchPod("r", fmt.Sprintf(`{"status":{"containerStatuses":[{"name":"app","image":"registry.example/app:1","imageID":"x","ready":true,"restartCount":0,"allocatedResources":{"cpu":%q},"resources":{"requests":{"cpu":%q}}}]}}`, promised, has), "status")
			}
			has("3", "3")
			k.patchPod("r", `{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"1"}}}]}}`, "resize")
			has("1", "3")
			has("1", "1")
		}, after: placed},
		{name: "the last other domain of a spread is deleted", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"), tainted("k", "v", corev1.TaintEffectNoSchedule))},
			running: []*corev1.Pod{work("r", on("a"), with("app", "x"))}, pods: []*corev1.Pod{work("p", spread(zones, 1, corev1.DoNotSchedule))}, want: waits, then: func(k *kase) {
				if err := k.api.CoreV1().Nodes().Delete(k.t.Context(), k.id+".b", metav1.DeleteOptions{}); err != nil {
					k.t.Fatal(err)
				}
			}, after: placed},
		{name: "a pod of a spread is being deleted", nodes: []*corev1.Node{host("a", zone("z1")), host("b", zone("z2"), tainted("k", "v", corev1.TaintEffectNoSchedule))},
			running: []*corev1.Pod{work("r", on("a"), with("app", "x"), func(p *corev1.Pod) { p.Finalizers = []string{"example.com/stays"} })},
			pods:    []*corev1.Pod{work("p", spread(zones, 1, corev1.DoNotSchedule))}, want: waits, then: func(k *kase) {
				k.delete("r")
			}, after: placed},
		{name: "the higher priority first", nodes: one, running: []*corev1.Pod{work("r", on("a"), of("high"), cores("3"))}, objects: func(k *kase) { classes(k.t, &cluster{k.t, k.api, nil}) },
			pods: []*corev1.Pod{work("low", of("low"), cores("3")), work("p", of("polite"), cores("3"))}, want: map[string]string{"low": "", "p": ""}, then: func(k *kase) { k.delete("r") }, after: map[string]string{"p": "a", "low": ""}},
	})
}

// group makes a PodGroup.
func (k *kase) group(name string, least int32, key string, with ...func(*schedulingv1beta1.PodGroup)) {
	k.t.Helper()
	g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: least}
	if least == 0 {
		g.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}
	}
	if key != "" {
		g.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}}}
	}
	for _, f := range with {
		f(g)
	}
	if _, err := k.api.SchedulingV1beta1().PodGroups(k.ns).Create(k.t.Context(), g, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// asOne has the pods of a group disrupted together, and ofClass gives it a priority of its own.
func asOne(g *schedulingv1beta1.PodGroup) {
	g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
}

func ofClass(class string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = class }
}

func member(group string) podOption {
	return func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group} }
}

// TestPlanePodGroups plays what upstream's tests of pod groups cover.
func TestPlanePodGroups(t *testing.T) {
	classes(t, connect(t))
	rack := func(r string) nodeOption { return labelled("rack", r) }
	none := map[string]string{}
	unbound := func(names ...string) func(*kase, map[string]string) {
		return func(k *kase, _ map[string]string) {
			for _, name := range names {
				k.poll("pod "+name+" waits", func(context.Context) (bool, error) { return unschedulable(k.get(name)), nil })
				if p := k.get(name); p.Spec.NodeName != "" {
					k.t.Errorf("pod %s is on %s without its gang", name, p.Spec.NodeName)
				}
			}
		}
	}
	playAll(t, []behaviour{
		{name: "a gang waits for its pods, and is placed at once", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.group("g", 3, "") }, pods: times(2, "g", member("g"), cores("2")), want: none,
			check: unbound("g-0", "g-1"), then: func(k *kase) { k.pod(work("g-2", member("g"), cores("2"))) }, after: map[string]string{"g-0": "*", "g-1": "*", "g-2": "*"}},
		{name: "a gang waits for its group", nodes: []*corev1.Node{host("a")}, pods: times(2, "g", member("g")), want: none, check: unbound("g-0"), then: func(k *kase) { k.group("g", 2, "") }, after: map[string]string{"g-0": "a", "g-1": "a"}},
		{name: "a gang without room for all holds none of it", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) { k.group("g", 3, "") }, pods: append(times(3, "g", member("g"), cores("2")), work("single", cores("4"))),
			want: map[string]string{"single": "a"}, check: unbound("g-0", "g-1", "g-2"), then: func(k *kase) { k.delete("single"); k.node(host("b")) }, after: map[string]string{"g-0": "*", "g-1": "*", "g-2": "*"}},
		{name: "two gangs that do not fit together do not block each other", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.group("x", 3, ""); k.group("y", 3, "") },
			pods: slices.Concat(times(3, "x", member("x"), cores("2")), times(3, "y", member("y"), cores("2"))), want: map[string]string{}, then: func(k *kase) {
				k.are(map[string]string{"x-0": "*", "x-1": "*", "x-2": "*"})
				unbound("y-0", "y-1", "y-2")(k, nil)
				for i := range 3 {
					k.delete(fmt.Sprint("x-", i))
				}
			}, after: map[string]string{"y-0": "*", "y-1": "*", "y-2": "*"}},
		{name: "pods beyond the minimum come later", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.group("g", 2, "") }, pods: times(2, "g", member("g"), cores("1")), want: none,
			then: func(k *kase) {
				k.are(map[string]string{"g-0": "*", "g-1": "*"})
				k.pod(work("late", member("g"), cores("1")))
			}, after: map[string]string{"late": "*"}},
		{name: "a pod that fits nowhere stops no other", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.group("g", 2, "") },
			pods: append([]*corev1.Pod{work("a-first", member("g"), cores("9"))}, times(2, "g", member("g"), cores("2"))...), want: none, then: func(k *kase) { unbound("a-first")(k, nil) }, after: map[string]string{"g-0": "*", "g-1": "*"}},
		{name: "a member that comes later makes the minimum", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) { k.group("g", 2, "") },
			pods: []*corev1.Pod{work("a-first", member("g"), cores("9")), work("g-0", member("g"), cores("2"))}, want: none, check: unbound("a-first", "g-0"),
			then: func(k *kase) { k.pod(work("g-1", member("g"), cores("2"))) }, after: map[string]string{"g-0": "a", "g-1": "a"}},
		{name: "topology: without a gang, a pod that fits nowhere stops no other", nodes: []*corev1.Node{host("a1", rack("a")), host("b1", rack("b")), host("b2", rack("b"))},
			pods: append([]*corev1.Pod{work("a-first", member("g"), cores("9"))}, times(2, "g", member("g"), cores("3"))...), want: none, check: unbound("a-first", "g-0", "g-1"),
			then: func(k *kase) { k.group("g", 0, "rack") }, after: map[string]string{"g-0": "b1|b2", "g-1": "b1|b2"}},
		{name: "preemption: the group says that it is scheduled", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.group("g", 2, "") }, running: []*corev1.Pod{work("low-1", on("a"), of("low"), cores("3")), work("low-2", on("b"), of("low"), cores("3"))},
			pods: times(2, "g", member("g"), of("high"), cores("3")), want: none, then: func(k *kase) {
				k.poll("the group is scheduled", func(ctx context.Context) (bool, error) {
					g, err := k.api.SchedulingV1beta1().PodGroups(k.ns).Get(ctx, "g", metav1.GetOptions{})
					return err == nil && meta.IsStatusConditionTrue(g.Status.Conditions, "PodGroupInitiallyScheduled"), err
				})
			}, after: map[string]string{"g-0": "*", "g-1": "*"}},
		{name: "a gang that ran and lost a pod keeps the others", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) { k.group("g", 2, "") }, pods: times(2, "g", member("g"), cores("2")), want: none,
			then: func(k *kase) {
				k.are(map[string]string{"g-0": "a", "g-1": "a"})
				k.delete("g-1")
				k.pod(work("again", member("g"), cores("3")))
				unbound("again")(k, nil)
				time.Sleep(20 * time.Second) // twice the time of a gang that never ran
				k.stays("g-0")
			}, after: map[string]string{"g-0": "a"}},
		{name: "claims: the pods of a gang share one", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.deviceClass(); k.devices("b", "d0"); k.resourceClaim("c"); k.group("g", 2, "") },
			pods: times(2, "g", member("g"), uses("c")), want: none, then: func(*kase) {}, after: map[string]string{"g-0": "b", "g-1": "b"}},
		{name: "claims: one device for two pods of a gang takes no room", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) {
			k.deviceClass()
			k.devices("a", "d0")
			k.resourceClaim("c0")
			k.resourceClaim("c1")
			k.group("g", 2, "")
		}, running: []*corev1.Pod{work("low-1", on("a"), of("low"), cores("3")), work("low-2", on("b"), of("low"), cores("3"))},
			pods: []*corev1.Pod{work("g-0", member("g"), of("high"), cores("3"), uses("c0")), work("g-1", member("g"), of("high"), cores("3"), uses("c1"))}, want: none, check: func(k *kase, at map[string]string) {
				unbound("g-0", "g-1")(k, at)
				time.Sleep(3 * time.Second) // it is tried again meanwhile
				k.stays("low-1", "low-2")
			}, then: func(k *kase) { k.devices("b", "d0"); k.gone("low-1", "low-2") }, after: map[string]string{"g-0": "*", "g-1": "*"}},
		{name: "claims: a gang that shares one takes the room next to it", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.deviceClass(); k.devices("a", "d0"); k.resourceClaim("c"); k.group("g", 2, "") },
			running: []*corev1.Pod{work("low-1", on("a"), of("low"), cores("3")), work("low-2", on("b"), of("low"), cores("3"))},
			pods:    times(2, "g", member("g"), of("high"), cores("2"), uses("c")), want: none, then: func(k *kase) { k.gone("low-1"); k.stays("low-2") }, after: map[string]string{"g-0": "a", "g-1": "a"}},
		{name: "a basic policy is no gang", nodes: []*corev1.Node{host("a")}, objects: func(k *kase) { k.group("g", 0, "") }, pods: []*corev1.Pod{work("p", member("g"))}, want: map[string]string{"p": "a"}},
		{name: "topology: all in one rack", nodes: []*corev1.Node{host("a1", rack("a")), host("b1", rack("b")), host("b2", rack("b"))}, objects: func(k *kase) { k.group("g", 2, "rack") }, pods: times(2, "g", member("g"), cores("3")), want: none,
			then: func(*kase) {}, after: map[string]string{"g-0": "b1|b2", "g-1": "b1|b2"}},
		{name: "topology: no rack holds all", nodes: []*corev1.Node{host("a1", rack("a")), host("b1", rack("b"))}, objects: func(k *kase) { k.group("g", 2, "rack") }, pods: times(2, "g", member("g"), cores("3")), want: none, check: unbound("g-0", "g-1"),
			then: func(k *kase) { k.node(host("a2", rack("a"))) }, after: map[string]string{"g-0": "a1|a2", "g-1": "a1|a2"}},
		{name: "topology: nodes without the key are out", nodes: []*corev1.Node{host("a"), host("b"), host("c", rack("c"), holds(corev1.ResourceCPU, "8"))}, objects: func(k *kase) { k.group("g", 2, "rack") }, pods: times(2, "g", member("g"), cores("3")), want: none,
			then: func(*kase) {}, after: map[string]string{"g-0": "c", "g-1": "c"}},
		{name: "topology: a late pod stays in the rack", nodes: []*corev1.Node{host("a1", rack("a")), host("a2", rack("a")), host("b1", rack("b"))}, objects: func(k *kase) { k.group("g", 2, "rack") }, pods: times(2, "g", member("g"), cores("3")), want: none,
			then: func(k *kase) {
				k.are(map[string]string{"g-0": "a1|a2", "g-1": "a1|a2"})
				k.pod(work("late", member("g"), cores("3")))
				unbound("late")(k, nil)
				k.node(host("a3", rack("a")))
			}, after: map[string]string{"late": "a3"}},
		{name: "topology: without a gang, as many as one rack holds", nodes: []*corev1.Node{host("a1", rack("a")), host("b1", rack("b")), host("b2", rack("b"))}, pods: times(2, "g", member("g"), cores("3")), want: none, check: unbound("g-0", "g-1"),
			then: func(k *kase) { k.group("g", 0, "rack") }, after: map[string]string{"g-0": "b1|b2", "g-1": "b1|b2"}},
		{name: "preemption: a gang takes room for all of its pods", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.group("g", 2, "") }, running: []*corev1.Pod{work("low-1", on("a"), of("low"), cores("3")), work("low-2", on("b"), of("low"), cores("3"))},
			pods: times(2, "g", member("g"), of("high"), cores("3")), want: none, then: func(*kase) {}, after: map[string]string{"g-0": "*", "g-1": "*"}},
		{name: "preemption: not for a part of a gang", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.group("g", 3, "") }, running: []*corev1.Pod{work("low", on("a"), of("low"), cores("3")), work("high", on("b"), of("high"), cores("3"))},
			pods: times(3, "g", member("g"), of("high"), cores("3")), want: none, check: func(k *kase, at map[string]string) { unbound("g-0", "g-1", "g-2")(k, at); k.stays("low", "high") }},
		{name: "preemption: a gang goes as a whole", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.group("g", 2, "") }, pods: times(2, "g", member("g"), of("low"), cores("3")), want: none, then: func(k *kase) {
			k.are(map[string]string{"g-0": "*", "g-1": "*"})
			k.pod(work("high", of("high"), cores("3")))
			k.gone("g-0", "g-1")
		}, after: map[string]string{"high": "*"}},
		{name: "preemption: one of a group that is more than its minimum", nodes: []*corev1.Node{host("a"), host("b"), host("c")}, objects: func(k *kase) { k.group("g", 2, "") }, pods: times(3, "g", member("g"), of("low"), cores("3")), want: none,
			then: func(k *kase) {
				k.are(map[string]string{"g-0": "*", "g-1": "*", "g-2": "*"})
				k.pod(work("high", of("high"), cores("3")))
				k.are(map[string]string{"high": "*"})
				there := 0
				for _, name := range []string{"g-0", "g-1", "g-2"} {
					if p, err := k.api.CoreV1().Pods(k.ns).Get(k.t.Context(), name, metav1.GetOptions{}); err == nil && p.DeletionTimestamp == nil {
						there++
					}
				}
				if there != 2 {
					k.t.Errorf("%d of three pods are left, want 2", there)
				}
			}},
		{name: "preemption: a group that is disrupted as one", nodes: []*corev1.Node{host("a"), host("b"), host("c")}, objects: func(k *kase) { k.group("g", 2, "", asOne) }, pods: times(3, "g", member("g"), of("low"), cores("3")), want: none,
			then: func(k *kase) {
				k.are(map[string]string{"g-0": "*", "g-1": "*", "g-2": "*"})
				k.pod(work("high", of("high"), cores("3")))
				k.gone("g-0", "g-1", "g-2")
			}, after: map[string]string{"high": "*"}},
		{name: "preemption: the priority of the group protects its pods", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.group("g", 2, "", ofClass("high")) }, pods: times(2, "g", member("g"), of("low"), cores("3")), want: none,
			then: func(k *kase) {
				k.are(map[string]string{"g-0": "*", "g-1": "*"})
				k.pod(work("medium", of("medium"), cores("3")))
				unbound("medium")(k, nil)
				k.stays("g-0", "g-1")
			}},
		{name: "preemption: the priority of the group takes room", nodes: []*corev1.Node{host("a"), host("b")}, objects: func(k *kase) { k.group("g", 2, "", ofClass("high")) }, running: []*corev1.Pod{work("medium", on("a"), of("medium"), cores("3"))},
			pods: times(2, "g", member("g"), of("low"), cores("3")), want: none, then: func(*kase) {}, after: map[string]string{"g-0": "*", "g-1": "*"}},
		{name: "preemption: in one rack, with a topology key", nodes: []*corev1.Node{host("a1", rack("a")), host("b1", rack("b")), host("b2", rack("b"))}, objects: func(k *kase) { k.group("g", 2, "rack") },
			running: []*corev1.Pod{work("low-a", on("a1"), of("low"), cores("3")), work("low-b", on("b1"), of("low"), cores("3"))}, pods: times(2, "g", member("g"), of("high"), cores("3")), want: none,
			then: func(k *kase) { k.gone("low-b"); k.stays("low-a") }, after: map[string]string{"g-0": "b1|b2", "g-1": "b1|b2"}},
	})
}
