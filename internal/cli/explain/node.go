package explain

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

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/kube/facts"
)

func explainNode(ctx context.Context, o *cluster.Options, c *cluster.Clients, arg string) (*explanation, error) {
	node, err := c.Core.CoreV1().Nodes().Get(ctx, arg, metav1.GetOptions{})
	if err != nil {
		return nil, cluster.ReadingOne("node", fleet.Name{Name: arg}, err)
	}
	all, err := cluster.List[v1alpha1.CapacityPool](ctx, c, cluster.Pools, "")
	if err != nil {
		return nil, err
	}
	away, err := cluster.List[v1alpha1.Loan](ctx, c, cluster.Loans, "")
	if err != nil {
		return nil, err
	}
	away = slices.DeleteFunc(away, func(l v1alpha1.Loan) bool { return l.Spec.NodeName != arg })
	share, err := shareOf(ctx, c, arg)
	if err != nil {
		return nil, err
	}
	p := &screen.Page{Title: "Node " + arg}
	homes := cluster.HomesOf(node, all)
	p.Add("Home", "%s", homeText(homes))
	p.Add("Holder", "%s", holderText(homes, share))
	if r := restText(share, c.Now()); r != "" {
		p.Add("Rest", "%s", r)
	}
	if text := orphanText(away, share); text != "" {
		p.Add("Without a loan", "%s", text)
	}
	p.Add("Stays because of", "%s", cmp.Or(cluster.StayOf(node), pinText(arg, all)))
	if others := facts.ForeignTaints(node.Spec.Taints); len(others) > 0 {
		p.Add("Taints of others", "%s; the machine is no room for services that do not tolerate them", facts.TaintText(others))
	}
	p.Add("Node side", "%s", agentText(ctx, c, cmp.Or(o.System, cluster.ControllerNamespace), arg, share))
	p.Add("Marks", "%s", marksText(node))
	rows := make([][]string, len(away))
	for i := range away {
		l := &away[i]
		rows[i] = []string{l.Name, l.Spec.Kind, l.Spec.From, l.Spec.To, cell.Phase(&l.Status), cell.Stamp(l.Status.Since), cell.Stamp(l.Status.Due), waitsFor(l, share)}
	}
	p.Table("Loans", "none: the machine is at home", []string{"NAME", "KIND", "FROM", "TO", "PHASE", "SINCE", "DUE", "WAITS FOR"}, rows)
	e := &explanation{page: p, Object: node, Related: map[string]any{"loans": away, "share": share}}
	return e, e.ground(ctx, o, c, "Node", fleet.Name{Name: arg})
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
		return cell.None
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
	return fmt.Sprintf("until %s: not offered again before (loans turned back, one after another: %d)", cell.Stamp(&r.Until), r.TurnedBack)
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

func pinText(node string, all []v1alpha1.CapacityPool) string {
	for i := range all {
		for _, pin := range all[i].Status.Pinned {
			if pin.Node == node {
				return pin.By
			}
		}
	}
	return cell.None
}

func agentText(ctx context.Context, c *cluster.Clients, namespace, node string, share *v1alpha1.NodeShare) string {
	lease, err := c.Core.CoordinationV1().Leases(namespace).Get(ctx, v1alpha1.AgentLeasePrefix+node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && share != nil && share.Status.Agent != nil && share.Status.Agent.NodeUID == share.Spec.NodeUID:
		return "an agent was first seen " + cell.Stamp(&share.Status.Agent.FirstSeen) + " and has no Lease any more: nothing of the machine is lent; to fix: run the agent, or springtide node forget-agent " + node
	case apierrors.IsNotFound(err):
		return "no agent: the controller decides when the machine is clean; it is lent whole, and no socket of it, which needs an agent"
	case err != nil:
		return "unknown: " + err.Error()
	case lease.Spec.RenewTime == nil:
		return "an agent's Lease that was never renewed"
	}
	if cluster.AgentAlive(lease, c.Wall()) {
		return "an agent is alive; last sign of life " + c.Stamped(lease.Spec.RenewTime.Time)
	}
	return "an agent is silent: nothing of the machine is lent; last sign of life " + c.Stamped(lease.Spec.RenewTime.Time)
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
	return cell.OrNone(strings.Join(marks, ", "))
}
