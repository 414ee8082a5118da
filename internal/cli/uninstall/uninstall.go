// Package uninstall says what is lost when Springtide is taken away, and prepares the cluster for it.
package uninstall

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/takeover"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/kube/target"
)

// annotationWatermarks on a CapacityPool keeps the watermarks from before an uninstall, LOW/HIGH, so that a run that was cut off is taken up again.
const annotationWatermarks = "springtide.dev/watermarks-before-uninstall"

// uninstall is what `springtide uninstall` was asked for.
type uninstall struct {
	*cluster.Options
	prepare, abandon bool
	timeout, every   time.Duration
}

// NewCommand makes `springtide uninstall`.
func NewCommand(o *cluster.Options) *cobra.Command {
	o.DryRun = cluster.DryRunNone // release asks for it
	u := uninstall{Options: o, every: 5 * time.Second}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Say what is lost when Springtide is taken away, and prepare the cluster for it",
		Long: "Say what is lost when Springtide is taken away. Without --prepare nothing is changed.\n\n" +
			"--prepare recalls everything that is lent to offline work and waits for it. It gives adopted HorizontalPodAutoscalers back, sets services\n" +
			"and pools to Observe, and stops the controller. Then it takes labels, taints, annotations and deletion costs of Springtide off. The\n" +
			"objects of users (services, pools, quotas, jobs, festival plans) stay. The chart runs it before it is deleted.",
		Example: "  springtide uninstall\n  springtide uninstall --prepare --timeout 1h",
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.Connect(o)
			if err != nil {
				return err
			}
			return u.run(cmd.Context(), cmd.OutOrStdout(), c)
		},
	}
	o.Cluster(cmd)
	o.Controller(cmd)
	f := cmd.Flags()
	f.BoolVar(&u.prepare, "prepare", false, "recall what is lent, give back, stop the controller and take all marks away")
	f.BoolVar(&u.abandon, "abandon-loans", false, "do not wait for recalls: offline pods stay where they are, and nothing calls them home")
	f.DurationVar(&u.timeout, "timeout", 35*time.Minute, "how long recalls may take")
	return cmd
}

// holdings is what a cluster has of Springtide.
type holdings struct {
	services []v1alpha1.ElasticService
	pools    []v1alpha1.CapacityPool
	loans    []v1alpha1.Loan
	shares   []v1alpha1.NodeShare
	// gone are the kinds whose definitions the cluster does not have.
	gone []string
}

func (u *uninstall) run(ctx context.Context, out io.Writer, c *cluster.Clients) error {
	h, err := readHoldings(ctx, c)
	if err != nil {
		return err
	}
	h.report(out)
	if !u.prepare {
		fmt.Fprintln(out, "\nNothing was changed. springtide uninstall --prepare does the steps; helm uninstall runs it by itself.")
		return nil
	}
	fmt.Fprintln(out)
	for _, step := range []func(context.Context, io.Writer, *cluster.Clients, *holdings) error{refuseGates, u.recallAll,
		u.releaseAll, u.quiet, u.stop, u.stopAgents, u.unmark} {
		if err := step(ctx, out, c, h); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "The cluster is ready: Springtide can be deleted.")
	return nil
}

// refuseGates ends the uninstall while templates have our readiness gate: the controller opens it, so without a
// controller no new pod of them becomes ready.
func refuseGates(ctx context.Context, _ io.Writer, c *cluster.Clients, _ *holdings) error {
	var gated []string
	err := takeover.EachPage(ctx, func(o metav1.ListOptions) (string, error) {
		page, err := c.Core.AppsV1().Deployments("").List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			d := &page.Items[i]
			if slices.ContainsFunc(d.Spec.Template.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
				return g.ConditionType == v1alpha1.PodInService
			}) {
				gated = append(gated, d.Namespace+"/"+d.Name)
			}
		}
		return page.Continue, nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("look for readiness gates: %w", err)
	case len(gated) > 0:
		return fmt.Errorf("%s with the readiness gate %s%s: without the controller their new pods never become ready. "+
			"To fix: remove the gate from their templates, wait for the roll-over, and run this again",
			cell.Count(len(gated), "Deployment"), v1alpha1.PodInService, named(gated))
	}
	return nil
}

