package trial

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/takeover"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/whatif"
	"github.com/springtide/springtide/portrait"
)

// Trial is what a service would have been, next to what it was.
type Trial struct {
	Service string `json:"service"`
	// From and To bound what was played; before From history only taught.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Carries is the load of a replica above which a minute is bad, and Basis what that is taken from.
	Carries string `json:"carries"`
	Basis   string `json:"basis"`
	StartUp string `json:"startUp"`
	// Cases are what sizes the service today, and Springtide.
	Cases []Case   `json:"cases"`
	Notes []string `json:"notes,omitempty"`

	knowledge *whatif.Knowledge
	played    []whatif.Result
}

// Case is what one way to size came to.
type Case struct {
	Name         string    `json:"name"`
	BadMinutes   int       `json:"badMinutes"`
	Minutes      int       `json:"minutes"`
	GoodPercent  float64   `json:"goodPercent"`
	CoreHours    float64   `json:"coreHours"`
	Moves        int       `json:"moves"`
	LeastMargin  float64   `json:"leastMargin"`
	LeastMarginT time.Time `json:"leastMarginTime"`
}

// Facts are what a service states, with what one of its pods requests and how many there are.
func Facts(ctx context.Context, c *cluster.Clients, s *v1alpha1.ElasticService, namespaceLabel string) (fleet.Service,
	error) {
	facts := convert.NewServiceFacts(s, namespaceLabel)
	if facts.Problem.Any() {
		return fleet.Service{}, usage.Error{Err: fmt.Errorf("ElasticService %s/%s: %s", s.Namespace, s.Name,
			facts.Problem.Message)}
	}
	svc := facts.Service
	ref := s.Spec.TargetRef
	name := fleet.Name{Namespace: s.Namespace, Name: ref.Name}
	t, err := c.Target(ctx, s.Namespace, &ref)
	if err != nil {
		return svc, reading(ref.Kind, name, err)
	}
	svc.Request, svc.Workers, svc.Measured = t.Request, t.Workers, t.Measured
	svc.Desired = fleet.KnownAt(t.Replicas, c.Now())
	if svc.Request.CPU == 0 {
		return svc, usage.Found("%s %s: its pods request no CPU, so a replica's load cannot be judged: set "+
			"resources.requests.cpu",
			ref.Kind, name)
	}
	return svc, nil
}

func reading(kind string, name fleet.Name, err error) error {
	if apierrors.IsNotFound(err) {
		return usage.Found("there is no %s %s", kind, name)
	}
	return err
}

// Of reads the history of one service and plays it.
func Of(ctx context.Context, c *cluster.Clients, from *History, s *v1alpha1.ElasticService) (*Trial, error) {
	svc, err := Facts(ctx, c, s, from.NamespaceLabel())
	if err != nil {
		return nil, err
	}
	history, err := from.Read(ctx, []fleet.Service{svc}, c.Now())
	if err != nil {
		return nil, err
	}
	return Run(ctx, c, s, &svc, history[svc.ID])
}

// Run plays the history of a service. The first case is what sizes it today, the second Springtide.
func Run(ctx context.Context, c *cluster.Clients, s *v1alpha1.ElasticService, svc *fleet.Service,
	b portrait.Batch) (*Trial,
	error) {
	k, err := whatif.Learn(svc, b, whatif.Fine, portrait.Options{}, forecast.Options{})
	if err != nil {
		return nil, usage.Found("%s/%s cannot be played: %v", s.Namespace, s.Name, err)
	}
	t := &Trial{Service: s.Namespace + "/" + s.Name, From: k.From, To: k.To, Basis: k.Basis, StartUp: k.StartUp.String(),
		Carries: amount(k.Limit, b), knowledge: k}
	name, today, err := t.today(ctx, c, s, svc)
	if err != nil {
		return nil, err
	}
	t.add(k.Play(name, svc, today))
	t.add(k.Play("Springtide", svc, &whatif.Springtide{Service: *svc}))
	t.noteMaximum(svc)
	return t, nil
}

// noteMaximum says in how many bad minutes Springtide would have had no more to ask for.
func (t *Trial) noteMaximum(svc *fleet.Service) {
	n := 0
	for _, s := range t.played[1].Steps {
		if svc.Max > 0 && s.Desired >= svc.Max && s.Load > float64(s.Ready)*t.knowledge.Limit {
			n++
		}
	}
	if n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("in %d of Springtide's bad minutes replicas were at spec.replicas.max, %d",
			n, svc.Max))
	}
}

func (t *Trial) add(r whatif.Result) {
	t.played = append(t.played, r)
	c := Case{Name: r.Name, BadMinutes: r.BadMinutes, Minutes: r.Minutes, CoreHours: math.Round(r.CoreHours*10) / 10,
		Moves: r.Moves}
	if r.Minutes > 0 {
		c.GoodPercent = math.Floor((1-float64(r.BadMinutes)/float64(r.Minutes))*1e5) / 1e3
	}
	if !r.MarginAt.IsZero() {
		c.LeastMargin, c.LeastMarginT = math.Round(r.Margin*1000)/1000, r.MarginAt
	}
	t.Cases = append(t.Cases, c)
}

// today is what sizes the service now: its autoscalers with their own numbers, else the replicas that it has.
func (t *Trial) today(ctx context.Context, c *cluster.Clients, s *v1alpha1.ElasticService, svc *fleet.Service) (string,
	whatif.Scaler, error) {
	found, notes, err := takeover.Incumbents(ctx, c, s.Namespace, s.Spec.TargetRef)
	if err != nil {
		return "", nil, err
	}
	t.Notes = append(t.Notes, notes...)
	if len(found) == 0 {
		n := max(svc.Desired.Value, 1)
		if svc.Mode.Acts() {
			// Springtide moves them: the static count is what would have stood there without it.
			without := *svc
			without.HPA = nil
			name, scaler := whatif.Today(&without, t.knowledge)
			return name, scaler, nil
		}
		return fmt.Sprintf("static, %d replicas", n), whatif.Fixed(n), nil
	}
	a := &whatif.Autoscaler{Request: svc.Request}
	var names []string
	for _, x := range found {
		names = append(names, x.Kind+" "+x.Name.Name)
		t.take(a, x.Service)
		for _, l := range x.Lost {
			t.Notes = append(t.Notes, fmt.Sprintf("%s %s is played without %s", x.Kind, x.Name.Name, l))
		}
	}
	return strings.Join(names, " and "), a, nil
}

// take adds what one autoscaler does.
func (t *Trial) take(a *whatif.Autoscaler, s *v1alpha1.ElasticService) {
	f := convert.NewServiceFacts(s, "namespace").Service
	if a.Max == 0 || f.Min < a.Min {
		a.Min = f.Min
	}
	a.Max = max(a.Max, f.Max)
	a.Windows = append(a.Windows, f.Windows...)
	if w := f.Behavior.Down.Stabilization; w.OK {
		a.Stabilization = w.Value
	}
	for _, m := range f.Metrics {
		if m.Type == fleet.MetricQuery {
			t.Notes = append(t.Notes, fmt.Sprintf("metric %s of its own query is not played: its history is not read", m.Name))
			continue
		}
		if !slices.ContainsFunc(a.Metrics, func(x fleet.Metric) bool { return x.Type == m.Type }) {
			a.Metrics = append(a.Metrics, m)
		}
	}
}

func amount(load float64, b portrait.Batch) string {
	if b.Load.Known() == 0 {
		return fmt.Sprintf("%.3g cores", load)
	}
	return fmt.Sprintf("%.4g requests/s", load)
}
