package slo

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
)

func service(namespace, name, objective string) v1alpha1.ElasticService {
	s := v1alpha1.ElasticService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if objective != "" {
		s.Status.SLO = &v1alpha1.SLOStatus{Objective: v1alpha1.ObjectiveStatus{GoodMinutes: v1alpha1.Percent(objective),
			Over: "28d"}}
	}
	return s
}

func exported(t *testing.T, format string, alerts bool) (docs []string, notes string) {
	t.Helper()
	services := []v1alpha1.ElasticService{service("shop", "cart", "99.95%"), service("shop", "new", ""),
		service("bank", "ledger", "99%")}
	var out, said bytes.Buffer
	if err := export(services, format, alerts, &out, &said); err != nil {
		t.Fatal(err)
	}
	return strings.Split(out.String(), "---\n"), said.String()
}

// asksProperly checks that a query is PromQL that reads the judged minutes of one service.
func asksProperly(t *testing.T, query, namespace, name string) {
	t.Helper()
	if _, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(query, "{{.window}}", "5m")); err != nil {
		t.Errorf("%s: %v", query, err)
	}
	for _, want := range []string{"springtide_slo_judged_seconds_total", `namespace="` + namespace + `"`,
		`service="` + name + `"`} {
		if !strings.Contains(query, want) {
			t.Errorf("%s: no %s", query, want)
		}
	}
}

// The fields that OpenSLO's version 1 has, by its specification; any other is an error.
type openService struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Description string `json:"description"`
	} `json:"spec"`
}

type openMetric struct {
	MetricSource struct {
		Type string `json:"type"`
		Spec struct {
			Query string `json:"query"`
		} `json:"spec"`
	} `json:"metricSource"`
}

type openObjective struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Description     string `json:"description"`
		Service         string `json:"service"`
		BudgetingMethod string `json:"budgetingMethod"`
		TimeWindow      []struct {
			Duration  string `json:"duration"`
			IsRolling bool   `json:"isRolling"`
		} `json:"timeWindow"`
		Indicator struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Spec struct {
				RatioMetric struct {
					Counter     bool `json:"counter"`
					Good, Total openMetric
				} `json:"ratioMetric"`
			} `json:"spec"`
		} `json:"indicator"`
		Objectives []struct {
			DisplayName string  `json:"displayName"`
			Target      float64 `json:"target"`
		} `json:"objectives"`
	} `json:"spec"`
}

func TestOpenSLO(t *testing.T) {
	docs, notes := exported(t, "openslo", false)
	if len(docs) != 4 || notes != "shop/new is left out: its status has no objective yet\n" {
		t.Fatalf("%d documents, notes %q", len(docs), notes)
	}
	name := regexp.MustCompile(`^[a-z0-9][a-z0-9.|/\\-]*[a-z0-9]*$`)
	for i, want := range []struct {
		namespace, name string
		target          float64
	}{{"shop", "cart", 0.9995}, {"bank", "ledger", 0.99}} {
		var s openService
		if err := yaml.UnmarshalStrict([]byte(docs[2*i]),
			&s); err != nil || s.APIVersion != "openslo/v1" || s.Kind != "Service" {
			t.Errorf("%v:\n%s", err, docs[2*i])
		}
		var x openObjective
		if err := yaml.UnmarshalStrict([]byte(docs[2*i+1]),
			&x); err != nil || x.APIVersion != "openslo/v1" || x.Kind != "SLO" {
			t.Fatalf("%v:\n%s", err, docs[2*i+1])
		}
		if x.Spec.Service != s.Metadata.Name || len(x.Spec.Objectives) != 1 || x.Spec.Objectives[0].Target != want.target {
			t.Errorf("%+v of service %s", x.Spec, s.Metadata.Name)
		}
		w := x.Spec.TimeWindow
		if len(w) != 1 || w[0].Duration != "28d" || !w[0].IsRolling || x.Spec.BudgetingMethod != "Occurrences" {
			t.Errorf("window %+v, method %s", w, x.Spec.BudgetingMethod)
		}
		for _, n := range []string{s.Metadata.Name, x.Metadata.Name, x.Spec.Indicator.Metadata.Name} {
			if !name.MatchString(n) {
				t.Errorf("%q is no name of OpenSLO's", n)
			}
		}
		for _, m := range []openMetric{x.Spec.Indicator.Spec.RatioMetric.Good, x.Spec.Indicator.Spec.RatioMetric.Total} {
			asksProperly(t, m.MetricSource.Spec.Query, want.namespace, want.name)
		}
	}
}

// The fields of Sloth's PrometheusServiceLevel.
type serviceLevel struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Service string `json:"service"`
		SLOs    []struct {
			Name        string  `json:"name"`
			Objective   float64 `json:"objective"`
			Description string  `json:"description"`
			SLI         struct {
				Events struct {
					ErrorQuery string `json:"errorQuery"`
					TotalQuery string `json:"totalQuery"`
				} `json:"events"`
			} `json:"sli"`
			Alerting struct {
				Name                   string `json:"name"`
				PageAlert, TicketAlert struct {
					Disable bool `json:"disable"`
				}
			} `json:"alerting"`
		} `json:"slos"`
	} `json:"spec"`
}

func TestSloth(t *testing.T) {
	for _, alerts := range []bool{false, true} {
		docs, _ := exported(t, "sloth", alerts)
		if len(docs) != 2 {
			t.Fatalf("%d documents", len(docs))
		}
		var x serviceLevel
		if err := yaml.UnmarshalStrict([]byte(docs[0]),
			&x); err != nil || x.APIVersion != "sloth.slok.dev/v1" || x.Kind != "PrometheusServiceLevel" {
			t.Fatalf("%v:\n%s", err, docs[0])
		}
		if len(x.Spec.SLOs) != 1 || x.Spec.Service != "shop/cart" || x.Metadata.Namespace != "shop" {
			t.Fatalf("%+v", x)
		}
		s := x.Spec.SLOs[0]
		a := s.Alerting
		if s.Objective != 99.95 || a.Name == "" || a.PageAlert.Disable == alerts || a.TicketAlert.Disable == alerts {
			t.Errorf("%+v", s)
		}
		for _, q := range []string{s.SLI.Events.ErrorQuery, s.SLI.Events.TotalQuery} {
			asksProperly(t, q, "shop", "cart")
			if !strings.Contains(q, "[{{.window}}]") {
				t.Errorf("%s has no window of Sloth's", q)
			}
		}
	}
}
