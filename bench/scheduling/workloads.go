package main

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// workload is one of upstream's scheduler_perf. Its counts follow from the nodes and from the pods that are to be measured.
type workload struct {
	name string
	// node is a node of its own, besides the common ones.
	node func() *corev1.Node
	// first are bound before the measurement, or wait where they fit nowhere; pods are measured.
	first []group
	pods  group
	// churn makes something every so often while the pods are measured.
	churn time.Duration
	make  func(i int) []any
}

// group is equal pods.
type group struct {
	count func(nodes, pods int) int
	// pod changes the default pod.
	pod func(i int, p *corev1.Pod)
	// gang is how many pods a PodGroup has; 0 for pods of no group.
	gang int
	// waits: they fit nowhere.
	waits bool
}

const zones = 3

// The namespace of the pods that are bound first is "first"; the measured ones are in "measured".
const first, measured = "first", "measured"

func pods(_, pods int) int       { return pods }
func halfAPod(nodes, _ int) int  { return nodes / 2 }
func fifthAPod(nodes, _ int) int { return nodes / 5 }

// A common node has 4 cores; the pods of which 9 are asked for wait.
func large(_ int, p *corev1.Pod) { ask(p, "9"); p.Spec.PriorityClassName = highPriority }

// highPriority is the PriorityClass of the pods that come before others.
const highPriority = "high"

func workloads() []workload {
	return []workload{
		{name: "SchedulingBasic", first: []group{{count: fifthAPod}}, pods: group{count: pods}},
		{name: "SchedulingPodAntiAffinity", first: []group{{count: func(n, _ int) int { return n / 10 }, pod: apart}},
			pods: group{count: func(n, pods int) int { return min(pods, n*6/10) }, pod: apart}},
		{name: "TopologySpreading", first: []group{{count: halfAPod}}, pods: group{count: pods, pod: func(_ int, p *corev1.Pod) {
			p.Labels = map[string]string{"color": "blue"}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: corev1.LabelTopologyZone,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector("blue")}}
		}}},
		{name: "PreemptionBasic", first: []group{{count: func(n, _ int) int { return 4 * n }, pod: func(_ int, p *corev1.Pod) { ask(p, "900m"); p.Spec.TerminationGracePeriodSeconds = new(int64(0)) }}},
			pods: group{count: func(n, pods int) int { return min(pods, n) }, pod: func(_ int, p *corev1.Pod) { ask(p, "3"); p.Spec.PriorityClassName = highPriority }}},
		{name: "Unschedulable", first: []group{{count: func(n, _ int) int { return n / 50 }, pod: large, waits: true}}, pods: group{count: pods},
			churn: 200 * time.Millisecond, make: func(i int) []any {
				p := newPod(fmt.Sprint("large-", i), first)
				large(i, p)
				return []any{p}
			}},
		{name: "MixedSchedulingBasePod", first: []group{{count: fifthAPod}, {count: fifthAPod, pod: affine}, {count: fifthAPod, pod: apart}, {count: fifthAPod, pod: preferred},
			{count: fifthAPod, pod: preferredApart}}, pods: group{count: pods}},
		{name: "SchedulingWithMixedChurn", pods: group{count: pods}, churn: time.Second, make: func(i int) []any {
			p := newPod(fmt.Sprint("churn-", i), first)
			large(i, p)
			n := newNode("churn", 0)
			n.Status.Capacity[corev1.ResourcePods], n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("0"), resource.MustParse("0")
			n.Name = fmt.Sprint("churn-", i)
			s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("churn-", i), Namespace: first}, Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "churn"}, Ports: []corev1.ServicePort{{Port: 80}}}}
			return []any{n, p, s}
		}},
		{name: "SchedulingDaemonset", node: func() *corev1.Node {
			n := newNode(daemonNode, 0)
			n.Status.Capacity[corev1.ResourcePods], n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("90000"), resource.MustParse("90000")
			return n
		}, pods: group{count: pods, pod: func(_ int, p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: required(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{daemonNode}}}})}
		}}},
		{name: "SchedulingNodeAffinity", first: []group{{count: halfAPod, pod: inTwoZones}}, pods: group{count: pods, pod: inTwoZones}},
		{name: "Gangs", pods: group{count: func(_, pods int) int { return pods / gangSize * gangSize }, gang: gangSize}},
	}
}

// daemonNode is the one node on which daemons run; gangSize is the pods of a gang.
const (
	daemonNode = "scheduler-perf-node"
	gangSize   = 20
)

func names() []string {
	var out []string
	for _, w := range workloads() {
		out = append(out, w.name)
	}
	return out
}

func find(name string) (workload, error) {
	all := workloads()
	i := slices.IndexFunc(all, func(w workload) bool { return w.name == name })
	if i < 0 {
		return workload{}, fmt.Errorf("there is no workload %q: %q", name, names())
	}
	return all[i], nil
}

// newPod is upstream's default pod.
func newPod(name, namespace string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10.2", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}}}
	ask(p, "100m")
	return p
}

func ask(p *corev1.Pod, cpu string) {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("500Mi")}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
}

// Nodes with this annotation are kept ready by kwok.
const nodeAnnotation, nodeAnnotationValue = "kwok.x-k8s.io/node", "fake"

// newNode is upstream's default node.
func newNode(name string, i int) *corev1.Node {
	room := func() corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110")}
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{nodeAnnotation: nodeAnnotationValue},
		Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprint("zone-", i%zones)}},
		Status: corev1.NodeStatus{Capacity: room(), Allocatable: room()}}
}

func selector(color string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"color": color}}
}

func term(color, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{LabelSelector: selector(color), TopologyKey: key, Namespaces: []string{first, measured}}
}

// apart pods are on a node each.
func apart(_ int, p *corev1.Pod) {
	p.Labels = map[string]string{"color": "green"}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term("green", corev1.LabelHostname)}}}
}

// affine pods are in one zone.
func affine(_ int, p *corev1.Pod) {
	p.Labels = map[string]string{"color": "blue"}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term("blue", corev1.LabelTopologyZone)}}}
}

func preferred(_ int, p *corev1.Pod) {
	p.Labels = map[string]string{"color": "red"}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term("red", corev1.LabelHostname)}}}}
}

func preferredApart(_ int, p *corev1.Pod) {
	p.Labels = map[string]string{"color": "yellow"}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term("yellow", corev1.LabelHostname)}}}}
}

func inTwoZones(_ int, p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-0", "zone-1"}}}})}
}

func required(t corev1.NodeSelectorTerm) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{t}}}
}

// podGroup is a gang of all of its pods.
func podGroup(name, namespace string, size int) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(size)}}}}
}
