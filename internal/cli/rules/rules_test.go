package rules

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/usage"
)

// TestRulesForClusters: what is printed loads into Prometheus, holds all recording rules and alerts, and says so when a matcher is none.
func TestRulesForClusters(t *testing.T) {
	run := func(args ...string) (string, error) {
		root := &cobra.Command{Use: "springtide", SilenceUsage: true, SilenceErrors: true}
		root.AddCommand(NewCommand(&cluster.Options{}))
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"rules"}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	plain, err := run()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"--prometheus-matcher", `cluster="prod-eu"`}, {"--cluster-label", "cluster"}, {"--prometheus-matcher", `__tenant_id__="a"`, "--prometheus-replica-label", "ha"}} {
		text, err := run(args...)
		if err != nil {
			t.Fatal(err)
		}
		groups, errs := rulefmt.Parse([]byte(text), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			t.Fatalf("%v: %v", args, errs)
		}
		if n := len(groups.Groups); n != 2 || strings.Count(text, "expr:") != strings.Count(plain, "expr:") {
			t.Errorf("%v: %d groups, %d rules", args, n, strings.Count(text, "expr:"))
		}
		for i := 1; i < len(args); i += 2 {
			if !strings.Contains(text, args[i]) {
				t.Errorf("%v: no rule has %s", args, args[i])
			}
		}
	}
	text, err := run("--operator", "-n", "capacity", "--cluster-label", "cluster")
	var o struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Spec     struct{ Groups []any }
	}
	if err := errors.Join(err, yaml.Unmarshal([]byte(text), &o)); err != nil || o.Kind != "PrometheusRule" || o.Metadata.Namespace != "capacity" || len(o.Spec.Groups) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := run("--prometheus-matcher", "prod-eu"); usage.ExitCode(err) != usage.ExitUsage || !strings.Contains(err.Error(), `cluster="prod-eu"`) {
		t.Errorf("a matcher that is none: %v", err)
	}
}
