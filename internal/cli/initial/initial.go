// Package initial drafts ElasticServices from what workloads did.
package initial

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/files"
	"github.com/springtide/springtide/internal/cli/takeover"
	"github.com/springtide/springtide/internal/cli/trial"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/portrait"
)

// NewCommand makes `springtide init`.
func NewCommand(o *cluster.Options) *cobra.Command { return newCommand(o, trial.History{}) }

func newCommand(o *cluster.Options, from trial.History) *cobra.Command {
	from.Optional = true
	var out string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Draft ElasticServices for the workloads of a namespace",
		Long: "Write commented YAML of an ElasticService in mode Observe for each Deployment, StatefulSet and object of " +
			"another kind with a\nscale subresource that has none in a namespace. With\n" +
			"--prometheus its service level and its bounds come from history: which level is measured, what it was, and in " +
			"how many\n" +
			"minutes a limit would have been kept. Guesses are marked. Nothing is applied.",
		Example: "  springtide init -n shop --prometheus http://localhost:9090 > services.yaml\n  springtide init -n shop",
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.Connect(o)
			if err != nil {
				return err
			}
			namespace := cmp.Or(o.Namespace, c.Namespace)
			drafts, passed, err := draft(cmd.Context(), c, &from, namespace)
			if err != nil {
				return err
			}
			for _, p := range passed {
				fmt.Fprintln(cmd.ErrOrStderr(), p)
			}
			if len(drafts) == 0 {
				return usage.Found("namespace %s has no Deployment or StatefulSet without an ElasticService", namespace)
			}
			return files.Write("--out", out, cmd.OutOrStdout(), func(w io.Writer) error {
				_, err := io.WriteString(w, strings.Join(drafts, "---\n"))
				return err
			})
		},
	}
	o.Cluster(cmd)
	from.Flags(cmd)
	o.Namespaced(cmd, "namespace to look in; that of the context when empty")
	cmd.Flags().StringVar(&out, "out", "-", "file to write, - for standard output")
	return cmd
}

// workload is a Deployment, a StatefulSet, or an object of another kind that has a scale subresource.
type workload struct {
	apiVersion, kind string
	name             fleet.Name
	replicas         int32
	request          fleet.Resources
	// measured is under which owner the metrics source knows its pods; zero where that is the workload.
	measured fleet.WorkloadName
	// preset measures its latency.
	preset string
	// scalers are what sizes it today.
	scalers []takeover.Incumbent
}

// service is the workload as what the source of history is asked for: with a level of each kind that it may have.
func (w *workload) service() fleet.Service {
	latency := fleet.Latency(latencyQuantile, maxLatency)
	latency.Source.Preset = w.preset
	return fleet.Service{ID: fleet.ServiceID(w.name.String()), Target: w.name, TargetKind: w.kind, TargetFound: true,
		SLO: fleet.Levels(latency, fleet.CPU(1)), Request: w.request, Measured: w.measured}
}

// measured finds the first preset that has a latency of each workload.
func measured(ctx context.Context, from *trial.History, all []workload, services []fleet.Service, now time.Time) error {
	fits, err := from.Fits(ctx, services, now)
	if err != nil {
		return err
	}
	for i := range all {
		for _, f := range fits[services[i].ID] {
			if f.Latency {
				all[i].preset = f.Preset
				services[i] = all[i].service()
				break
			}
		}
	}
	return nil
}

// draft writes a draft for each workload. passed says which workloads were passed over, and why.
func draft(ctx context.Context, c *cluster.Clients, from *trial.History, namespace string) (drafts, passed []string,
	err error) {
	all, err := workloads(ctx, c, namespace)
	if err != nil {
		return nil, nil, err
	}
	taken, err := targets(ctx, c, namespace)
	if err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(w workload) bool {
		owner := taken[w.kind+"/"+w.name.Name]
		if owner != "" {
			passed = append(passed, fmt.Sprintf("%s %s has ElasticService %s already", w.kind, w.name.Name, owner))
		}
		return owner != ""
	})
	services := make([]fleet.Service, len(all))
	for i := range all {
		services[i] = all[i].service()
		target := v1alpha1.TargetRef{APIVersion: all[i].apiVersion, Kind: all[i].kind, Name: all[i].name.Name}
		if all[i].scalers, _, err = takeover.Incumbents(ctx, c, namespace, target); err != nil {
			return nil, nil, err
		}
	}
	history := map[fleet.ServiceID]portrait.Batch{}
	if from.Given() && len(services) > 0 {
		if err := measured(ctx, from, all, services, c.Now()); err != nil {
			return nil, nil, err
		}
		if history, err = from.Read(ctx, services, c.Now()); err != nil {
			return nil, nil, err
		}
	}
	for i := range all {
		b, known := history[services[i].ID]
		drafts = append(drafts, all[i].yaml(findings(&all[i], b, known, from)))
	}
	return drafts, passed, nil
}

