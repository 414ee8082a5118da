package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/place"
)

// The quality of a placement is measured on nodes of its own, after the rates: the same pods by each scheduler, and by the naive twin, which looks at
// every node for every pod. Half of the nodes are an offline pool's, and half of the others have GPUs.

// The quality nodes have 16 cores in four cells of two sockets, and some 8 GPUs.
const (
	qualityCells, cellCores, nodeGPUs = 4, 4, 8
	qualityGPU                        = "nvidia.com/gpu"
	qualityPool                       = "quality-pool"
	quality                           = "quality"
	replicas                          = 10 // services whose replicas spread
)

// kind is pods that ask for the same, or nearly so.
type kind struct {
	name string
	// per is how many there are for a hundred nodes.
	per   int
	cpu   func(i int) int64 // in thousandths
	gpus  func(i int) int64
	cells place.CellPolicy
	whole bool // its cells are its own
	side  fleet.Class
}

func some(v int64) func(int) int64 { return func(int) int64 { return v } }

func kinds() []kind {
	return []kind{
		{name: "web", per: 200, cpu: some(1000), gpus: some(0), side: fleet.Online},
		{name: "whole", per: 60, cpu: some(3000), gpus: some(0), cells: place.OneCell, whole: true, side: fleet.Online},
		{name: "cell", per: 60, cpu: some(1500), gpus: some(0), cells: place.OneCell, side: fleet.Online},
		{name: "gpu", per: 80, cpu: some(1000), gpus: func(i int) int64 { return int64(1 + i%2) }, side: fleet.Online},
		{name: "batch", per: 90, cpu: func(i int) int64 { return int64(1000 * (1 + i%5*2)) }, gpus: some(0), side: fleet.Offline},
	}
}

// seat is where a pod was placed.
type seat struct {
	kind  *kind
	i     int
	group string // its service; empty for none
	node  string
	cells []int
}

func qualityNode(i int) (name string, pool fleet.Class, gpus int64) {
	pool = fleet.Online
	if i%2 == 1 {
		pool = fleet.Offline
	}
	if i%4 == 0 {
		gpus = nodeGPUs
	}
	return fmt.Sprintf("quality-%04d", i), pool, gpus
}

func qualityZone(i int) string { return fmt.Sprint("zone-", i%zones) }

// naive places the pods by looking at every node for each of them.
func naive(nodes int) []seat {
	t := place.New()
	for i := range nodes {
		name, pool, gpus := qualityNode(i)
		m := place.Machine{ID: fleet.NodeID(name), Name: name, Home: pool, Zone: qualityZone(i),
			Allocatable: fleet.Resources{CPU: qualityCells * cellCores * 1000, Memory: 64 * fleet.GiB, GPU: gpus, Pods: 110}}
		for c := range qualityCells {
			m.Cells = append(m.Cells, place.Cell{Cell: fleet.Cell{ID: c, Socket: c / 2,
				Capacity: fleet.Resources{CPU: cellCores * 1000, Memory: 16 * fleet.GiB, GPU: gpus / qualityCells}}})
		}
		t.SetMachine(m)
	}
	var out []seat
	all := kinds()
	for k := range all {
		for i := range all[k].per * nodes / 100 {
			x := &all[k]
			s := place.Shape{Side: x.side, Cells: x.cells, Exclusive: x.whole, Requests: fleet.Resources{CPU: fleet.MilliCPU(x.cpu(i)), Memory: 256 << 20, GPU: x.gpus(i)}}
			at := seat{kind: x, i: i}
			if x.name == "web" {
				at.group = serviceOf(i)
				s.Group, s.Zones = at.group, true
			}
			if d, ok := t.Scan(t.Class(s)); ok {
				at.node, at.cells = d.Name, d.Cells
			}
			out = append(out, at)
		}
	}
	return out
}

func serviceOf(i int) string { return fmt.Sprint("web-", i%replicas) }

