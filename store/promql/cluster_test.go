package promql

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
)

// labelled puts a label on each series of a script.
func labelled(script, label string) string {
	return regexp.MustCompile(`(?m)^(  [a-z_:0-9]+)\{`).ReplaceAllString(strings.TrimPrefix(script, "\nload 15s\n"), "${1}{"+label+", ")
}

// busier is another cluster with the same names: it has one pod more, and its counters run faster.
func busier(script string) string {
	return strings.NewReplacer("0+1500x", "0+4500x", "0+1350x", "0+2700x", "0+30x", "0+90x", "0+3x", "0+6x", "300e6", "400e6").Replace(script) + `  kube_pod_owner{namespace="shop", pod="cart-7d-z", owner_kind="ReplicaSet", owner_name="cart-7d", owner_is_controller="true", instance="ksm-0"} 1x240
  kube_pod_status_ready{namespace="shop", pod="cart-7d-z", condition="true", instance="ksm-0"} 1x240
  container_cpu_usage_seconds_total{namespace="shop", pod="cart-7d-z", container="app", cpu="total"} 0+300x240
  container_memory_working_set_bytes{namespace="shop", pod="cart-7d-z", container="app"} 9e9x240
  http_server_request_duration_seconds_count{namespace="shop", pod="cart-7d-z"} 0+9000x240
  http_server_request_duration_seconds_bucket{namespace="shop", pod="cart-7d-z", le="+Inf"} 0+9000x240
`
}