func readHoldings(ctx context.Context, c *cluster.Clients) (*holdings, error) {
	h := &holdings{}
	var err error
	if h.services, err = listKnown[v1alpha1.ElasticService](ctx, c, h, cluster.Services); err != nil {
		return nil, err
	}
	if h.pools, err = listKnown[v1alpha1.CapacityPool](ctx, c, h, cluster.Pools); err != nil {
		return nil, err
	}
	if h.loans, err = listKnown[v1alpha1.Loan](ctx, c, h, cluster.Loans); err != nil {
		return nil, err
	}
	h.shares, err = listKnown[v1alpha1.NodeShare](ctx, c, h, cluster.Shares)
	return h, err
}

// listKnown lists objects of one of our kinds. Where its definition is deleted there are none: what they left on objects of others is found by its marks.
func listKnown[T any](ctx context.Context, c *cluster.Clients, h *holdings, plural string) ([]T, error) {
	out, err := cluster.List[T](ctx, c, plural, "")
	if cluster.IsUnserved(err) {
		if h != nil {
			h.gone = append(h.gone, plural)
		}
		return nil, nil
	}
	return out, err
}

// away are the loans that have not ended: those of online pools, which offline work holds and must leave, and machines that online borrowed.
func (h *holdings) away() (lent, borrowed []v1alpha1.Loan) {
	online := map[string]bool{}
	for i := range h.pools {
		online[h.pools[i].Name] = h.pools[i].Spec.Class == string(fleet.Online)
	}
	for i := range h.loans {
		switch l := h.loans[i]; {
		case fleet.Phase(l.Status.Phase).Ended():
		case online[l.Spec.From]:
			lent = append(lent, l)
		default:
			borrowed = append(borrowed, l)
		}
	}
	return lent, borrowed
}

// report says what is lost.
func (h *holdings) report(out io.Writer) {
	var acting, offline []string
	for i := range h.services {
		if s := &h.services[i]; s.Spec.Mode == string(fleet.Auto) {
			acting = append(acting, s.Namespace+"/"+s.Name)
		}
	}
	for i := range h.pools {
		if p := &h.pools[i]; p.Spec.Class == string(fleet.Offline) {
			offline = append(offline, p.Name)
		}
	}
	lent, borrowed := h.away()
	fmt.Fprintln(out, "With Springtide the cluster loses:")
	fmt.Fprintf(out, "  scaling of %s in mode Auto%s: replicas stay as they are; adopted HorizontalPodAutoscalers get their floors back\n", cell.Count(len(acting), "service"), named(acting))
	fmt.Fprintf(out, "  %s lent to offline work: recalled with notice, then evicted\n", cell.Count(len(lent), "machine or socket"))
	fmt.Fprintf(out, "  %s that online borrowed: they keep the pods that are on them\n", cell.Count(len(borrowed), "machine"))
	fmt.Fprintf(out, "  %s%s: their machines lose label and taint, and any pod may land on them\n", cell.Count(len(offline), "offline pool"), named(offline))
	fmt.Fprintln(out, "  the journal of decisions and the portraits, where the store is not a PostgreSQL or volume of yours")
	fmt.Fprintln(out, "ElasticServices, pools, quotas, jobs and festival plans stay until their definitions are deleted.")
	if len(h.gone) > 0 {
		fmt.Fprintf(out, "The definitions of %s are deleted already: what Springtide left on machines, pods, workloads and autoscalers is found by its marks.\n", strings.Join(h.gone, ", "))
	}
}

// named lists a few names in brackets; it is empty without any.
func named(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (" + cell.First(names, cell.NamesShown) + ")"
}

