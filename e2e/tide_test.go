package e2e

import (
	"context"
	"testing"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/springtide/springtide/dashboards"
	"github.com/springtide/springtide/lab/world"
)

// TestTide plays the last hours of an ebb and the flood after it, on a small fleet: services are scaled before the load comes, machines and
// sockets are lent and come home in time through every phase in order, no online pod is evicted, no cell is in two hands, and every query of the
// dashboards has an answer.
func TestTide(t *testing.T) {
	playTide(t, world.Options{Nodes: 40, Services: 8, Begin: 150 * time.Minute, Length: 5*time.Hour + 30*time.Minute}, 3*time.Hour)
}

// TestHalfDay is TestTide on a larger fleet, from midnight to noon.
func TestHalfDay(t *testing.T) {
	playTide(t, world.Options{Nodes: 80, Services: 16, Length: 12 * time.Hour}, 6*time.Hour)
}

// playTide plays a world whose last hours are the flood.
func playTide(t *testing.T, o world.Options, flood time.Duration) {
	w, s := play(t, o, nil)
	report := w.Report()
	t.Log("\n" + report.Text(100))

	for _, kind := range []string{"Node", "Socket"} {
		if got := s.returned(kind); len(got) == 0 {
			t.Errorf("no %s went through all phases in order; loans by last phase: %s", kind, s.summary())
		}
	}
	if report.Recalls.Late > 0 {
		t.Errorf("%d of %d recalls were late", report.Recalls.Late, report.Recalls.Count)
	}
	if report.MeanUtilisation <= report.MeanUtilisationStatic {
		t.Errorf("utilisation %.3f is no better than static provisioning's %.3f", report.MeanUtilisation, report.MeanUtilisationStatic)
	}
	if report.OnlineCoreHours >= report.OnlineCoreHoursStatic {
		t.Errorf("%.0f online core-hours against %.0f of static provisioning", report.OnlineCoreHours, report.OnlineCoreHoursStatic)
	}
	p := prometheus(t, w)
	scaledBeforeTheFlood(t, p, w, o, flood)
	dashboardsAnswer(t, p, w.Now())
}

// scaledBeforeTheFlood asks Prometheus for what the ready replicas of each workload were used to in each minute: where the load rose by
// half or more, the replicas must have been ready before their utilisation passed what the SLO is designed for.
func scaledBeforeTheFlood(t *testing.T, p promv1.API, w *world.World, o world.Options, flood time.Duration) {
	t.Helper()
	const use = `springtide:workload_cpu_usage_cores:sum{workload_kind="Deployment"}`
	watched := promDuration(o.Length - 30*time.Minute)
	// Cores in use over the requested cores of ready pods, minute by minute; 0.85 is the knee past which waiting takes over.
	over := `count_over_time((` + use + ` / on (namespace, workload) group_left ()
		sum by (namespace, workload) (
			kube_pod_container_resource_requests{resource="cpu"} * on (namespace, pod) group_left (workload) springtide:pod_workload:info{workload_kind="Deployment"}
			* on (namespace, pod) group_left () (kube_pod_status_ready{condition="true"} == 1)) > 0.85)[` + watched + `:1m])`
	rose := query(t, p, `count(max_over_time(`+use+`[`+promDuration(flood)+`]) > 1.5 * max_over_time(`+use+`[1h] offset `+promDuration(flood)+`))`, w.Now())
	if len(rose) == 0 || rose[0].Value < 3 {
		t.Fatalf("the flood did not come: %v", rose)
	}
	late := query(t, p, `sum(`+over+`) or vector(0)`, w.Now())
	minutes := query(t, p, `sum(count_over_time(`+use+`[`+watched+`:1m]))`, w.Now())
	// Nearly half of all service-minutes: some services are young.
	if least := float64(o.Services) * (o.Length - 30*time.Minute).Minutes() * 0.45; len(late) == 0 || len(minutes) == 0 || float64(minutes[0].Value) < least {
		t.Fatalf("no utilisation to judge: %v of %v, want %v at least", late, minutes, least)
	}
	// One service-minute in five hundred: bursts that no history foretells are in these traces.
	if share := float64(late[0].Value / minutes[0].Value); share > 0.002 {
		t.Errorf("ready replicas were beyond the knee in %.2f %% of the service-minutes (%v of %v)", 100*share, late[0].Value, minutes[0].Value)
	}
}

func promDuration(d time.Duration) string { return model.Duration(d).String() }

// dashboardsAnswer asks every query that operators look at. An alert that does not fire has no answer, so its series are asked for instead.
func dashboardsAnswer(t *testing.T, p promv1.API, now time.Time) {
	t.Helper()
	for name, d := range dashboards.All() {
		for _, panel := range d.Panels() {
			for _, q := range panel.Queries {
				if len(query(t, p, q.Expr, now)) == 0 && !panel.Sparse {
					t.Errorf("%s, %s: no answer to %s", name, panel.Title, q.Expr)
				}
			}
		}
	}
	for _, a := range dashboards.Alerts() {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(a.Expr)
		if err != nil {
			t.Fatal(err)
		}
		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok && !a.Sparse && len(query(t, p, v.String(), now)) == 0 {
				t.Errorf("alert %s: no series for %s", a.Name, v)
			}
			return nil
		})
	}
}

func prometheus(t *testing.T, w *world.World) promv1.API {
	t.Helper()
	c, err := promapi.NewClient(promapi.Config{Address: w.PrometheusURL()})
	if err != nil {
		t.Fatal(err)
	}
	return promv1.NewAPI(c)
}

func query(t *testing.T, p promv1.API, expr string, at time.Time) model.Vector {
	t.Helper()
	v, _, _, err := p.Query(context.Background(), expr, at)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	vec, ok := v.(model.Vector)
	if !ok {
		t.Fatalf("%s: answered with %T", expr, v)
	}
	return vec
}