// placeAll has the plane's scheduler place the pods, and reads where they are.
func (b *bench) placeAll(ctx context.Context, nodes int) ([]seat, error) {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	if err := b.qualityNodes(ctx, nodes); err != nil {
		return nil, err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: quality}}
	if _, err := b.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	for { // pods need the account of their namespace
		if _, err := b.client.CoreV1().ServiceAccounts(quality).Get(ctx, "default", metav1.GetOptions{}); err == nil {
			break
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	all := kinds()
	var out []seat
	for k := range all {
		x := &all[k]
		n := x.per * nodes / 100
		if err := b.createKind(ctx, x, n); err != nil {
			return nil, fmt.Errorf("create the pods of kind %s: %w", x.name, err)
		}
		seats, err := b.seats(ctx, x, n)
		if err != nil {
			return nil, err
		}
		out = append(out, seats...)
	}
	return out, nil
}

// createKind makes pods one after the other, as the naive twin has them; those of the services are their ReplicaSets'.
func (b *bench) createKind(ctx context.Context, x *kind, n int) error {
	if x.name != "web" {
		for i := range n {
			if _, err := b.client.CoreV1().Pods(quality).Create(ctx, b.qualityPod(x, i), metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return nil
	}
	for s := range replicas {
		count := int32(n / replicas)
		if s < n%replicas {
			count++
		}
		p := b.qualityPod(x, s)
		r := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: serviceOf(s)}, Spec: appsv1.ReplicaSetSpec{Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: p.Labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec}}}
		if _, err := b.client.AppsV1().ReplicaSets(quality).Create(ctx, r, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) qualityPod(x *kind, i int) *corev1.Pod {
	p := newPod(fmt.Sprintf("%s-%05d", x.name, i), quality)
	p.Labels = map[string]string{"kind": x.name}
	if x.name == "web" {
		p.Labels["service"] = serviceOf(i)
	}
	list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(x.cpu(i), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("256Mi")}
	if g := x.gpus(i); g > 0 {
		list[qualityGPU] = *resource.NewQuantity(g, resource.DecimalSI)
	}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	p.Spec.NodeSelector = map[string]string{qualityPool: strings.ToLower(string(x.side))}
	if x.side == fleet.Offline {
		p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpEqual, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}}
	}
	if x.cells == place.OneCell {
		p.Annotations = map[string]string{v1alpha1.AnnotationTopologyPolicy: v1alpha1.TopologySingleCell}
	}
	if x.whole {
		p.Annotations[v1alpha1.AnnotationCellsExclusive] = "true"
	}
	p.Spec.SchedulerName = schedulerName[b.who]
	return p
}

// seats waits until each pod of a kind is bound or found to have no place.
func (b *bench) seats(ctx context.Context, x *kind, n int) ([]seat, error) {
	for {
		list, err := b.client.CoreV1().Pods(quality).List(ctx, metav1.ListOptions{LabelSelector: "kind=" + x.name})
		if err != nil {
			return nil, err
		}
		var out []seat
		judged := 0
		for k := range list.Items {
			p := &list.Items[k]
			at := seat{kind: x, group: p.Labels["service"], node: p.Spec.NodeName}
			if x.name != "web" {
				_, _ = fmt.Sscanf(strings.TrimPrefix(p.Name, x.name), "-%d", &at.i)
			}
			if text := p.Annotations[v1alpha1.AnnotationCells]; text != "" {
				if at.cells, err = v1alpha1.ParseCells(text); err != nil {
					return nil, err
				}
			}
			if at.node != "" || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }) {
				judged++
			}
			out = append(out, at)
		}
		if judged == n {
			return out, nil
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, fmt.Errorf("%d of %d pods of kind %s are judged: %w", judged, n, x.name, err)
		}
	}
}

// qualityNodes makes the nodes, what is inside of them, and the two pools.
func (b *bench) qualityNodes(ctx context.Context, nodes int) error {
	dyn, err := dynamic.NewForConfig(b.config)
	if err != nil {
		return err
	}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for _, file := range []string{"lab/world/manifests/noderesourcetopology.yaml", "deploy/crd/springtide.dev_capacitypools.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &u.Object); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if _, err := dyn.Resource(crds).Create(ctx, u, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	pools := v1alpha1.GroupVersion.WithResource("capacitypools")
	for _, class := range []fleet.Class{fleet.Online, fleet.Offline} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"class": string(class),
			"nodeSelector": map[string]any{"matchLabels": map[string]any{qualityPool: strings.ToLower(string(class))}}}}}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("CapacityPool"))
		u.SetName(quality + "-" + strings.ToLower(string(class)))
		for { // the kind is served a moment after its definition
			if _, err = dyn.Resource(pools).Create(ctx, u, metav1.CreateOptions{}); err == nil {
				break
			}
			if sleep(ctx, 100*time.Millisecond) != nil {
				return err
			}
		}
	}
	for i := range nodes {
		name, pool, gpus := qualityNode(i)
		n := newNode(name, i)
		n.Labels[qualityPool] = strings.ToLower(string(pool))
		if pool == fleet.Offline {
			n.Labels[v1alpha1.LabelOffline] = "true"
		}
		for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
			list[corev1.ResourceCPU], list[corev1.ResourceMemory] = *resource.NewQuantity(qualityCells*cellCores, resource.DecimalSI), resource.MustParse("64Gi")
			if gpus > 0 {
				list[qualityGPU] = *resource.NewQuantity(gpus, resource.DecimalSI)
			}
		}
		if _, err := dyn.Resource(facts.Topologies).Create(ctx, inside(name, gpus), metav1.CreateOptions{}); err != nil {
			return err
		}
		if _, err := b.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := sleep(ctx, 10*time.Second); err != nil { // the scheduler looks for kinds that it misses every two seconds
		return err
	}
	b.o.nodes += nodes
	return b.nodesReady(ctx)
}

