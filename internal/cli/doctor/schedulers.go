package doctor

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/kube/facts"
)

// checkSchedulers looks for pods and pools that name the bundled scheduler where none runs: such pods wait for ever, and no condition or event says why.
func checkSchedulers(ctx context.Context, d *doctor) error {
	held, err := cluster.SchedulerHolders(ctx, d.Clients, d.Namespace)
	if err != nil {
		return err
	}
	vacant := vacantPartitions(held)
	if vacant != "" {
		d.Report("start its processes (scheduler.partitions of the chart, or a Deployment for each partition: docs/scheduler.md)",
			"no process of the bundled scheduler holds %s: the nodes there get no pods", vacant)
	}
	pods, err := d.Clients.Core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=,status.phase=" + string(corev1.PodPending)})
	if err != nil {
		return fmt.Errorf("list the pods that wait: %w", err)
	}
	untouched := map[string][]string{} // by schedulerName: pods that no scheduler has looked at
	var left []string                  // pods that the bundled scheduler has looked at, and does not run any more
	for i := range pods.Items {
		p := &pods.Items[i]
		switch name := p.Namespace + "/" + p.Name; {
		case len(p.Spec.SchedulingGates) > 0 || p.DeletionTimestamp != nil || d.Clients.Wall().Sub(p.CreationTimestamp.Time) <= lookedAtWithin:
		case !judged(p):
			scheduler := cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName)
			untouched[scheduler] = append(untouched[scheduler], name)
		case p.Spec.SchedulerName == v1alpha1.SchedulerName && len(held) == 0:
			left = append(left, name)
		}
	}
	const startOurs = "start springtide-scheduler (deploy/base/scheduler), or take schedulerName out of the workload: its new pods go to the cluster's own scheduler"
	if len(left) > 0 {
		d.Report(startOurs, "no process of the bundled scheduler runs any more, and %s that it has looked at wait: %s", cell.Count(len(left), "pod"), cell.First(left, cell.NamesShown))
	}
	for _, name := range slices.Sorted(maps.Keys(untouched)) {
		fix := "start that scheduler, or make the pods again with another schedulerName"
		if name == v1alpha1.SchedulerName {
			fix = startOurs
		}
		d.Report(fix, "no scheduler has looked at %s that name %s: %s", cell.Count(len(untouched[name]), "pod"), name, cell.First(untouched[name], cell.NamesShown))
	}
	all, err := cluster.List[v1alpha1.CapacityPool](ctx, d.Clients, cluster.Pools, "")
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
		d.Report("start springtide-scheduler, or empty spec.schedulerName of the pools: then fillers hold the room that online keeps",
			"%s say that the bundled scheduler serves them (%s), and no process of it holds a lease", cell.Count(len(served), "pool"), cell.First(served, cell.NamesShown))
	case vacant != "" || len(untouched) > 0 || len(left) > 0:
	case len(held) > 0:
		var holders []string
		for _, l := range held {
			holders = append(holders, l.Holder)
		}
		d.OK("the bundled scheduler runs (%s)", cell.First(holders, cell.NamesShown))
	default:
		d.OK("every pod that waits was looked at by its scheduler")
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
		if homes := cluster.HomesOf(&nodes[i], all); len(homes) == 1 && served[homes[0]] != "" {
			serves[nodes[i].Name] = served[homes[0]]
		}
	}
	targets, err := cluster.List[v1alpha1.ElasticService](ctx, d.Clients, cluster.Services, "")
	if err != nil {
		return err
	}
	for i := range targets {
		elastic[targets[i].Namespace] = true
	}
	pods, err := d.Clients.Core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodRunning)})
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
		d.Advise("name the bundled scheduler in their templates, or empty spec.schedulerName of the pool: then a taint keeps them off machines with a lent socket",
			"%s of pools that lend sockets (%s) came by another scheduler, which does not know what of a machine is lent: %s", cell.Count(len(strange), "pod"), cell.First(slices.Sorted(maps.Keys(served)), cell.NamesShown), cell.First(strange, cell.NamesShown))
	}
	return nil
}

// lookedAtWithin is how long a scheduler has to look at a pod.
const lookedAtWithin = time.Minute

// judged reports whether a scheduler said something of a pod.
func judged(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

// vacantPartitions names those that no process holds, of as many as the holders count; empty for none.
func vacantPartitions(held []cluster.HeldLease) string {
	most, names := 0, map[string]bool{}
	for _, l := range held {
		most = max(most, l.Partitions)
		names[l.Name] = true
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