// recallAll asks each online pool for all of its headroom, which brings home whatever it lent, and waits until nothing is away.
func (u *uninstall) recallAll(ctx context.Context, out io.Writer, c *cluster.Clients, h *holdings) error {
	lent, _ := h.away()
	if len(lent) == 0 {
		return nil
	}
	if u.abandon {
		fmt.Fprintf(out, "%s stay lent: nothing calls the offline pods home.\n", cell.Count(len(lent), "machine or socket"))
		return nil
	}
	// The headroom that brings everything home is none that online needs: nothing of offline is emptied and borrowed for it.
	for i := range h.pools {
		if p := &h.pools[i]; p.Spec.Class == string(fleet.Offline) && p.Spec.Mode == string(fleet.Auto) {
			if err := u.patchPool(ctx, c, p.Name, map[string]any{"spec": map[string]any{"mode": string(fleet.Observe)}}); err != nil {
				return err
			}
			fmt.Fprintf(out, "CapacityPool %s: mode %s -> Observe\n", p.Name, p.Spec.Mode)
		}
	}
	for i := range h.pools {
		p := &h.pools[i]
		if p.Spec.Class != string(fleet.Online) || p.Annotations[annotationWatermarks] != "" {
			continue
		}
		before := fmt.Sprintf("%d/%d", deref(p.Spec.LowWatermarkPercent, v1alpha1.DefaultLowWatermarkPercent), deref(p.Spec.HighWatermarkPercent, v1alpha1.DefaultHighWatermarkPercent))
		err := u.patchPool(ctx, c, p.Name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationWatermarks: before}},
			"spec": map[string]any{"lowWatermarkPercent": 99, "highWatermarkPercent": 100}})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "CapacityPool %s: everything is recalled (watermarks %s -> 99/100 for now)\n", p.Name, before)
	}
	deadline := c.Wall().Add(u.timeout)
	last := -1
	for {
		var err error
		if h.loans, err = listKnown[v1alpha1.Loan](ctx, c, nil, cluster.Loans); err != nil {
			return err
		}
		lent, _ := h.away()
		if len(lent) == 0 {
			return nil
		}
		if len(lent) != last {
			fmt.Fprintf(out, "  %s still away\n", cell.Count(len(lent), "machine or socket"))
			last = len(lent)
		}
		if !c.Wall().Before(deadline) {
			var which []string
			for i := range lent {
				which = append(which, lent[i].Name+" "+lent[i].Status.Phase)
			}
			return fmt.Errorf("not home after %s%s: nothing was taken away. To fix: springtide loans says what they wait for, springtide doctor whether a controller leads; "+
				"then run this again, or with --abandon-loans", u.timeout, named(which))
		}
		if err := pauseFor(ctx, u.every); err != nil {
			return err
		}
	}
}

func deref(p *int32, otherwise int32) int32 {
	if p == nil {
		return otherwise
	}
	return *p
}

func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (u *uninstall) patchPool(ctx context.Context, c *cluster.Clients, name string, body map[string]any) error {
	b, err := cluster.MergePatch(body)
	if err != nil {
		return err
	}
	if _, err := c.Resource(cluster.Pools, "").Patch(ctx, name, types.MergePatchType, b, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("change CapacityPool %s: %w", name, err)
	}
	return nil
}

// releaseAll sets each service to Observe and gives the autoscalers that it adopted back.
func (u *uninstall) releaseAll(ctx context.Context, out io.Writer, c *cluster.Clients, h *holdings) error {
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetOut(out)
	for i := range h.services {
		s := &h.services[i]
		if err := takeover.Release(u.Options, cmd, c, fleet.Name{Namespace: s.Namespace, Name: s.Name}, false); err != nil {
			return err
		}
	}
	// Objects that services took over which are gone, or whose target changed.
	_, err := takeover.GiveBackMarked(u.Options, cmd, c, "", func(string, string) bool { return true })
	return err
}

// quiet sets pools to Observe and puts back the watermarks of before, in one write: a new installation begins without acting.
func (u *uninstall) quiet(ctx context.Context, out io.Writer, c *cluster.Clients, h *holdings) error {
	now, err := listKnown[v1alpha1.CapacityPool](ctx, c, nil, cluster.Pools)
	if err != nil {
		return err
	}
	for i := range now {
		p := &now[i]
		spec := map[string]any{"mode": string(fleet.Observe)}
		body := map[string]any{"spec": spec}
		if before := p.Annotations[annotationWatermarks]; before != "" {
			var low, high int32
			if _, err := fmt.Sscanf(before, "%d/%d", &low, &high); err != nil {
				return fmt.Errorf("CapacityPool %s: annotation %s is %q, want LOW/HIGH: set the watermarks, remove it and run this again", p.Name, annotationWatermarks, before)
			}
			spec["lowWatermarkPercent"], spec["highWatermarkPercent"] = low, high
			body["metadata"] = map[string]any{"annotations": map[string]any{annotationWatermarks: nil}}
		} else if p.Spec.Mode == string(fleet.Observe) {
			continue
		}
		if err := u.patchPool(ctx, c, p.Name, body); err != nil {
			return err
		}
		fmt.Fprintf(out, "CapacityPool %s: mode %s -> Observe\n", p.Name, p.Spec.Mode)
	}
	return nil
}

