// Package validate judges files of our objects without a cluster.
package validate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/files"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/internal/validate/offline"
)

// NewCommand makes `springtide validate`.
func NewCommand(o *cluster.Options) *cobra.Command {
	var paths []string
	var cluster bool
	cmd := &cobra.Command{
		Use:   "validate -f FILE|DIR|-",
		Short: "Judge files offline, by the API server's own rules",
		Long: "Judge files of Springtide's objects without a cluster, by the rules of the API server (schema, bounds, CEL), and by those of its\n" +
			"admission policies and the controller's webhook. Those find wrong cron text, time zones, PromQL, labels and kinds of targets. They find\n" +
			"parents that are missing or form a circle, two services on one target, pools that pick the same machines, and windows that contradict\n" +
			"each other.\n\n" +
			"Objects of other groups are left alone, and so are files below a directory that hold no object of Kubernetes. An empty file is a\n" +
			"finding. With --cluster the objects of the cluster count too: a parent that is there is not missing. Each finding carries file, line,\n" +
			"field and fix. Exit code 1 when something was found, 2 when nothing could be read.",
		Example: "  springtide validate -f deploy/\n  springtide validate --cluster -f quota.yaml\n  kubectl get elasticservices -A -o yaml | springtide validate -f -",
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			inputs, err := files.ReadInputs(paths, cmd.InOrStdin())
			if err != nil {
				return usage.Error{Err: err}
			}
			how := offline.Options{Namespace: o.Namespace}
			if cluster {
				if how.Known, err = known(cmd.Context(), o); err != nil {
					return err
				}
			}
			result, err := offline.Files(inputs, how)
			if err != nil {
				return err
			}
			return printFindings(cmd.OutOrStdout(), o.Output, result)
		},
	}
	cmd.Flags().StringArrayVarP(&paths, "filename", "f", nil, "file, directory (read with all below it), or - for standard input; may be given again")
	usage.Require(cmd, "filename")
	cmd.Flags().BoolVar(&cluster, "cluster", false, "count the objects that are in the cluster as well")
	o.Cluster(cmd)
	o.Namespaced(cmd, "namespace of objects that name none")
	o.Formats(cmd, "text", "json", "yaml")
	return cmd
}

// known reads the objects of the cluster that files are judged together with. The oldest service of a target keeps it.
func known(ctx context.Context, o *cluster.Options) (validate.Set, error) {
	var out validate.Set
	c, err := o.Connect(o)
	if err != nil {
		return out, err
	}
	if out.Services, err = pointers[v1alpha1.ElasticService](ctx, c, cluster.Services); err != nil {
		return out, err
	}
	slices.SortStableFunc(out.Services, func(a, b *v1alpha1.ElasticService) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if out.Pools, err = pointers[v1alpha1.CapacityPool](ctx, c, cluster.Pools); err != nil {
		return out, err
	}
	out.Quotas, err = pointers[v1alpha1.CapacityQuota](ctx, c, cluster.Quotas)
	return out, err
}

func pointers[T any](ctx context.Context, c *cluster.Clients, plural string) ([]*T, error) {
	all, err := cluster.List[T](ctx, c, plural, "")
	out := make([]*T, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out, err
}

func printFindings(out io.Writer, format string, r *offline.Result) error {
	var failed error
	if n := len(r.Findings); n > 0 {
		more := ""
		if r.Pending {
			more = "; more rules are asked once these are fixed"
		}
		failed = usage.Found("%s in %s%s", cell.Count(n, "finding"), cell.Count(r.Objects, "object"), more)
	}
	if format != "text" {
		report := struct {
			Objects  int               `json:"objects"`
			Foreign  int               `json:"foreign"`
			Findings []offline.Finding `json:"findings"`
		}{r.Objects, r.Foreign, append([]offline.Finding{}, r.Findings...)}
		return errors.Join(screen.Encode(out, format, report), failed)
	}
	for _, f := range r.Findings {
		fmt.Fprintln(out, f)
	}
	if failed == nil {
		fmt.Fprintf(out, "%s judged and found valid", cell.Count(r.Objects, "object"))
		if r.Foreign > 0 {
			fmt.Fprintf(out, "; %s of other groups left alone", cell.Count(r.Foreign, "object"))
		}
		fmt.Fprintln(out)
	}
	return failed
}
