package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
)

// NewNodesCommand makes `springtide nodes`.
func NewNodesCommand(o *cluster.Options) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "nodes [NAME...]",
		Short: "List machines of pools: where their home is, who holds them, and what keeps them",
		Long: "List the machines that a pool picks. HOLDER is the pool that uses the machine now, or how many of its sockets are away; PHASE is that of\n" +
			"the loan that is furthest on its way; AGENT is Alive, Silent (then nothing of the machine is lent) or - where none ever ran; PINNED is\n" +
			"what keeps a machine from being emptied. --all lists machines of no pool as well.",
		Example: "  springtide nodes --sort-by holder\n  springtide nodes node-17 node-18 -o wide",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.Connect(o)
			if err != nil {
				return err
			}
			return nodes(cmd.Context(), o, c, args, all, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.Cluster(cmd)
	o.Controller(cmd)
	o.Formats(cmd, "table", "wide", "json", "yaml")
	o.CompletesAll(cmd, cluster.Nodes)
	f := cmd.Flags()
	f.StringVarP(&o.Selector, "selector", "l", "", "only machines with these labels")
	f.StringVar(&o.SortBy, "sort-by", "", "column to sort by, as in holder; by name when empty")
	f.BoolVar(&all, "all", false, "list machines of no pool as well")
	return cmd
}

// nodeRow is what is listed of one machine.
type nodeRow struct {
	Name   string   `json:"name"`
	Pool   string   `json:"pool,omitempty"`
	Holder string   `json:"holder,omitempty"`
	Loans  []string `json:"loans,omitempty"`
	Phase  string   `json:"phase,omitempty"`
	// Due is a time in RFC 3339.
	Due    string `json:"due,omitempty"`
	Agent  string `json:"agent,omitempty"`
	Pinned string `json:"pinned,omitempty"`
	Marks  string `json:"marks,omitempty"`
}

func nodes(ctx context.Context, o *cluster.Options, c *cluster.Clients, names []string, everything bool, out, notes io.Writer) error {
	rows, err := nodeRows(ctx, o, c, everything)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		known := make([]string, len(rows))
		for i := range rows {
			known[i] = rows[i].Name
		}
		var kept []nodeRow
		for _, n := range names {
			i := slices.Index(known, n)
			if i < 0 {
				return usage.Found("no pool picks a machine %s%s", n, usage.DidYouMean(n, known))
			}
			kept = append(kept, rows[i])
		}
		rows = kept
	}
	if o.Output == "json" || o.Output == "yaml" {
		return screen.Encode(out, o.Output, append([]nodeRow{}, rows...))
	}
	if len(rows) == 0 {
		fmt.Fprintln(notes, "no machine belongs to a pool: write a CapacityPool whose nodeSelector picks machines, or give --all")
		return nil
	}
	wide := o.Output == "wide"
	titles := []string{"NAME", "POOL", "HOLDER", "PHASE", "DUE", "AGENT", "PINNED"}
	if wide {
		titles = []string{"NAME", "POOL", "HOLDER", "LOANS", "PHASE", "DUE", "AGENT", "MARKS", "PINNED"}
	}
	cells := make([][]string, len(rows))
	for i, r := range rows {
		if wide {
			cells[i] = []string{r.Name, cell.OrNone(r.Pool), cell.OrNone(r.Holder), cell.OrNone(strings.Join(r.Loans, ", ")), cell.OrNone(r.Phase), dueText(r.Due), cell.OrNone(r.Agent), cell.OrNone(r.Marks), cell.OrNone(r.Pinned)}
			continue
		}
		cells[i] = []string{r.Name, cell.OrNone(r.Pool), cell.OrNone(r.Holder), cell.OrNone(r.Phase), dueText(r.Due), cell.OrNone(r.Agent), cell.OrNone(r.Pinned)}
	}
	if o.SortBy != "" {
		k := slices.IndexFunc(titles, func(t string) bool { return strings.EqualFold(t, o.SortBy) })
		if k < 0 {
			return usage.Error{Err: fmt.Errorf("--sort-by %s: there is no such column%s", o.SortBy, usage.DidYouMean(strings.ToUpper(o.SortBy), titles))}
		}
		slices.SortStableFunc(cells, func(a, b []string) int { return compareCells(a[k], b[k]) })
	}
	return (&screen.Table{Out: out, Colours: screen.ColoursFor(out), Tight: true, Fit: !wide}).Print(append([][]string{titles}, cells...))
}

