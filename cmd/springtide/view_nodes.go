package main

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
)

func newNodesCommand(o *cliOptions) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "nodes [NAME...]",
		Short: "List machines of pools: where their home is, who holds them, and what keeps them",
		Long: "List the machines that a pool picks. HOLDER is the pool that uses the machine now, or how many of its sockets are away; PHASE is that of\n" +
			"the loan that is furthest on its way; AGENT is Alive, Silent (then nothing of the machine is lent) or - where none ever ran; PINNED is\n" +
			"what keeps a machine from being emptied. --all lists machines of no pool as well.",
		Example: "  springtide nodes --sort-by holder\n  springtide nodes node-17 node-18 -o wide",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.connect(o)
			if err != nil {
				return err
			}
			return o.nodes(cmd.Context(), c, args, all, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.cluster(cmd)
	o.controller(cmd)
	o.formats(cmd, "table", "wide", "json", "yaml")
	o.completesAll(cmd, nodes)
	f := cmd.Flags()
	f.StringVarP(&o.selector, "selector", "l", "", "only machines with these labels")
	f.StringVar(&o.sortBy, "sort-by", "", "column to sort by, as in holder; by name when empty")
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

func (o *cliOptions) nodes(ctx context.Context, c *clients, names []string, everything bool, out, notes io.Writer) error {
	rows, err := o.nodeRows(ctx, c, everything)
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
				return errFound("no pool picks a machine %s%s", n, didYouMean(n, known))
			}
			kept = append(kept, rows[i])
		}
		rows = kept
	}
	if o.output == "json" || o.output == "yaml" {
		return encode(out, o.output, append([]nodeRow{}, rows...))
	}
	if len(rows) == 0 {
		fmt.Fprintln(notes, "no machine belongs to a pool: write a CapacityPool whose nodeSelector picks machines, or give --all")
		return nil
	}
	wide := o.output == "wide"
	titles := []string{"NAME", "POOL", "HOLDER", "PHASE", "DUE", "AGENT", "PINNED"}
	if wide {
		titles = []string{"NAME", "POOL", "HOLDER", "LOANS", "PHASE", "DUE", "AGENT", "MARKS", "PINNED"}
	}
	cells := make([][]string, len(rows))
	for i, r := range rows {
		if wide {
			cells[i] = []string{r.Name, orNone(r.Pool), orNone(r.Holder), orNone(strings.Join(r.Loans, ", ")), orNone(r.Phase), dueText(r.Due), orNone(r.Agent), orNone(r.Marks), orNone(r.Pinned)}
			continue
		}
		cells[i] = []string{r.Name, orNone(r.Pool), orNone(r.Holder), orNone(r.Phase), dueText(r.Due), orNone(r.Agent), orNone(r.Pinned)}
	}
	if o.sortBy != "" {
		k := slices.IndexFunc(titles, func(t string) bool { return strings.EqualFold(t, o.sortBy) })
		if k < 0 {
			return usageError{fmt.Errorf("--sort-by %s: there is no such column%s", o.sortBy, didYouMean(strings.ToUpper(o.sortBy), titles))}
		}
		slices.SortStableFunc(cells, func(a, b []string) int { return compareCells(a[k], b[k]) })
	}
	return (&table{out: out, colours: coloursFor(out), tight: true, fit: !wide}).print(append([][]string{titles}, cells...))
}

func (o *cliOptions) nodeRows(ctx context.Context, c *clients, everything bool) ([]nodeRow, error) {
	found, err := c.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: o.selector})
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	all, err := list[v1alpha1.CapacityPool](ctx, c, pools, "")
	if err != nil {
		return nil, err
	}
	away, err := list[v1alpha1.Loan](ctx, c, loans, "")
	if err != nil {
		return nil, err
	}
	leases, err := c.core.CoordinationV1().Leases(o.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the Leases of agents in %s: %w", o.namespace, err)
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
		homes := homesOf(n, all)
		if len(homes) == 0 && !everything {
			continue
		}
		r := nodeRow{Name: n.Name, Pool: strings.Join(homes, "+"), Agent: agentWord(agents[n.Name], c.wall()), Pinned: cmp.Or(stayOf(n), pinned[n.Name]), Marks: marksWord(n)}
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
		return none
	}
	return shortTime(&metav1.Time{Time: at})
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
		phase := phaseText(&l.Status)
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
		r.Holder = fmt.Sprintf("%s (%s)", r.Holder, count(sockets, "socket"))
	}
}

func agentWord(l *coordinationv1.Lease, now time.Time) string {
	switch {
	case l == nil:
		return ""
	case agentAlive(l, now):
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
