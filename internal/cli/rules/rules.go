// Package rules prints recording rules and alerts.
package rules

import (
	"maps"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/dashboards"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/prom"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/store/promql"
)

// NewCommand makes `springtide rules`.
func NewCommand(o *cluster.Options) *cobra.Command {
	var own prom.Cluster
	var labels []string
	var operator bool
	cmd := &cobra.Command{
		Use:     "rules",
		Short:   "Print recording rules and alerts for a Prometheus that holds several clusters",
		Example: "  springtide rules --prometheus-matcher 'cluster=\"prod-eu\"' > springtide.rules.yaml",
		Long: "Print the recording rules and the alerts. Each selector reads one cluster's series, and each aggregation and each join keeps clusters\n" +
			"apart. With --cluster-label in place of a matcher, one file serves all clusters.",
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster := own.Cluster()
			cluster.Labels = labels
			text, err := rulesFor(cluster, operator, o.Namespace)
			if err != nil {
				return usage.Error{Err: err}
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	own.Flags(cmd.Flags())
	cmd.Flags().StringArrayVar(&labels, "cluster-label", nil, "label that clusters are kept apart by, next to those of matchers; may be given again")
	cmd.Flags().BoolVar(&operator, "operator", false, "print a PrometheusRule of the Prometheus operator")
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", cluster.ControllerNamespace, "namespace of the PrometheusRule")
	return cmd
}

// rulesFor renders the groups of both rule files for a cluster.
func rulesFor(c promql.Cluster, operator bool, namespace string) ([]byte, error) {
	var groups []any
	for _, text := range [][]byte{promql.Rules(), dashboards.AlertsYAML()} {
		var file map[string]any
		if err := yaml.Unmarshal(text, &file); err != nil {
			return nil, err
		}
		groups = append(groups, file["groups"].([]any)...)
	}
	doc := map[string]any{"groups": groups}
	if err := c.RewriteRules(doc); err != nil {
		return nil, err
	}
	if operator {
		doc = map[string]any{"spec": maps.Clone(doc), "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
			"metadata": metav1.ObjectMeta{Name: "springtide", Namespace: namespace}}
	}
	return yaml.Marshal(doc)
}