// stop ends the controller, which would write its marks again, and waits until its pods are gone.
func (u *uninstall) stop(ctx context.Context, out io.Writer, c *cluster.Clients, _ *holdings) error {
	body, err := cluster.MergePatch(map[string]any{"spec": map[string]any{"replicas": 0}})
	if err != nil {
		return err
	}
	_, err = c.Core.AppsV1().Deployments(u.Namespace).Patch(ctx, cluster.ControllerDeployment, types.MergePatchType, body, metav1.PatchOptions{}, "scale")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("stop the controller: %w", err)
	}
	if err := u.awaitEnded(ctx, c, u.Namespace, v1alpha1.ComponentController); err != nil {
		return err
	}
	fmt.Fprintln(out, "The controller is stopped.")
	return nil
}

// agents names the DaemonSet of the node agents, and its namespace.
const agents = "springtide-agent"

// stopAgents ends the node agents: they would write what is taken off their machines again. Each lifts the limits above the pods as it ends; the
// cgroups of pods stay as they are until the pods end. Agents whose DaemonSet is gone are waited for too: an earlier run may have deleted it and
// given up.
func (u *uninstall) stopAgents(ctx context.Context, out io.Writer, c *cluster.Clients, _ *holdings) error {
	deleted := c.Core.AppsV1().DaemonSets(agents).Delete(ctx, agents, metav1.DeleteOptions{})
	if deleted != nil && !apierrors.IsNotFound(deleted) {
		return fmt.Errorf("stop the node agents: %w", deleted)
	}
	if err := u.awaitEnded(ctx, c, agents, v1alpha1.ComponentAgent); err != nil {
		return err
	}
	if deleted == nil {
		fmt.Fprintln(out, "The node agents are stopped.")
	}
	return nil
}

// awaitEnded waits until the pods of a component are gone.
func (u *uninstall) awaitEnded(ctx context.Context, c *cluster.Clients, namespace, component string) error {
	deadline := c.Wall().Add(u.timeout)
	for {
		left, err := c.Core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelComponent + "=" + component})
		if err != nil {
			return fmt.Errorf("read the pods of the %s: %w", component, err)
		}
		if len(left.Items) == 0 {
			return nil
		}
		if !c.Wall().Before(deadline) {
			return fmt.Errorf("pod %s of the %s has not ended: to fix, end it and run this again", left.Items[0].Name, component)
		}
		if err := pauseFor(ctx, min(u.every, time.Second)); err != nil {
			return err
		}
	}
}

// unmark takes what Springtide wrote on objects of others away, and deletes what the controller alone writes.
func (u *uninstall) unmark(ctx context.Context, out io.Writer, c *cluster.Clients, h *holdings) error {
	for _, step := range []struct {
		what string
		do   func(context.Context, *cluster.Clients) (int, error)
	}{
		{"machine", unmarkNodes}, {"pod", u.unmarkPods}, {"workload", unmarkWorkloads}, {"Lease", u.deleteLeases},
	} {
		n, err := step.do(ctx, c)
		if err != nil {
			return err
		}
		if n > 0 {
			verb := "lost its marks"
			if n > 1 {
				verb = "lost their marks"
			}
			if step.what == "Lease" {
				verb = "deleted"
			}
			fmt.Fprintf(out, "%s %s\n", cell.Count(n, step.what), verb)
		}
	}
	for _, kind := range []string{cluster.Loans, cluster.Shares} {
		names, err := c.Names(ctx, kind, "")
		if cluster.IsUnserved(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := c.Resource(kind, "").Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete %s %s: %w", kind, name, err)
			}
		}
	}
	return nil
}

// unmarkNodes removes labels, taints and annotations of ours, and the autoscalers' annotations that we added.
func unmarkNodes(ctx context.Context, c *cluster.Clients) (int, error) {
	done := 0
	err := takeover.EachPage(ctx, func(o metav1.ListOptions) (string, error) {
		page, err := c.Core.CoreV1().Nodes().List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("read nodes: %w", err)
		}
		for i := range page.Items {
			if err := withoutOffer(ctx, c, &page.Items[i]); err != nil {
				return "", err
			}
			body := nodeWithoutMarks(&page.Items[i])
			if body == nil {
				continue
			}
			b, err := cluster.MergePatch(body)
			if err != nil {
				return "", err
			}
			if _, err := c.Core.CoreV1().Nodes().Patch(ctx, page.Items[i].Name, types.MergePatchType, b, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return "", fmt.Errorf("take marks off node %s: %w", page.Items[i].Name, err)
			}
			done++
		}
		return page.Continue, nil
	})
	return done, err
}