// inside is the inside of a node.
func inside(name string, gpus int64) *unstructured.Unstructured {
	amount := func(name string, n any) map[string]any {
		return map[string]any{"name": name, "capacity": fmt.Sprint(n), "allocatable": fmt.Sprint(n), "available": fmt.Sprint(n)}
	}
	list := []any{map[string]any{"name": "socket-0", "type": "Socket"}, map[string]any{"name": "socket-1", "type": "Socket"}}
	for c := range qualityCells {
		resources := []any{amount("cpu", cellCores), amount("memory", "16Gi")}
		if gpus > 0 {
			resources = append(resources, amount(qualityGPU, gpus/qualityCells))
		}
		list = append(list, map[string]any{"name": fmt.Sprintf("node-%d", c), "type": "Node", "parent": fmt.Sprintf("socket-%d", c/2), "resources": resources})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"topologyPolicies": []any{"None"}, "zones": list}}
	u.SetGroupVersionKind(facts.Topologies.GroupVersion().WithKind("NodeResourceTopology"))
	u.SetName(name)
	return u
}

// figure is one measure of a placement; unknown where the scheduler does not decide it.
type figure struct {
	name    string
	value   float64
	unknown bool
}

// judgeSeats says how spread, how packed and how broken up a placement is.
func judgeSeats(nodes int, seats []seat) []figure {
	hosts, inZone := map[string]map[string]int{}, map[string]*[zones]int{}
	batch, gpusUsed, held := map[string]bool{}, map[string]int64{}, map[string]int64{}
	waiting, chosen := 0, false
	number := map[string]int{}
	for i := range nodes {
		name, _, _ := qualityNode(i)
		number[name] = i
	}
	for _, s := range seats {
		if s.node == "" {
			waiting++
			continue
		}
		if s.group != "" {
			if hosts[s.group] == nil {
				hosts[s.group], inZone[s.group] = map[string]int{}, &[zones]int{}
			}
			hosts[s.group][s.node]++
			inZone[s.group][number[s.node]%zones]++
		}
		if s.kind.side == fleet.Offline {
			batch[s.node] = true
		}
		gpusUsed[s.node] += s.kind.gpus(s.i)
		for _, c := range s.cells {
			chosen = true
			takes := s.kind.cpu(s.i)
			if s.kind.whole {
				takes = cellCores * 1000
			}
			held[fmt.Sprint(s.node, " ", c)] += takes
		}
	}
	fullest, skew := 0, 0
	for group, on := range hosts {
		most := 0
		for _, n := range on {
			most = max(most, n)
		}
		fullest += most
		skew += slices.Max(inZone[group][:]) - slices.Min(inZone[group][:])
	}
	partly, left := 0, int64(0)
	for i := range nodes {
		name, _, all := qualityNode(i)
		if used := gpusUsed[name]; used > 0 && used < all {
			partly++
			left += all - used
		}
	}
	wasted, inPart := int64(0), 0
	for _, used := range held {
		if free := int64(cellCores*1000) - used; free > 0 {
			inPart++
			if free < 1500 { // of no use for a pod that is bound to a cell
				wasted += free
			}
		}
	}
	services := float64(max(len(hosts), 1))
	return []figure{
		{"pods without a place", float64(waiting), false},
		{"spread: pods of a service on its fullest node, mean", float64(fullest) / services, false},
		{"spread: pods between a service's fullest and emptiest zone, mean", float64(skew) / services, false},
		{"packing: offline nodes in use", float64(len(batch)), false},
		{"GPU fragments: nodes with some GPUs free and some in use", float64(partly), false},
		{"GPU fragments: GPUs free on those", float64(left), false},
		{"cells in use in part", float64(inPart), !chosen},
		{"cells wasted: cores free in cells with too few for a bound pod", float64(wasted) / 1000, !chosen},
	}
}

// compare has each scheduler and the naive twin place the same pods, and writes what is to be said of the outcome as a table.
func compare(ctx context.Context, out io.Writer, nodes int, schedules []string, benches map[string]*bench) error {
	head, figures := []string{}, [][]figure{}
	for _, who := range schedules {
		if who == "bare" {
			continue
		}
		seats, err := benches[who].placeAll(ctx, nodes)
		if err != nil {
			return fmt.Errorf("quality, %s: %w", who, err)
		}
		head, figures = append(head, who), append(figures, judgeSeats(nodes, seats))
	}
	head, figures = append(head, "naive twin"), append(figures, judgeSeats(nodes, naive(nodes)))
	fmt.Fprintf(out, "\n| placement on %d nodes | %s |\n|---|%s\n", nodes, strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for i, row := range figures[0] {
		fmt.Fprintf(out, "| %s |", row.name)
		for _, f := range figures {
			if f[i].unknown {
				fmt.Fprint(out, " chooses none |")
				continue
			}
			fmt.Fprintf(out, " %.2f |", f[i].value)
		}
		fmt.Fprintln(out)
	}
	return nil
}