// TestOneOfSeveralClusters: where a source holds other clusters with the same namespaces and names, or copies of each series, a controller reads its own cluster, each
// series once: live samples, tenants' queries and history, with rules of each cluster, with one file of rules for all, and without rules.
func TestOneOfSeveralClusters(t *testing.T) {
	long(t)
	type result struct {
		Live  map[fleet.ServiceID]hpa.Live
		Since map[fleet.ServiceID]portrait.Batch
	}
	services := []fleet.Service{cart(), stock()}
	look := func(t *testing.T, script string, c Cluster, rules *Cluster) result {
		p := newProm(t, script, 1e6)
		if rules != nil {
			p.recordFile(rulesOf(t, *rules), at(10*time.Minute), at(26*time.Minute))
		}
		h := p.history(Options{Cluster: c})
		now := at(26*time.Minute + 5*time.Second)
		mixed := len(c.Matchers)+len(c.Labels)+len(c.ReplicaLabels) == 0 && script != shop
		switch err := h.Prefetch(t.Context(), services, now); {
		case err != nil && mixed:
			return result{} // two clusters read as one have two owners of each pod, which is an error
		case err != nil:
			t.Fatal(err)
		}
		live, err := observed(h, services, now)
		if err != nil {
			t.Fatal(err)
		}
		if s := h.Stats(); s.Problems != nil || s.Recorded != (rules != nil) {
			t.Errorf("recorded series are seen: %v, want %v; problems %v", s.Recorded, rules != nil, s.Problems)
		}
		return result{live, read(t, h, services, at(15*time.Minute), now)}
	}
	for _, c := range []struct {
		name, own, other string // labels of this cluster's series and of the second set
		copies           bool   // the second set is a copy, not a cluster
		read             Cluster
		shared           Cluster // one file of rules for all
	}{
		{"cluster", `cluster="eu"`, `cluster="us"`, false, Cluster{Matchers: []string{`cluster="eu"`}}, Cluster{Labels: []string{"cluster"}}},
		{"k8s_cluster", `k8s_cluster="eu-2"`, `k8s_cluster="us-1"`, false, Cluster{Matchers: []string{`k8s_cluster=~"eu-.+"`}}, Cluster{Labels: []string{"k8s_cluster"}}},
		{"tenants of Mimir", `__tenant_id__="team-a"`, `__tenant_id__="team-b"`, false, Cluster{Matchers: []string{`__tenant_id__="team-a"`}}, Cluster{Labels: []string{"__tenant_id__"}}},
		{"two labels", `region="eu", env="prod"`, `region="eu", env="stage"`, false, Cluster{Matchers: []string{`region="eu"`, `env!="stage"`}}, Cluster{Labels: []string{"env", "region"}}},
		{"copies of a pair", `replica="0"`, `replica="1"`, true, Cluster{}, Cluster{}},
		{"copies under a label of their own", `ha="0"`, `ha="1"`, true, Cluster{ReplicaLabels: []string{"ha"}}, Cluster{ReplicaLabels: []string{"ha"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := shop
			if !c.copies {
				other = busier(shop)
			}
			script := "load 15s\n" + labelled(shop, c.own) + labelled(other, c.other)
			for name, rules := range map[string]*Cluster{"raw": nil, "rules of the cluster": &c.read, "rules of all": &c.shared} {
				t.Run(name, func(t *testing.T) {
					alone := rules
					if alone != nil {
						alone = &Cluster{}
					}
					queue := services[0].Metrics[1].Query
					defer func() { services[0].Metrics[1].Query = queue }()
					if c.copies {
						services[0].Metrics[1].Query = "sum(max without (replica, ha) (requests_in_queue))" // a tenant counts copies itself
					}
					want := look(t, shop, Cluster{}, alone)
					if d := cmp.Diff(want, look(t, script, c.read, rules), approx, approxDuration); d != "" {
						t.Errorf("-alone +among others:\n%s", d)
					}
					if cmp.Equal(want, look(t, script, Cluster{}, rules), approx, approxDuration) && c.name != "copies of a pair" {
						t.Error("without the cluster's configuration all is as well: the test proves nothing")
					}
				})
			}
		})
	}
}

// rulesOf writes the rule file of a cluster.
func rulesOf(t *testing.T, c Cluster) string {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal(Rules(), &doc); err != nil {
		t.Fatal(err)
	}
	if err := c.RewriteRules(doc); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEverySelectorIsNarrowed: whatever the controller asks, each selector has the matchers.
func TestEverySelectorIsNarrowed(t *testing.T) {
	p := newProm(t, "load 15s\n"+labelled(shop, `cluster="eu"`), 1e6)
	h := p.history(Options{Cluster: Cluster{Matchers: []string{`cluster="eu"`}}})
	services := []fleet.Service{cart(), stock()}
	now := at(26 * time.Minute)
	if err := h.Prefetch(t.Context(), services, now); err != nil {
		t.Fatal(err)
	}
	read(t, h, services, at(0), now)
	n := 0
	for _, q := range p.asked() {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(q)
		if err != nil {
			t.Fatal(err)
		}
		for s := range selectorsOf(e) {
			if n++; !hasMatcher(s, "cluster", "eu") {
				t.Errorf("%s in %s reads all clusters", s, q)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d selectors", n)
	}
}

// TestNarrow: rewriting keeps what an expression means, and refuses what is no matcher and what reads another cluster.
func TestNarrow(t *testing.T) {
	c := Cluster{Matchers: []string{`cluster="eu"`}, Labels: []string{"region"}, ReplicaLabels: []string{"ha"}}
	n, err := c.narrower()
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`max(up)`:                        `max by (cluster, region) (up{cluster="eu"})`,
		`sum by (pod) (rate(a[5m]))`:     `sum by (pod, cluster, region) (rate(a{cluster="eu"}[5m]))`,
		`max without (job) (a)`:          `max without (job, ha) (a{cluster="eu"})`,
		`a * on (pod) group_left () b`:   `a{cluster="eu"} * on (pod, cluster, region) group_left () b{cluster="eu"}`,
		`a - ignoring (kind) b`:          `a{cluster="eu"} - ignoring (kind) b{cluster="eu"}`,
		`absent(a) or vector(0)`:         `absent(a{cluster="eu"}) or vector(0)`,
		`topk by (pod) (1, a{b="}"})`:    `topk by (pod, cluster, region) (1, a{b="}",cluster="eu"})`,
		`sum by (cluster) (a offset 1h)`: `sum by (cluster, region) (a{cluster="eu"} offset 1h)`,
	} {
		if got, err := n.rule(in); err != nil || got != want {
			t.Errorf("%s becomes %s, %v; want %s", in, got, err, want)
		}
	}
	if got, err := n.tenant(`sum without (job) (a)`); err != nil || got != `sum without (job) (a{cluster="eu"})` {
		t.Errorf("a tenant's query becomes %s, %v", got, err)
	}
	for _, q := range []string{`a{cluster="us"}`, `sum(a) - sum(b{cluster!="eu"})`, `a{cluster=~"us.*"}`} {
		if _, err := n.tenant(q); err == nil || !strings.Contains(err.Error(), "reads another cluster") {
			t.Errorf("%s: %v", q, err)
		}
	}
	for _, c := range []Cluster{{Matchers: []string{"eu"}}, {Matchers: []string{`a="b",c="d"`}}, {Matchers: []string{`cluster=~"("`}}, {Matchers: []string{`__name__="up"`}},
		{Labels: []string{"a b"}}, {ReplicaLabels: []string{""}}} {
		if _, err := New(Options{Address: "http://p", Cluster: c}); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	if _, err := New(Options{Address: "http://p", Cluster: Cluster{Matchers: []string{`cluster=""`}}}); err != nil {
		t.Errorf("a cluster without the label: %v", err)
	}
	for _, expr := range []string{ownerExpr(scope{}), fmt.Sprint(joined(readyByPod(scope{}), recordedOwner, ""))} {
		if got, err := (&narrower{}).rule(expr); err != nil || got != expr {
			t.Errorf("of one cluster %s becomes %s, %v", expr, got, err)
		}
	}
}