// withoutOffer takes the idle capacity off that a node's agent offered.
func withoutOffer(ctx context.Context, c *cluster.Clients, n *corev1.Node) error {
	gone := map[string]any{}
	for _, name := range []corev1.ResourceName{v1alpha1.ResourceReclaimedCPU, v1alpha1.ResourceReclaimedMemory} {
		if _, ok := n.Status.Capacity[name]; ok {
			gone[string(name)] = nil
		}
	}
	if len(gone) == 0 {
		return nil
	}
	b, err := cluster.MergePatch(map[string]any{"status": map[string]any{"capacity": gone, "allocatable": gone}})
	if err != nil {
		return err
	}
	_, err = c.Core.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, b, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take idle capacity off node %s: %w", n.Name, err)
	}
	return nil
}

// nodeWithoutMarks is the patch that takes our marks off a node; nil when it carries none.
func nodeWithoutMarks(n *corev1.Node) map[string]any {
	labels, notes, taints := map[string]any{}, map[string]any{}, []corev1.Taint{}
	for _, key := range []string{v1alpha1.LabelOffline, v1alpha1.LabelHome, v1alpha1.LabelRuntimeHooks} {
		if _, ok := n.Labels[key]; ok {
			labels[key] = nil
		}
	}
	for _, key := range []string{v1alpha1.AnnotationExpectedUntil, v1alpha1.AnnotationDue, v1alpha1.AnnotationLeaderEpoch} {
		if _, ok := n.Annotations[key]; ok {
			notes[key] = nil
		}
	}
	if kept, ok := n.Annotations[v1alpha1.AnnotationKept]; ok {
		notes[v1alpha1.AnnotationKept] = nil
		for key := range strings.SplitSeq(kept, ",") {
			if key != "" {
				notes[key] = nil
			}
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Key != v1alpha1.TaintHolder && t.Key != v1alpha1.TaintFenced {
			taints = append(taints, t)
		}
	}
	if len(labels) == 0 && len(notes) == 0 && len(taints) == len(n.Spec.Taints) {
		return nil
	}
	body := map[string]any{"metadata": map[string]any{"labels": labels, "annotations": notes}}
	if len(taints) != len(n.Spec.Taints) {
		body["metadata"].(map[string]any)["resourceVersion"] = n.ResourceVersion
		body["spec"] = map[string]any{"taints": taints}
	}
	return body
}

// unmarkPods removes notices and deletion costs of ours, and deletes fillers.
func (u *uninstall) unmarkPods(ctx context.Context, c *cluster.Clients) (int, error) {
	done := 0
	err := takeover.EachPage(ctx, func(o metav1.ListOptions) (string, error) {
		page, err := c.Core.CoreV1().Pods("").List(ctx, o)
		if err != nil {
			return "", fmt.Errorf("read pods: %w", err)
		}
		for i := range page.Items {
			p := &page.Items[i]
			if p.Namespace == u.Namespace && p.Labels[v1alpha1.LabelComponent] == v1alpha1.ComponentFiller {
				if err := c.Core.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					return "", fmt.Errorf("delete filler %s: %w", p.Name, err)
				}
				continue
			}
			notes := map[string]any{}
			if _, ok := p.Annotations[v1alpha1.AnnotationLeavesAt]; ok { // a deletion cost without it is its owner's
				notes[v1alpha1.AnnotationLeavesAt], notes[corev1.PodDeletionCost] = nil, nil
			}
			for _, key := range []string{v1alpha1.AnnotationNotice, v1alpha1.AnnotationAck, v1alpha1.AnnotationHeartbeat, v1alpha1.AnnotationLeaderEpoch} {
				if _, ok := p.Annotations[key]; ok {
					notes[key] = nil
				}
			}
			if len(notes) == 0 {
				continue
			}
			b, err := cluster.MergePatch(map[string]any{"metadata": map[string]any{"annotations": notes}})
			if err != nil {
				return "", err
			}
			if _, err := c.Core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, b, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return "", fmt.Errorf("take marks off pod %s/%s: %w", p.Namespace, p.Name, err)
			}
			done++
		}
		return page.Continue, nil
	})
	return done, err
}