func nodeRows(ctx context.Context, o *cluster.Options, c *cluster.Clients, everything bool) ([]nodeRow, error) {
	found, err := c.Core.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: o.Selector})
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	all, err := cluster.List[v1alpha1.CapacityPool](ctx, c, cluster.Pools, "")
	if err != nil {
		return nil, err
	}
	away, err := cluster.List[v1alpha1.Loan](ctx, c, cluster.Loans, "")
	if err != nil {
		return nil, err
	}
	leases, err := c.Core.CoordinationV1().Leases(o.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the Leases of agents in %s: %w", o.Namespace, err)
	}
	agents := map[string]*coordinationv1.Lease{}
	for i := range leases.Items {
		if name, ok := strings.CutPrefix(leases.Items[i].Name, v1alpha1.AgentLeasePrefix); ok {
			agents[name] = &leases.Items[i]
		}
	}
	pinned := map[string]string{}
	for i := range all {
		for _, p := range all[i].Status.Pinned {
			pinned[p.Node] = p.By
		}
	}
	var rows []nodeRow
	for i := range found.Items {
		n := &found.Items[i]
		homes := cluster.HomesOf(n, all)
		if len(homes) == 0 && !everything {
			continue
		}
		r := nodeRow{Name: n.Name, Pool: strings.Join(homes, "+"), Agent: agentWord(agents[n.Name], c.Wall()), Pinned: cmp.Or(cluster.StayOf(n), pinned[n.Name]), Marks: marksWord(n)}
		r.hold(away)
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b nodeRow) int { return cmp.Compare(a.Name, b.Name) })
	return rows, nil
}

// dueText prints the time of a row for people.
func dueText(due string) string {
	at, err := time.Parse(time.RFC3339, due)
	if err != nil {
		return cell.None
	}
	return cell.ShortTime(&metav1.Time{Time: at})
}

// hold finds who holds a machine by its loans.
func (r *nodeRow) hold(away []v1alpha1.Loan) {
	r.Holder = r.Pool
	sockets := 0
	for i := range away {
		l := &away[i]
		if l.Spec.NodeName != r.Name {
			continue
		}
		r.Loans = append(r.Loans, l.Name)
		phase := cell.Phase(&l.Status)
		if phase == "Returned" || phase == "Cancelled" {
			continue
		}
		r.Phase, r.Due = phase, ""
		if l.Status.Due != nil {
			r.Due = l.Status.Due.UTC().Format(time.RFC3339)
		}
		if phase == "Emptying" {
			continue
		}
		r.Holder = l.Spec.To
		if l.Spec.Kind == "Socket" {
			sockets++
		}
	}
	if sockets > 0 {
		r.Holder = fmt.Sprintf("%s (%s)", r.Holder, cell.Count(sockets, "socket"))
	}
}

func agentWord(l *coordinationv1.Lease, now time.Time) string {
	switch {
	case l == nil:
		return ""
	case cluster.AgentAlive(l, now):
		return "Alive"
	}
	return "Silent"
}

func marksWord(n *corev1.Node) string {
	var out []string
	for _, t := range n.Spec.Taints {
		if t.Key == v1alpha1.TaintHolder || t.Key == v1alpha1.TaintFenced {
			out = append(out, t.Key)
		}
	}
	if n.Labels[v1alpha1.LabelOffline] == "true" {
		out = append(out, v1alpha1.LabelOffline)
	}
	return strings.Join(out, ", ")
}
