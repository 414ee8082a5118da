package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
)

func explainLoan(ctx context.Context, o *cluster.Options, c *cluster.Clients, arg string) (*explanation, error) {
	name := fleet.Name{Name: arg}
	l, err := cluster.Get[v1alpha1.Loan](ctx, c, cluster.Loans, name)
	if err != nil {
		return nil, err
	}
	share, err := shareOf(ctx, c, l.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	p := &screen.Page{Title: fmt.Sprintf("Loan %s (%s of %s, from %s to %s)", l.Name, strings.ToLower(l.Spec.Kind), l.Spec.NodeName, l.Spec.From, l.Spec.To)}
	st := &l.Status
	p.Add("Phase", "%s since %s, epoch %d", cell.Phase(st), cell.Stamp(st.Since), max(st.Epoch, 1))
	p.Add("Why", "%s", cell.OrNone(st.Reason))
	p.Add("Capacity", "%s (cells %s)", cell.Amount(&l.Spec.Capacity), strings.Trim(fmt.Sprint(l.Spec.Cells), "[]"))
	p.Add("Begun", "%s", cell.Stamp(&l.Spec.BeginTime))
	p.Add("Lent", "%s", cell.Stamp(st.LentTime))
	p.Add("Expected until", "%s", cell.Stamp(st.ExpectedUntil))
	p.Add("First notice", "%s", cell.Stamp(st.FirstNotice))
	p.Add("Deadline", "%s", cell.Stamp(st.Deadline))
	p.Add("Kill", "%s", cell.Stamp(st.KillTime))
	p.Add("Due", "%s", cell.Stamp(st.Due))
	p.Add("Clean", "%s", cell.Stamp(st.CleanTime))
	if pool, err := cluster.Get[v1alpha1.CapacityPool](ctx, c, cluster.Pools, fleet.Name{Name: l.Spec.From}); err == nil && pool.Status.RecallLead != nil {
		r := pool.Status.RecallLead
		p.Add("A recall takes", "notice %ds, drain %ds, clean %ds, and online pods start in %ds (0.95 quantiles of pool %s)",
			r.NoticeSeconds, r.DrainSeconds, r.CleanSeconds, r.StartupSeconds, l.Spec.From)
	} else if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	p.Add("Waits for", "%s", waitsFor(l, share))
	rows := make([][]string, len(st.History))
	for i, h := range st.History {
		rows[i] = []string{cell.Stamp(&h.Time), h.Phase, cell.Number(h.Epoch)}
	}
	p.Table("History", "", []string{"ENTERED", "PHASE", "EPOCH"}, rows)
	if err := noticed(ctx, p, c, l); err != nil {
		return nil, err
	}
	p.Conditions(st.Conditions)
	e := &explanation{page: p, Object: l, Related: share}
	return e, e.ground(ctx, o, c, "Loan", name)
}

// shareOf reads the NodeShare of a node; nil without any.
func shareOf(ctx context.Context, c *cluster.Clients, node string) (*v1alpha1.NodeShare, error) {
	share, err := cluster.Get[v1alpha1.NodeShare](ctx, c, cluster.Shares, fleet.Name{Name: node})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return share, err
}

// waitsFor says what the phase waits for.
func waitsFor(l *v1alpha1.Loan, share *v1alpha1.NodeShare) string {
	report := reportOf(l, share)
	switch phase := fleet.Phase(cell.Phase(&l.Status)); phase {
	case fleet.Emptying, fleet.Draining, fleet.Fenced, fleet.WrittenOff:
		switch {
		case share == nil:
			return "the NodeShare of " + l.Spec.NodeName + ", which is not there"
		case report == nil:
			return fmt.Sprintf("the node side's answer for epoch %d", max(l.Status.Epoch, 1))
		case !report.Clean:
			return "the cells to be clean; still in the way: " + cell.OrNone(inTheWay(report))
		}
		return "the controller: the node side reported Clean at " + cell.Stamp(report.Time)
	case fleet.Lent:
		return "the tide: a recall comes when online needs the room"
	case fleet.Noticed:
		return "an acknowledgement of every pod, or the deadline at " + cell.Stamp(l.Status.Deadline)
	case fleet.Returned:
		return "an online pod to take the room, which is open since the return, or ten minutes to pass: then the loan is deleted and the machine can be lent again"
	}
	return "nothing"
}

// inTheWay says what keeps a parcel from being clean.
func inTheWay(r *v1alpha1.ParcelReport) string {
	what := map[string]string{
		"Agent": "a node agent, which sockets need", "Ready": "the kubelet, which does not report", "Pods": "pods", "Binds": "pods that were just bound",
		"Marks": "marks that still let pods land", "Processes": "processes", "Memory": "memory", "Margin": "the margin against late binds",
		"Acks": "the bundled scheduler, which has not acknowledged the share",
	}[r.Waits]
	names := strings.Join(r.Occupants, ", ")
	if what == "" || names == "" {
		return what + names
	}
	return what + " " + names
}

// reportOf is the node side's report for the loan's epoch.
func reportOf(l *v1alpha1.Loan, share *v1alpha1.NodeShare) *v1alpha1.ParcelReport {
	if share == nil {
		return nil
	}
	for i := range share.Status.Parcels {
		if r := &share.Status.Parcels[i]; r.LoanUID == string(l.UID) && r.Epoch == max(l.Status.Epoch, 1) {
			return r
		}
	}
	return nil
}

// noticed lists the pods that have a notice, and their answers.
func noticed(ctx context.Context, p *screen.Page, c *cluster.Clients, l *v1alpha1.Loan) error {
	pods, err := podsOn(ctx, c, l.Spec.NodeName)
	if err != nil {
		return err
	}
	var rows [][]string
	for i := range pods {
		a := pods[i].Annotations
		var notice struct {
			Loan     string `json:"loan"`
			Deadline string `json:"deadline"`
		}
		if json.Unmarshal([]byte(a[v1alpha1.AnnotationNotice]), &notice) != nil || notice.Loan != l.Name {
			continue
		}
		rows = append(rows, []string{pods[i].Namespace + "/" + pods[i].Name, cell.OrNone(notice.Deadline), cell.OrNone(a[v1alpha1.AnnotationAck]),
			cell.OrNone(a[v1alpha1.AnnotationHeartbeat])})
	}
	p.Table("Pods that were given notice", "", []string{"POD", "DEADLINE", "ACK OF EPOCH", "HEARTBEAT UNTIL"}, rows)
	return nil
}

// podsOn lists the pods of one node by name.
func podsOn(ctx context.Context, c *cluster.Clients, node string) ([]corev1.Pod, error) {
	found, err := c.Core.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.Set{"spec.nodeName": node}.String()})
	if err != nil {
		return nil, fmt.Errorf("read the pods of node %s: %w", node, err)
	}
	pods := slices.DeleteFunc(found.Items, func(p corev1.Pod) bool { return p.Spec.NodeName != node })
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return fleet.Name{Namespace: a.Namespace, Name: a.Name}.Compare(fleet.Name{Namespace: b.Namespace, Name: b.Name})
	})
	return pods, nil
}
