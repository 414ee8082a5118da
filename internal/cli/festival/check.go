package festival

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/festival"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/planner"
)

// planCheck is what the check of one plan found.
type planCheck struct {
	Plan string `json:"plan"`
	// Unknown are services that the plan lifts and the cluster does not have.
	Unknown []string      `json:"unknown,omitempty"`
	Hours   []hpa.HourRow `json:"hours"`
	// Tenants are the hours in which tenants want more than they are guaranteed.
	Tenants []tenantHour `json:"tenants,omitempty"`
	lifts   [][]string
}

func newFestivalCheckCommand(o *cluster.Options) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "check -f PLAN.yaml",
		Short: "Compute a festival plan: demand against supply by hour",
		Long: "Compute a festival plan hour by hour, as if it were approved and no other plan ran: what online services would ask for at most with\n" +
			"and without it, against what the machines of online pools hold of their pods (lent ones are recalled in " +
			"time): DaemonSets, pods of no\n" +
			"service and what whole pods leave over are taken off, and so are machines that are not ready, about to " +
			"leave, or did not come home.\n" +
			"The hours of all services are added as if their peaks met, so the bias is towards seeing a shortage.\n\n" +
			"The controller answers with its forecasts, or --store names its store. For an hour that no forecast reaches, the same hour of its last day stands in;\n" +
			"such hours are marked. Where a tenant wants more than its quota guarantees at that hour, slices included, the hour is listed with what\n" +
			"must be borrowed. Exit code 1 when an hour is short or beyond a tenant's borrowing limit, a lift is cut by its service's bounds, or\n" +
			"a service is not there.",
		Example: "  springtide festival check -f double-eleven.yaml",
		Args:    usage.Exactly(),
		RunE: withPlans(o, &path, func(cmd *cobra.Command, c *cluster.Clients, plans []*festivalPlan) error {
			return checkPlans(cmd.Context(), o, c, plans, cmd.OutOrStdout())
		}),
	}
	planFile(o, cmd, &path)
	o.Cluster(cmd)
	o.History(cmd)
	o.Formats(cmd, "table", "json", "yaml")
	return cmd
}

func checkPlans(ctx context.Context, o *cluster.Options, c *cluster.Clients, plans []*festivalPlan, out io.Writer) error {
	facts, err := c.Facts(ctx)
	if err != nil {
		return err
	}
	m, done, err := o.Remember(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	known, err := learnedOf(ctx, m, facts.Services)
	if err != nil {
		return err
	}
	checks := make([]planCheck, len(plans))
	problems := 0
	for i, p := range plans {
		f := occurrence(&p.FestivalPlan, c.Now())
		checks[i] = planCheck{Plan: p.Name, Hours: hpa.FestivalCheck(f, facts.Services, known.tides, known.portraits,
			planner.OnlineRoom(facts))}
		checks[i].Tenants = tenantHours(f, facts, known)
		for _, l := range f.Lifts {
			if facts.Service(l.Service) == nil && !slices.Contains(checks[i].Unknown, string(l.Service)) {
				checks[i].Unknown = append(checks[i].Unknown, string(l.Service))
			}
			if !l.Ramp {
				checks[i].lifts = append(checks[i].lifts, []string{l.Phase, string(l.Service),
					cell.Stamp(&metav1.Time{Time: l.Start}),
					cell.Stamp(&metav1.Time{Time: l.End}), liftText(l)})
			}
		}
		problems += checks[i].problems()
	}
	if o.Output == "table" {
		for i := range checks {
			if err := checks[i].print(out); err != nil {
				return err
			}
		}
	} else if err := screen.Encode(out, o.Output, checks); err != nil {
		return err
	}
	if problems > 0 {
		return usage.Found("%s with the plan", cell.Count(problems, "problem"))
	}
	return nil
}

// occurrence is what a plan says for the festival that lasts at a time, or comes next.
func occurrence(p *v1alpha1.FestivalPlan, now time.Time) fleet.Festival {
	plan := convert.FestivalOf(p)
	return festival.Expand(&plan, now)
}

func liftText(l fleet.Lift) string {
	var parts []string
	if l.Factor > 0 {
		parts = append(parts, fmt.Sprintf("%gx the load", l.Factor))
	}
	if l.Floor > 0 {
		parts = append(parts, fmt.Sprintf("at least %d replicas", l.Floor))
	}
	return strings.Join(parts, ", ")
}

// problems counts hours that are short, or beyond a tenant's borrowing limit, services whose lift is cut, and services that are not there.
func (c *planCheck) problems() int {
	n := len(c.Unknown) + len(c.cut())
	for i := range c.Tenants {
		if !c.Tenants[i].Refused.IsZero() {
			n++
		}
	}
	for _, h := range c.Hours {
		if !h.Short.IsZero() {
			n++
		}
	}
	return n
}

// cut names the services whose lift their own bounds cut in any hour.
func (c *planCheck) cut() []string {
	return c.named(func(h *hpa.HourRow) []fleet.ServiceID { return h.Cut })
}

func (c *planCheck) assumed() []string {
	return c.named(func(h *hpa.HourRow) []fleet.ServiceID { return h.Assumed })
}

func (c *planCheck) named(of func(*hpa.HourRow) []fleet.ServiceID) []string {
	var out []string
	for i := range c.Hours {
		for _, id := range of(&c.Hours[i]) {
			if !slices.Contains(out, string(id)) {
				out = append(out, string(id))
			}
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}

func (c *planCheck) print(out io.Writer) error {
	p := &screen.Page{Title: "Plan " + c.Plan}
	if len(c.Unknown) > 0 {
		p.Add("Not there", "%s: write an ElasticService for each, or take the lift out", strings.Join(c.Unknown, ", "))
	}
	if cut := c.cut(); len(cut) > 0 {
		p.Add("Cut", "%s: raise replicas.max of each, or the lift does less than it says", strings.Join(cut, ", "))
	}
	if assumed := c.assumed(); len(assumed) > 0 {
		p.Add("Assumed", "%d services have no forecast for some hours (marked *): %s", len(assumed), cell.First(assumed, cell.FewNames))
	}
	p.Table("Lifts", "", []string{"PHASE", "SERVICE", "FROM", "UNTIL", "LIFT"}, c.lifts)
	c.tenantTable(p)
	rows := make([][]string, len(c.Hours))
	for i := range c.Hours {
		h := &c.Hours[i]
		from := cell.Stamp(&metav1.Time{Time: h.From})
		if len(h.Assumed) > 0 {
			from += " *"
		}
		short := cell.None
		if !h.Short.IsZero() {
			short = h.Short.String()
		}
		rows[i] = []string{from, fmt.Sprintf("%d -> %d", h.ReplicasWithout, h.ReplicasWith), cores(h.Without.CPU) + " -> " + cores(h.With.CPU),
			cores(h.Supply.CPU), gib(h.With.Memory), gib(h.Supply.Memory), short}
	}
	p.Table("Demand against supply", "", []string{"HOUR", "REPLICAS", "CORES", "OF CORES", "GIB", "OF GIB", "SHORT"}, rows)
	return p.Print(out)
}

func cores(m fleet.MilliCPU) string { return fmt.Sprint(int64(m) / 1000) }

func gib(b fleet.Bytes) string { return fmt.Sprint(int64(b) >> 30) }
