package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// checkMachines looks whether pools of both classes pick machines, and whether any machine is picked twice.
func checkMachines(ctx context.Context, d *doctor) error {
	all, nodes, err := d.poolsAndNodes(ctx)
	if err != nil {
		return err
	}
	picked := map[string]int{}
	var twice []string
	for i := range nodes {
		homes := homesOf(&nodes[i], all)
		switch len(homes) {
		case 0:
		case 1:
			picked[homes[0]]++
		default:
			twice = append(twice, nodes[i].Name)
		}
	}
	classes := map[string]bool{}
	for i := range all {
		classes[all[i].Spec.Class] = true
		if picked[all[i].Name] == 0 {
			d.advise("change its nodeSelector, or label machines for it", "pool %s picks no machine of its own", all[i].Name)
		}
	}
	for _, class := range []fleet.Class{fleet.Online, fleet.Offline} {
		if !classes[string(class)] {
			d.advise("write a CapacityPool of class "+string(class), "no pool of class %s: nothing can be lent", class)
		}
	}
	if len(twice) > 0 {
		d.report("change the selector of one of the pools: a machine picked twice belongs to neither", "%d machines are picked by two pools: %s", len(twice), shortList(twice))
	}
	d.ok("%d of %d machines belong to a pool", total(picked), len(nodes))
	return nil
}

func total(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}

func (d *doctor) poolsAndNodes(ctx context.Context) ([]v1alpha1.CapacityPool, []corev1.Node, error) {
	all, err := list[v1alpha1.CapacityPool](ctx, d.c, pools, "")
	if err != nil {
		return nil, nil, err
	}
	nodes, err := d.c.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("read the nodes: %w", err)
	}
	return all, nodes.Items, nil
}

// topologies is the API by which machines tell their cells.
const topologies = "topology.node.k8s.io/v1alpha2"

// agentSilence is how long an agent may be silent before it counts as gone: several times the renewal of a Lease.
const agentSilence = time.Minute

// checkAgents looks for agents and topology where a pool lends sockets: without them only whole machines are lent.
func checkAgents(ctx context.Context, d *doctor) error {
	all, nodes, err := d.poolsAndNodes(ctx)
	if err != nil {
		return err
	}
	leases, err := d.c.core.CoordinationV1().Leases(d.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the agents' leases in %s: %w", d.namespace, err)
	}
	alive := map[string]bool{}
	for i := range leases.Items {
		l := &leases.Items[i]
		alive[l.Name] = l.Spec.RenewTime != nil && d.c.now().Sub(l.Spec.RenewTime.Time) < agentSilence
	}
	sockets := map[string]bool{}
	for i := range all {
		sockets[all[i].Name] = all[i].Spec.LendableUnit == string(fleet.UnitSocket)
	}
	var need, silent []string
	for i := range nodes {
		homes := homesOf(&nodes[i], all)
		if len(homes) != 1 || !sockets[homes[0]] {
			continue
		}
		need = append(need, nodes[i].Name)
		if !alive[v1alpha1.AgentLeasePrefix+nodes[i].Name] {
			silent = append(silent, nodes[i].Name)
		}
	}
	if len(need) == 0 {
		d.ok("no pool lends sockets, so none is needed")
		return nil
	}
	if _, err := d.c.core.Discovery().ServerResourcesForGroupVersion(topologies); err != nil {
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("look for %s: %w", topologies, err)
		}
		d.advise("install the CRD of "+topologies+" and an exporter of it", "a pool lends sockets, and no NodeResourceTopology says which cells a machine has")
	}
	if len(silent) > 0 {
		d.advise("run the agent there, or only the whole machine is lent", "%d of %d machines that lend sockets have no live agent: %s", len(silent), len(need), shortList(silent))
		return nil
	}
	d.ok("all %d machines that lend sockets have a live agent", len(need))
	return nil
}

// checkOffline looks at the workloads of elastic jobs: whether their pods can land on lent machines, and whether they survive a recall.
func checkOffline(ctx context.Context, d *doctor) error {
	all, err := list[v1alpha1.ElasticJob](ctx, d.c, jobs, "")
	if err != nil {
		return err
	}
	good, whole := 0, 0
	for i := range all {
		for _, m := range all[i].Spec.Members {
			whole++
			name := fleet.Name{Namespace: all[i].Namespace, Name: m.WorkloadRef.Name}
			if m.WorkloadRef.Kind != "Job" {
				continue // validate says that there is no adapter
			}
			job, err := d.c.core.BatchV1().Jobs(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				d.advise("create the Job, or take the member out", "ElasticJob %s/%s: Job %s is not there", all[i].Namespace, all[i].Name, name)
				continue
			}
			if err != nil {
				return fmt.Errorf("read Job %s: %w", name, err)
			}
			if d.landing(name, job, m.Stable) && d.recallable(name, job) {
				good++
			}
		}
	}
	if good == whole {
		d.ok("all %d workloads of elastic jobs can be lent to", good)
	}
	return nil
}

// landing looks for the toleration and the affinity that bring pods to lent machines and keep them there alone.
func (d *doctor) landing(name fleet.Name, job *batchv1.Job, stable bool) bool {
	if stable {
		return true
	}
	spec := &job.Spec.Template.Spec
	taint := &corev1.Taint{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}
	tolerated := false
	for i := range spec.Tolerations {
		tolerated = tolerated || tolerates(&spec.Tolerations[i], taint)
	}
	if !tolerated {
		d.report(fmt.Sprintf("add the toleration %s=%s:NoSchedule to its pod template", v1alpha1.TaintHolder, v1alpha1.TaintHolderOffline),
			"the pods of Job %s do not tolerate lent machines", name)
	}
	drawn := asksOffline(spec)
	if !drawn {
		d.report(fmt.Sprintf("add the node affinity %s In [true] to its pod template", v1alpha1.LabelOffline),
			"the pods of Job %s may land on online machines, where nobody recalls them", name)
	}
	return tolerated && drawn
}

// asksOffline reports whether a pod lands on offline machines alone.
func asksOffline(spec *corev1.PodSpec) bool {
	if spec.NodeSelector[v1alpha1.LabelOffline] == "true" {
		return true
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	// The terms are alternatives: each of them must ask for it.
	for _, t := range terms {
		asks := false
		for _, e := range t.MatchExpressions {
			asks = asks || (e.Key == v1alpha1.LabelOffline && (e.Operator == corev1.NodeSelectorOpExists ||
				(e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && e.Values[0] == "true")))
		}
		if !asks {
			return false
		}
	}
	return len(terms) > 0
}

// recallable looks whether a recall counts as a failure of the Job, or is replaced before the pod has ended.
func (d *doctor) recallable(name fleet.Name, job *batchv1.Job) bool {
	ignored := false
	if p := job.Spec.PodFailurePolicy; p != nil {
		for _, rule := range p.Rules {
			for _, c := range rule.OnPodConditions {
				ignored = ignored || (rule.Action == batchv1.PodFailurePolicyActionIgnore && c.Type == corev1.DisruptionTarget)
			}
		}
	}
	if !ignored {
		d.report("add a podFailurePolicy rule with action Ignore for the pod condition DisruptionTarget", "a recall counts as a failure of Job %s", name)
	}
	replaced := job.Spec.PodReplacementPolicy
	late := replaced != nil && *replaced == batchv1.Failed
	if !late {
		d.report("set podReplacementPolicy: Failed", "Job %s replaces pods before they have ended, which takes room twice", name)
	}
	return ignored && late
}

// tolerates reports whether a toleration matches a taint, as the scheduler sees it.
func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return t.Key != "" && t.Value == taint.Value
	}
	return false
}
