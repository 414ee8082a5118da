package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// namesShown bounds the objects that one line names.
const namesShown = 3

// checkSchedulers looks for pods and pools that name the bundled scheduler where none runs: such pods wait for ever, and no condition or event says why.
func checkSchedulers(ctx context.Context, d *doctor) error {
	held, err := schedulerHolders(ctx, d.c, d.namespace)
	if err != nil {
		return err
	}
	vacant := vacantPartitions(held)
	if vacant != "" {
		d.report("start its processes (scheduler.partitions of the chart, or a Deployment for each partition: docs/scheduler.md)",
			"no process of the bundled scheduler holds %s: the nodes there get no pods", vacant)
	}
	pods, err := d.c.core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=,status.phase=" + string(corev1.PodPending)})
	if err != nil {
		return fmt.Errorf("list the pods that wait: %w", err)
	}
	untouched := map[string][]string{} // by schedulerName: pods that no scheduler has looked at
	var left []string                  // pods that the bundled scheduler has looked at, and does not run any more
	for i := range pods.Items {
		p := &pods.Items[i]
		switch name := p.Namespace + "/" + p.Name; {
		case len(p.Spec.SchedulingGates) > 0 || p.DeletionTimestamp != nil || d.c.wall().Sub(p.CreationTimestamp.Time) <= lookedAtWithin:
		case !judged(p):
			scheduler := cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName)
			untouched[scheduler] = append(untouched[scheduler], name)
		case p.Spec.SchedulerName == v1alpha1.SchedulerName && len(held) == 0:
			left = append(left, name)
		}
	}
	const startOurs = "start springtide-scheduler (deploy/base/scheduler), or take schedulerName out of the workload: its new pods go to the cluster's own scheduler"
	if len(left) > 0 {
		d.report(startOurs, "no process of the bundled scheduler runs any more, and %s that it has looked at wait: %s", count(len(left), "pod"), shown(left))
	}
	for _, name := range slices.Sorted(maps.Keys(untouched)) {
		mend := "start that scheduler, or make the pods again with another schedulerName"
		if name == v1alpha1.SchedulerName {
			mend = startOurs
		}
		d.report(mend, "no scheduler has looked at %s that name %s: %s", count(len(untouched[name]), "pod"), name, shown(untouched[name]))
	}
	all, err := list[v1alpha1.CapacityPool](ctx, d.c, pools, "")
	if err != nil {
		return err
	}
	var served []string
	for i := range all {
		if all[i].Spec.SchedulerName != "" {
			served = append(served, all[i].Name)
		}
	}
	if err := placedByOthers(ctx, d, all); err != nil {
		return err
	}
	switch {
	case len(served) > 0 && len(held) == 0:
		d.report("start springtide-scheduler, or empty spec.schedulerName of the pools: then fillers hold the room that online keeps",
			"%s say that the bundled scheduler serves them (%s), and no process of it holds a lease", count(len(served), "pool"), shown(served))
	case vacant != "" || len(untouched) > 0 || len(left) > 0:
	case len(held) > 0:
		var holders []string
		for _, l := range held {
			holders = append(holders, l.holder)
		}
		d.ok("the bundled scheduler runs (%s)", shown(holders))
	default:
		d.ok("every pod that waits was looked at by its scheduler")
	}
	return nil
}

// placedByOthers finds pods on machines of a pool that lends sockets and says that the bundled scheduler serves it, whose own scheduler knows no cells: no taint
// keeps it off a machine with a lent socket. Pods of namespaces without an ElasticService, as those of the cluster itself, are few and small.
func placedByOthers(ctx context.Context, d *doctor, all []v1alpha1.CapacityPool) error {
	served := map[string]string{}
	for i := range all {
		if p := &all[i]; p.Spec.SchedulerName != "" && p.Spec.LendableUnit == string(fleet.UnitSocket) {
			served[p.Name] = p.Spec.SchedulerName
		}
	}
	if len(served) == 0 {
		return nil
	}
	_, nodes, err := d.poolsAndNodes(ctx)
	if err != nil {
		return err
	}
	serves, elastic := map[string]string{}, map[string]bool{}
	for i := range nodes {
		if homes := homesOf(&nodes[i], all); len(homes) == 1 && served[homes[0]] != "" {
			serves[nodes[i].Name] = served[homes[0]]
		}
	}
	targets, err := list[v1alpha1.ElasticService](ctx, d.c, services, "")
	if err != nil {
		return err
	}
	for i := range targets {
		elastic[targets[i].Namespace] = true
	}
	pods, err := d.c.core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodRunning)})
	if err != nil {
		return fmt.Errorf("list the pods that run: %w", err)
	}
	var strange []string
	for i := range pods.Items {
		p := &pods.Items[i]
		name, claim := serves[p.Spec.NodeName], facts.ClaimOf(p)
		if name == "" || !elastic[p.Namespace] || p.Spec.SchedulerName == name || p.Spec.SchedulerName == v1alpha1.SchedulerName ||
			claim.Tolerates || claim.Mirror || claim.Owner.Kind.Kind == facts.KindDaemonSet.Kind {
			continue
		}
		strange = append(strange, p.Namespace+"/"+p.Name)
	}
	if len(strange) > 0 {
		d.advise("name the bundled scheduler in their templates, or empty spec.schedulerName of the pool: then a taint keeps them off machines with a lent socket",
			"%s of pools that lend sockets (%s) came by another scheduler, which does not know what of a machine is lent: %s", count(len(strange), "pod"), shown(slices.Sorted(maps.Keys(served))), shown(strange))
	}
	return nil
}

// lookedAtWithin is how long a scheduler has to look at a pod.
const lookedAtWithin = time.Minute

// judged reports whether a scheduler said something of a pod.
func judged(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

// shown lists a few names.
func shown(names []string) string {
	if len(names) <= namesShown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namesShown], ", "), len(names)-namesShown)
}

// heldLease is the Lease of a partition of the bundled scheduler that a process holds.
type heldLease struct {
	name, holder string
	partitions   int // how many the holder counts
}

// schedulerHolders are the processes that hold a lease of the bundled scheduler.
func schedulerHolders(ctx context.Context, c *clients, namespace string) ([]heldLease, error) {
	// The scheduler may be installed in another namespace than the controller; who may read the controller's alone sees those.
	leases, err := c.core.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		leases, err = c.core.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("list the leases: %w", err)
	}
	var out []heldLease
	for i := range leases.Items {
		l := &leases.Items[i]
		if !strings.HasPrefix(l.Name, v1alpha1.SchedulerLeasePrefix) || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		if age := c.wall().Sub(l.Spec.RenewTime.Time); age.Seconds() < float64(*l.Spec.LeaseDurationSeconds) {
			n, _ := strconv.Atoi(l.Labels[v1alpha1.LabelPartitions]) // zero where there is none: it has just begun
			out = append(out, heldLease{l.Name, *l.Spec.HolderIdentity, n})
		}
	}
	return out, nil
}

// vacantPartitions names those that no process holds, of as many as the holders count; empty for none.
func vacantPartitions(held []heldLease) string {
	most, names := 0, map[string]bool{}
	for _, l := range held {
		most = max(most, l.partitions)
		names[l.name] = true
	}
	var vacant []string
	for i := range most {
		if !names[v1alpha1.SchedulerLeasePrefix+strconv.Itoa(i)] {
			vacant = append(vacant, strconv.Itoa(i))
		}
	}
	if len(vacant) == 0 {
		return ""
	}
	return fmt.Sprintf("partition %s of %d", strings.Join(vacant, ", "), most)
}
