package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// namesShown bounds the objects that one line names.
const namesShown = 3

// checkSchedulers looks for pods and pools that name the bundled scheduler where none runs: such pods wait for ever, and no condition or event says why.
func checkSchedulers(ctx context.Context, d *doctor) error {
	holder, err := d.schedulerHolder(ctx)
	if err != nil {
		return err
	}
	pods, err := d.c.core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=,status.phase=" + string(corev1.PodPending)})
	if err != nil {
		return fmt.Errorf("list the pods that wait: %w", err)
	}
	untouched := map[string][]string{} // by schedulerName: pods that no scheduler has looked at
	for i := range pods.Items {
		p := &pods.Items[i]
		if len(p.Spec.SchedulingGates) == 0 && p.DeletionTimestamp == nil && !judged(p) && d.c.now().Sub(p.CreationTimestamp.Time) > lookedAtWithin {
			untouched[p.Spec.SchedulerName] = append(untouched[p.Spec.SchedulerName], p.Namespace+"/"+p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(untouched)) {
		mend := "start that scheduler, or make the pods again with another schedulerName"
		if name == v1alpha1.SchedulerName {
			mend = "start springtide-scheduler (deploy/base/scheduler), or take schedulerName out of the workload: its new pods go to the cluster's own scheduler"
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
	switch {
	case len(served) > 0 && holder == "":
		d.report("start springtide-scheduler, or empty spec.schedulerName of the pools: then fillers hold the room that online keeps",
			"%s say that the bundled scheduler serves them (%s), and no process of it holds a lease", count(len(served), "pool"), shown(served))
	case holder != "" && len(untouched) == 0:
		d.ok("the bundled scheduler runs (%s)", holder)
	case len(untouched) == 0:
		d.ok("every pod that waits was looked at by its scheduler")
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

// schedulerHolder is the process that holds a lease of the bundled scheduler; empty for none.
func (d *doctor) schedulerHolder(ctx context.Context) (string, error) {
	leases, err := d.c.core.CoordinationV1().Leases(d.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the leases: %w", err)
	}
	for i := range leases.Items {
		l := &leases.Items[i]
		if !strings.HasPrefix(l.Name, v1alpha1.SchedulerLeasePrefix) || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		if age := d.c.now().Sub(l.Spec.RenewTime.Time); age.Seconds() < float64(*l.Spec.LeaseDurationSeconds) {
			return *l.Spec.HolderIdentity, nil
		}
	}
	return "", nil
}
