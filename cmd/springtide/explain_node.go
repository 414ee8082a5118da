package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

func explainNode(ctx context.Context, o *cliOptions, c *clients, arg string) (*explanation, error) {
	node, err := c.core.CoreV1().Nodes().Get(ctx, arg, metav1.GetOptions{})
	if err != nil {
		return nil, readingOne("node", fleet.Name{Name: arg}, err)
	}
	all, err := list[v1alpha1.CapacityPool](ctx, c, pools, "")
	if err != nil {
		return nil, err
	}
	away, err := list[v1alpha1.Loan](ctx, c, loans, "")
	if err != nil {
		return nil, err
	}
	away = slices.DeleteFunc(away, func(l v1alpha1.Loan) bool { return l.Spec.NodeName != arg })
	share, err := shareOf(ctx, c, arg)
	if err != nil {
		return nil, err
	}
	p := &page{title: "Node " + arg}
	homes := homesOf(node, all)
	p.add("Home", "%s", homeText(homes))
	p.add("Holder", "%s", holderText(homes, share))
	if r := restText(share, c.now()); r != "" {
		p.add("Rest", "%s", r)
	}
	if text := orphanText(away, share); text != "" {
		p.add("Without a loan", "%s", text)
	}
	p.add("Stays because of", "%s", cmp.Or(stayOf(node), pinText(arg, all)))
	if others := facts.ForeignTaints(node.Spec.Taints); len(others) > 0 {
		p.add("Taints of others", "%s; the machine is no room for services that do not tolerate them", facts.TaintText(others))
	}
	p.add("Node side", "%s", agentText(ctx, c, cmp.Or(o.system, controllerNamespace), arg, share))
	p.add("Marks", "%s", marksText(node))
	rows := make([][]string, len(away))
	for i := range away {
		l := &away[i]
		rows[i] = []string{l.Name, l.Spec.Kind, l.Spec.From, l.Spec.To, phaseText(&l.Status), stamp(l.Status.Since), stamp(l.Status.Due), waitsFor(l, share)}
	}
	p.table("Loans", "none: the machine is at home", []string{"NAME", "KIND", "FROM", "TO", "PHASE", "SINCE", "DUE", "WAITS FOR"}, rows)
	e := &explanation{page: p, Object: node, Related: map[string]any{"loans": away, "share": share}}
	return e, e.ground(ctx, o, c, "Node", fleet.Name{Name: arg})
}

// homesOf names the pools whose selector picks the node.
func homesOf(node *corev1.Node, all []v1alpha1.CapacityPool) []string {
	var out []string
	for i := range all {
		s, err := metav1.LabelSelectorAsSelector(all[i].Spec.NodeSelector.LabelSelector())
		if err == nil && s.Matches(labels.Set(node.Labels)) {
			out = append(out, all[i].Name)
		}
	}
	slices.Sort(out)
	return out
}

func homeText(homes []string) string {
	switch len(homes) {
	case 0:
		return "no pool picks this machine: Springtide leaves it alone"
	case 1:
		return "pool " + homes[0]
	}
	return fmt.Sprintf("none: the pools %s all pick it; change the selector of all but one", strings.Join(homes, ", "))
}

func holderText(homes []string, share *v1alpha1.NodeShare) string {
	if share == nil || len(share.Spec.Parcels) == 0 {
		if len(homes) == 1 {
			return homes[0] + " (at home)"
		}
		return none
	}
	parts := make([]string, len(share.Spec.Parcels))
	for i, p := range share.Spec.Parcels {
		parts[i] = fmt.Sprintf("%s has cells %s", p.Holder, strings.Trim(fmt.Sprint(p.Cells), "[]"))
		if p.Next != "" {
			parts[i] += ", on their way to " + p.Next
		}
	}
	return strings.Join(parts, "; ")
}

// restText says how long the machine is not offered again; empty where it is.
func restText(share *v1alpha1.NodeShare, now time.Time) string {
	if share == nil || share.Spec.Rest == nil || !share.Spec.Rest.Until.After(now) {
		return ""
	}
	r := share.Spec.Rest
	return fmt.Sprintf("until %s: not offered again before (loans turned back, one after another: %d)", stamp(&r.Until), r.TurnedBack)
}

// orphanText names the entries of a NodeShare that no loan answers for; empty without one.
func orphanText(away []v1alpha1.Loan, share *v1alpha1.NodeShare) string {
	if share == nil {
		return ""
	}
	var parts []string
	for i := range share.Spec.Parcels {
		p := &share.Spec.Parcels[i]
		k := slices.IndexFunc(away, func(l v1alpha1.Loan) bool { return l.Name == p.LoanName && string(l.UID) == p.LoanUID })
		switch {
		case k < 0:
			parts = append(parts, fmt.Sprintf("loan %s of cells %s is gone", p.LoanName, strings.Trim(fmt.Sprint(p.Cells), "[]")))
		case fleet.Phase(away[k].Status.Phase).Ended() && p.Holder != away[k].Spec.From:
			parts = append(parts, fmt.Sprintf("loan %s is %s, and pool %s still holds cells %s", p.LoanName, away[k].Status.Phase, p.Holder, strings.Trim(fmt.Sprint(p.Cells), "[]")))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + ": the controller makes a loan again, which begins with a notice, or clears an entry of a machine that is home"
}

// stayOf says by which fact of the node its machine starts no loan; empty where it may.
func stayOf(node *corev1.Node) string {
	if by := facts.Leaving(node); by != "" {
		return "it is about to leave: " + by
	}
	if shut := facts.Shut(node); shut.By != "" {
		return "it takes no pods: " + shut.String()
	}
	return ""
}

func pinText(node string, all []v1alpha1.CapacityPool) string {
	for i := range all {
		for _, pin := range all[i].Status.Pinned {
			if pin.Node == node {
				return pin.By
			}
		}
	}
	return none
}

func agentText(ctx context.Context, c *clients, namespace, node string, share *v1alpha1.NodeShare) string {
	lease, err := c.core.CoordinationV1().Leases(namespace).Get(ctx, v1alpha1.AgentLeasePrefix+node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && share != nil && share.Status.Agent != nil && share.Status.Agent.NodeUID == share.Spec.NodeUID:
		return "an agent was first seen " + stamp(&share.Status.Agent.FirstSeen) + " and has no Lease any more: nothing of the machine is lent; to fix: run the agent, or springtide node forget-agent " + node
	case apierrors.IsNotFound(err):
		return "no agent: the controller decides when the machine is clean; it is lent whole, and no socket of it, which needs an agent"
	case err != nil:
		return "unknown: " + err.Error()
	case lease.Spec.RenewTime == nil:
		return "an agent's Lease that was never renewed"
	}
	if agentAlive(lease, c.wall()) {
		return "an agent is alive; last sign of life " + c.stamped(lease.Spec.RenewTime.Time)
	}
	return "an agent is silent: nothing of the machine is lent; last sign of life " + c.stamped(lease.Spec.RenewTime.Time)
}

func marksText(node *corev1.Node) string {
	var marks []string
	for _, t := range node.Spec.Taints {
		if t.Key == v1alpha1.TaintHolder {
			marks = append(marks, fmt.Sprintf("taint %s=%s:%s", t.Key, t.Value, t.Effect))
		}
	}
	for _, key := range []string{v1alpha1.LabelOffline, v1alpha1.LabelHome} {
		if v := node.Labels[key]; v != "" {
			marks = append(marks, fmt.Sprintf("label %s=%s", key, v))
		}
	}
	if node.Spec.Unschedulable {
		marks = append(marks, "cordoned")
	}
	return orNone(strings.Join(marks, ", "))
}