func workloads(ctx context.Context, c *cluster.Clients, namespace string) ([]workload, error) {
	deployments, err := c.Core.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the Deployments of %s: %w", namespace, err)
	}
	sets, err := c.Core.AppsV1().StatefulSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the StatefulSets of %s: %w", namespace, err)
	}
	var out []workload
	for i := range deployments.Items {
		d := &deployments.Items[i]
		out = append(out, workload{apiVersion: apiVersion, kind: "Deployment", name: fleet.Name{Namespace: namespace,
			Name: d.Name},
			preset: fleet.PresetOTel, replicas: replicas(d.Spec.Replicas), request: convert.PodRequests(&d.Spec.Template.Spec)})
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		out = append(out, workload{apiVersion: apiVersion, kind: "StatefulSet", name: fleet.Name{Namespace: namespace,
			Name: s.Name},
			preset: fleet.PresetOTel, replicas: replicas(s.Spec.Replicas), request: convert.PodRequests(&s.Spec.Template.Spec)})
	}
	for _, kind := range c.Scalable() {
		found, err := c.Targets(ctx, namespace, &kind)
		if apierrors.IsForbidden(err) {
			continue // a user without the right to read a kind drafts nothing for it
		}
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			out = append(out, workload{apiVersion: t.Ref.APIVersion, kind: t.Ref.Kind, replicas: t.Replicas,
				name: fleet.Name{Namespace: namespace, Name: t.Ref.Name}, request: t.Request,
				preset: fleet.PresetOTel, measured: t.Measured})
		}
	}
	slices.SortFunc(out, func(a, b workload) int {
		return cmp.Or(cmp.Compare(a.name.Name, b.name.Name), cmp.Compare(a.kind, b.kind))
	})
	return out, nil
}

func replicas(n *int32) int32 {
	if n == nil {
		return 1 // the API server's default
	}
	return *n
}

// targets are the ElasticServices of a namespace by their targets.
func targets(ctx context.Context, c *cluster.Clients, namespace string) (map[string]string, error) {
	there, err := cluster.List[v1alpha1.ElasticService](ctx, c, cluster.Services, namespace)
	if err != nil && !cluster.IsUnserved(err) {
		return nil, err
	}
	out := map[string]string{}
	for i := range there {
		t := &there[i].Spec.TargetRef
		out[t.Kind+"/"+t.Name] = there[i].Name
	}
	return out, nil
}

// apiVersion is that of Deployments and StatefulSets.
var apiVersion = appsv1.SchemeGroupVersion.String()

// yaml writes the draft.
func (w *workload) yaml(f *found) string {
	var b strings.Builder
	line := func(indent int, format string, args ...any) {
		fmt.Fprintf(&b, strings.Repeat(" ", indent)+format+"\n", args...)
	}
	comments := func(indent int, texts []string) {
		for _, t := range texts {
			line(indent, "# %s", t)
		}
	}
	comments(0, f.head)
	line(0, "apiVersion: %s", v1alpha1.GroupVersion)
	line(0, "kind: ElasticService")
	line(0, "metadata:\n  name: %s\n  namespace: %s", w.name.Name, w.name.Namespace)
	line(0, "spec:")
	line(2, "mode: Observe # records alone; springtide promote goes on from here")
	line(2, "targetRef: {apiVersion: %s, kind: %s, name: %s}", w.apiVersion, w.kind, w.name.Name)
	comments(2, f.replicasWhy)
	line(2, "replicas: {min: %d, max: %d}", f.min, f.max)
	line(2, "slo:")
	for _, l := range f.levels {
		comments(4, l.why)
		line(4, "%s", l.text)
	}
	comments(4, f.objectiveWhy)
	line(4, "objective: {goodMinutes: %q, over: 28d}", f.objective)
	if w.floored() {
		line(2, "actuation: HPAFloor # its HorizontalPodAutoscaler stays; its minReplicas is raised before the flood")
	}
	return b.String()
}

// floored reports whether a HorizontalPodAutoscaler of the user's sizes the workload.
func (w *workload) floored() bool {
	return slices.ContainsFunc(w.scalers, func(x takeover.Incumbent) bool { return x.Kind == takeover.HPA })
}

// sizedBy names what sizes the workload today.
func (w *workload) sizedBy() string {
	var names []string
	for _, x := range w.scalers {
		names = append(names, x.Kind+" "+x.Name.Name)
	}
	if len(names) == 0 {
		return "nothing but its static count, " + cell.Count(int(w.replicas), "replica")
	}
	return strings.Join(names, " and ")
}
