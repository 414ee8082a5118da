// Package slo writes the objectives of services for the tools of others.
package slo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/usage"
)

// NewExportCommand makes `springtide slo export`.
func NewExportCommand(o *cluster.Options) *cobra.Command {
	var format string
	var alerts bool
	cmd := &cobra.Command{
		Use:   "export [NAME...]",
		Short: "Print the objectives of services for OpenSLO or Sloth",
		Long: "Print the objective of each service as OpenSLO or as Sloth's PrometheusServiceLevel. An event is a minute, " +
			"as the\n" +
			"controller counts it in springtide_slo_judged_seconds_total. Springtide's own alerts watch the same budgets, so " +
			"those\n" +
			"that Sloth would make are off without --alerts.",
		Example: "  springtide slo export -n shop --format sloth > slos.yaml\n" +
			"  springtide slo export cart -n shop --format openslo",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.Connect(o)
			if err != nil {
				return err
			}
			namespace := ""
			if !o.AllNamespaces {
				namespace = cmp.Or(o.Namespace, c.Namespace)
			}
			raw, err := c.Resource(cluster.Services, namespace).List(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return cluster.Reading(cluster.Services, err)
			}
			var services []v1alpha1.ElasticService
			for i := range raw.Items {
				var s v1alpha1.ElasticService
				if err := cluster.Decode(&raw.Items[i], &s); err != nil {
					return err
				}
				services = append(services, s)
			}
			if services, err = named(services, args); err != nil {
				return err
			}
			return export(services, format, alerts, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.Cluster(cmd)
	o.Namespaced(cmd, "namespace to look in; that of the context when empty")
	f := cmd.Flags()
	f.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "look in all namespaces")
	f.StringVar(&format, "format", "openslo", "openslo or sloth")
	f.BoolVar(&alerts, "alerts", false, "let Sloth make its alerts too")
	usage.Before(cmd, func(*cobra.Command, []string) error {
		if formats[format] == nil {
			return usage.Error{Err: fmt.Errorf("--format %s: write openslo or sloth", format)}
		}
		return nil
	})
	return cmd
}

// named keeps the services that are named, all of them without names, in order.
func named(services []v1alpha1.ElasticService, names []string) ([]v1alpha1.ElasticService, error) {
	slices.SortFunc(services, func(a, b v1alpha1.ElasticService) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, name := range names {
		if !slices.ContainsFunc(services, func(s v1alpha1.ElasticService) bool { return s.Name == name }) {
			var known []string
			for i := range services {
				known = append(known, services[i].Name)
			}
			return nil, usage.Found("there is no %s among the %s%s", name, cluster.Services, usage.DidYouMean(name, known))
		}
	}
	if len(names) == 0 {
		return services, nil
	}
	return slices.DeleteFunc(services, func(s v1alpha1.ElasticService) bool {
		return !slices.Contains(names,
			s.Name)
	}), nil
}

// promise is an objective as the tools of others have it.
type promise struct {
	namespace, name string
	// percent is the objective in percent, as in "99.9", over its window, as in "28d".
	percent float64
	over    string
	alerts  bool
}

var formats = map[string]func(*promise) []any{"openslo": openSLO, "sloth": sloth}

// export writes one document for each object. A service of which nothing was judged yet is left out, and named.
func export(services []v1alpha1.ElasticService, format string, alerts bool, out, notes io.Writer) error {
	first := true
	for i := range services {
		s := &services[i]
		if s.Status.SLO == nil {
			fmt.Fprintf(notes, "%s/%s is left out: its status has no objective yet\n", s.Namespace, s.Name)
			continue
		}
		o := &s.Status.SLO.Objective
		share, err := o.GoodMinutes.Share()
		if err != nil {
			return fmt.Errorf("%s/%s: status.slo.objective.goodMinutes: %w", s.Namespace, s.Name, err)
		}
		for _, doc := range formats[format](&promise{s.Namespace, s.Name, share * 100, string(o.Over), alerts}) {
			text, err := yaml.Marshal(doc)
			if err != nil {
				return err
			}
			if !first {
				fmt.Fprintln(out, "---")
			}
			first = false
			if _, err := out.Write(text); err != nil {
				return err
			}
		}
	}
	return nil
}

// judged selects the minutes of a service by their result.
func (p *promise) judged(matcher string) string {
	return fmt.Sprintf(`springtide_slo_judged_seconds_total{namespace=%q,service=%q,result%s}`, p.namespace, p.name,
		matcher)
}

func (p *promise) description() string {
	return fmt.Sprintf("Minutes in which %s/%s kept every level of its SLO, as Springtide judges them.", p.namespace,
		p.name)
}

// openSLO is the objective in OpenSLO's version 1: https://github.com/OpenSLO/OpenSLO.
func openSLO(p *promise) []any {
	id := p.namespace + "-" + p.name
	metric := func(matcher string) map[string]any {
		return map[string]any{"metricSource": map[string]any{"type": "Prometheus",
			"spec": map[string]any{"query": fmt.Sprintf("sum(%s)", p.judged(matcher))}}}
	}
	service := map[string]any{"apiVersion": "openslo/v1", "kind": "Service", "metadata": map[string]any{"name": id},
		"spec": map[string]any{"description": fmt.Sprintf("ElasticService %s/%s", p.namespace, p.name)}}
	slo := map[string]any{"apiVersion": "openslo/v1", "kind": "SLO",
		"metadata": map[string]any{"name": id + "-good-minutes"},
		"spec": map[string]any{
			"description": p.description(), "service": id, "budgetingMethod": "Occurrences",
			"timeWindow": []any{map[string]any{"duration": p.over, "isRolling": true}},
			"indicator": map[string]any{"metadata": map[string]any{"name": id + "-minutes"},
				"spec": map[string]any{"ratioMetric": map[string]any{"counter": true, "good": metric(`="good"`),
					"total": metric(`=~"good|bad"`)}}},
			"objectives": []any{map[string]any{"displayName": "Good minutes", "target": share(p.percent)}},
		}}
	return []any{service, slo}
}

// share is a percentage as a share, without the digits that binary numbers add.
func share(percent float64) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(percent/100, 'f', 6, 64), 64)
	return v
}

// sloth is the objective as Sloth's object: https://sloth.dev.
func sloth(p *promise) []any {
	sum := func(matcher string) string { return fmt.Sprintf("sum(increase(%s[{{.window}}]))", p.judged(matcher)) }
	off := map[string]any{"disable": !p.alerts}
	return []any{map[string]any{"apiVersion": "sloth.slok.dev/v1", "kind": "PrometheusServiceLevel",
		"metadata": map[string]any{"name": p.name + "-good-minutes", "namespace": p.namespace},
		"spec": map[string]any{"service": p.namespace + "/" + p.name,
			"slos": []any{map[string]any{"name": "good-minutes", "objective": p.percent, "description": p.description(),
				"sli": map[string]any{"events": map[string]any{"errorQuery": sum(`="bad"`),
					"totalQuery": sum(`=~"good|bad"`)}},
				"alerting": map[string]any{"name": "SpringtideGoodMinutes", "pageAlert": off, "ticketAlert": off}}}}}}
}
