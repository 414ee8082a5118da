package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/internal/validate/offline"
)

func newValidateCommand(o *cliOptions) *cobra.Command {
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
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			inputs, err := readInputs(paths, cmd.InOrStdin())
			if err != nil {
				return usageError{err}
			}
			how := offline.Options{Namespace: o.namespace}
			if cluster {
				if how.Known, err = o.known(cmd.Context()); err != nil {
					return err
				}
			}
			result, err := offline.Files(inputs, how)
			if err != nil {
				return err
			}
			return printFindings(cmd.OutOrStdout(), o.output, result)
		},
	}
	cmd.Flags().StringArrayVarP(&paths, "filename", "f", nil, "file, directory (read with all below it), or - for standard input; may be given again")
	required(cmd, "filename")
	cmd.Flags().BoolVar(&cluster, "cluster", false, "count the objects that are in the cluster as well")
	o.cluster(cmd)
	o.namespaced(cmd, "namespace of objects that name none")
	o.formats(cmd, "text", "json", "yaml")
	return cmd
}

// known reads the objects of the cluster that files are judged together with. The oldest service of a target keeps it.
func (o *cliOptions) known(ctx context.Context) (validate.Set, error) {
	var out validate.Set
	c, err := o.connect(o)
	if err != nil {
		return out, err
	}
	if out.Services, err = pointers[v1alpha1.ElasticService](ctx, c, services); err != nil {
		return out, err
	}
	slices.SortStableFunc(out.Services, func(a, b *v1alpha1.ElasticService) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if out.Pools, err = pointers[v1alpha1.CapacityPool](ctx, c, pools); err != nil {
		return out, err
	}
	out.Quotas, err = pointers[v1alpha1.CapacityQuota](ctx, c, quotas)
	return out, err
}

func pointers[T any](ctx context.Context, c *clients, plural string) ([]*T, error) {
	all, err := list[T](ctx, c, plural, "")
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
		failed = errFound("%s in %s%s", count(n, "finding"), count(r.Objects, "object"), more)
	}
	if format != "text" {
		report := struct {
			Objects  int               `json:"objects"`
			Foreign  int               `json:"foreign"`
			Findings []offline.Finding `json:"findings"`
		}{r.Objects, r.Foreign, append([]offline.Finding{}, r.Findings...)}
		return errors.Join(encode(out, format, report), failed)
	}
	for _, f := range r.Findings {
		fmt.Fprintln(out, f)
	}
	if failed == nil {
		fmt.Fprintf(out, "%s judged and found valid", count(r.Objects, "object"))
		if r.Foreign > 0 {
			fmt.Fprintf(out, "; %s of other groups left alone", count(r.Foreign, "object"))
		}
		fmt.Fprintln(out)
	}
	return failed
}

// readInputs reads every file that is named, and every YAML or JSON file below a directory that is.
func readInputs(paths []string, stdin io.Reader) ([]offline.Input, error) {
	var out []offline.Input
	for _, path := range paths {
		if path == "-" {
			text, err := io.ReadAll(stdin)
			if err != nil {
				return nil, fmt.Errorf("standard input: %w", err)
			}
			out = append(out, offline.Input{Name: "-", Text: text})
			continue
		}
		files, err := filesBelow(path)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			out = append(out, offline.Input{Name: f, Text: text, Found: f != path})
		}
	}
	return out, nil
}

func filesBelow(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	var out []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(p))) {
			out = append(out, p)
		}
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: no .yaml, .yml or .json file below it", path)
	}
	return out, err
}