// unmarkWorkloads removes the leader's stamp from what services and jobs scale.
func unmarkWorkloads(ctx context.Context, c *cluster.Clients) (int, error) {
	done := 0
	stamp, err := cluster.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationLeaderEpoch: nil}}})
	if err != nil {
		return 0, err
	}
	for _, kind := range []struct {
		list  func(metav1.ListOptions) ([]metav1.Object, string, error)
		patch func(namespace, name string) error
	}{
		{func(o metav1.ListOptions) ([]metav1.Object, string, error) {
			l, err := c.Core.AppsV1().Deployments("").List(ctx, o)
			return objects(l.Items, func(x *appsv1.Deployment) metav1.Object { return x }), l.Continue, err
		}, func(ns, n string) error {
			_, err := c.Core.AppsV1().Deployments(ns).Patch(ctx, n, types.MergePatchType, stamp, metav1.PatchOptions{})
			return err
		}},
		{func(o metav1.ListOptions) ([]metav1.Object, string, error) {
			l, err := c.Core.AppsV1().StatefulSets("").List(ctx, o)
			return objects(l.Items, func(x *appsv1.StatefulSet) metav1.Object { return x }), l.Continue, err
		}, func(ns, n string) error {
			_, err := c.Core.AppsV1().StatefulSets(ns).Patch(ctx, n, types.MergePatchType, stamp, metav1.PatchOptions{})
			return err
		}},
	} {
		err := takeover.EachPage(ctx, func(o metav1.ListOptions) (string, error) {
			found, more, err := kind.list(o)
			if err != nil {
				return "", fmt.Errorf("read workloads: %w", err)
			}
			for _, x := range found {
				if _, ok := x.GetAnnotations()[v1alpha1.AnnotationLeaderEpoch]; !ok {
					continue
				}
				if err := kind.patch(x.GetNamespace(), x.GetName()); err != nil && !apierrors.IsNotFound(err) {
					return "", fmt.Errorf("take the stamp off %s/%s: %w", x.GetNamespace(), x.GetName(), err)
				}
				done++
			}
			return more, nil
		})
		if err != nil {
			return done, err
		}
	}
	n, err := unmarkTargets(ctx, c, stamp)
	return done + n, err
}

// unmarkTargets removes the stamp from targets of other kinds that services name.
func unmarkTargets(ctx context.Context, c *cluster.Clients, stamp []byte) (done int, err error) {
	services, err := cluster.List[v1alpha1.ElasticService](ctx, c, cluster.Services, "")
	if cluster.IsUnserved(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for i := range services {
		ref := &services[i].Spec.TargetRef
		if target.Builtin(ref) {
			continue
		}
		gvr, problem, err := target.Find(c.Core.Discovery(), ref.APIVersion, ref.Kind)
		if err != nil {
			return done, err
		}
		if problem.Any() {
			continue // its kind is gone, and the object with it
		}
		client := c.Dyn.Resource(gvr).Namespace(services[i].Namespace)
		u, err := client.Get(ctx, ref.Name, metav1.GetOptions{})
		if err == nil && u.GetAnnotations()[v1alpha1.AnnotationLeaderEpoch] != "" {
			if _, err = client.Patch(ctx, ref.Name, types.MergePatchType, stamp, metav1.PatchOptions{}); err == nil {
				done++
			}
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return done, fmt.Errorf("take the stamp off %s %s/%s: %w", ref.Kind, services[i].Namespace, ref.Name, err)
		}
	}
	return done, nil
}

func objects[T any](items []T, as func(*T) metav1.Object) []metav1.Object {
	var out []metav1.Object
	for i := range items {
		out = append(out, as(&items[i]))
	}
	return out
}

// deleteLeases removes the controller's Lease and those of the agents.
func (u *uninstall) deleteLeases(ctx context.Context, c *cluster.Clients) (int, error) {
	found, err := c.Core.CoordinationV1().Leases(u.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("read Leases: %w", err)
	}
	done := 0
	for i := range found.Items {
		name := found.Items[i].Name
		if name != cluster.ControllerDeployment && !strings.HasPrefix(name, v1alpha1.AgentLeasePrefix) {
			continue
		}
		if err := c.Core.CoordinationV1().Leases(u.Namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return done, fmt.Errorf("delete Lease %s: %w", name, err)
		}
		done++
	}
	return done, nil
}
