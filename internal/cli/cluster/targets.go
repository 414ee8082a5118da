package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/usage"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/target"
)

// Target is what is read of an object that a service scales.
type Target struct {
	Ref      v1alpha1.TargetRef
	Replicas int32
	// Request is what one pod asks for, Workers what the further pods of one replica do.
	Request, Workers fleet.Resources
	// Measured is under which owner the metrics source knows the pods; zero where that is the object.
	Measured fleet.WorkloadName
}

// Target reads the target of a service.
func (c *Clients) Target(ctx context.Context, namespace string, ref *v1alpha1.TargetRef) (*Target, error) {
	name := fleet.Name{Namespace: namespace, Name: ref.Name}
	out := &Target{Ref: *ref}
	if target.Builtin(ref) {
		return out, c.builtin(ctx, name, out)
	}
	gvr, problem, err := target.Find(c.Core.Discovery(), ref.APIVersion, ref.Kind)
	if err != nil {
		return nil, err
	}
	if problem.Any() {
		return nil, usage.Error{Err: fmt.Errorf("%s", problem.Message)}
	}
	u, err := c.Dyn.Resource(gvr).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ReadingOne(ref.Kind, name, err)
	}
	return out, c.anyKind(ctx, gvr, u, out)
}

func (c *Clients) builtin(ctx context.Context, name fleet.Name, out *Target) error {
	template, replicas := (*corev1.PodSpec)(nil), (*int32)(nil)
	if out.Ref.Kind == "StatefulSet" {
		s, err := c.Core.AppsV1().StatefulSets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if err != nil {
			return ReadingOne(out.Ref.Kind, name, err)
		}
		template, replicas = &s.Spec.Template.Spec, s.Spec.Replicas
	} else {
		d, err := c.Core.AppsV1().Deployments(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if err != nil {
			return ReadingOne(out.Ref.Kind, name, err)
		}
		template, replicas = &d.Spec.Template.Spec, d.Spec.Replicas
	}
	out.Request, out.Replicas = convert.PodRequests(template), 1 // the API server's default
	if replicas != nil {
		out.Replicas = *replicas
	}
	return nil
}

// anyKind reads an object of a kind that has a Scale.
func (c *Clients) anyKind(ctx context.Context, gvr schema.GroupVersionResource, u *unstructured.Unstructured,
	out *Target) error {
	raw, err := c.Dyn.Resource(gvr).Namespace(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{},
		target.Subresource)
	if err != nil {
		return fmt.Errorf("read the Scale of %s %s/%s: %w", out.Ref.Kind, u.GetNamespace(), u.GetName(), err)
	}
	scale, err := target.ReadScale(raw)
	if err != nil {
		return err
	}
	shape := target.Read(u)
	out.Replicas = scale.Replicas
	if shape.Template != nil {
		out.Request = convert.PodRequests(&shape.Template.Spec)
	}
	if shape.Worker != nil && shape.Workers > 0 {
		out.Workers = convert.PodRequests(&shape.Worker.Spec).Times(shape.Workers)
	}
	if shape.MeasuredKind != "" {
		out.Measured = fleet.WorkloadName{Kind: shape.MeasuredKind, Name: u.GetName()}
	}
	if scale.Selector == nil || shape.Template != nil && shape.MeasuredKind != "" {
		return nil
	}
	return c.ofPods(ctx, u.GetNamespace(), scale.Text, shape.Template == nil, out)
}

// ofPods reads from a pod what its target does not say: what it requests, and under which owner metrics know it.
func (c *Clients) ofPods(ctx context.Context, namespace, selector string, requests bool, out *Target) error {
	pods, err := c.Core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		return fmt.Errorf("read the pods of %s %s/%s: %w", out.Ref.Kind, namespace, out.Ref.Name, err)
	}
	if len(pods.Items) == 0 {
		return nil
	}
	p := &pods.Items[0]
	if requests {
		out.Request = convert.RequestsOf(p)
	}
	owner := metav1.GetControllerOf(p)
	if owner != nil && owner.Kind == "ReplicaSet" {
		set, err := c.Core.AppsV1().ReplicaSets(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil {
			return ReadingOne("ReplicaSet", fleet.Name{Namespace: namespace, Name: owner.Name}, err)
		}
		if above := metav1.GetControllerOf(set); above != nil {
			owner = above
		}
	}
	if out.Measured == (fleet.WorkloadName{}) && owner != nil {
		out.Measured = fleet.WorkloadName{Kind: owner.Kind, Name: owner.Name}
	}
	return nil
}

// Scalable are the kinds that are served with a scale subresource, other than those of Kubernetes itself, by name. A
// group that does not answer has none.
func (c *Clients) Scalable() []v1alpha1.TargetRef {
	_, lists, _ := c.Core.Discovery().ServerGroupsAndResources() // the error names the groups that did not answer
	var out []v1alpha1.TargetRef
	for _, list := range lists {
		if group, _, grouped := strings.Cut(list.GroupVersion, "/"); !grouped || group == "apps" {
			continue
		}
		kinds := map[string]string{}
		for i := range list.APIResources {
			if r := &list.APIResources[i]; r.Namespaced && !strings.Contains(r.Name, "/") {
				kinds[r.Name] = r.Kind
			}
		}
		for i := range list.APIResources {
			of, sub, _ := strings.Cut(list.APIResources[i].Name, "/")
			if sub == target.Subresource && kinds[of] != "" {
				out = append(out, v1alpha1.TargetRef{APIVersion: list.GroupVersion, Kind: kinds[of]})
			}
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.TargetRef) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	return slices.Compact(out)
}

// Targets lists the objects of a kind in a namespace that no other object controls.
func (c *Clients) Targets(ctx context.Context, namespace string, kind *v1alpha1.TargetRef) ([]*Target, error) {
	gvr, problem, err := target.Find(c.Core.Discovery(), kind.APIVersion, kind.Kind)
	if err != nil || problem.Any() {
		return nil, err
	}
	all, err := c.Dyn.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the objects %s of %s: %w", kind.Kind, namespace, err)
	}
	var out []*Target
	for i := range all.Items {
		u := &all.Items[i]
		if metav1.GetControllerOf(u) != nil {
			continue
		}
		t := &Target{Ref: v1alpha1.TargetRef{APIVersion: kind.APIVersion, Kind: kind.Kind, Name: u.GetName()}}
		if err := c.anyKind(ctx, gvr, u, t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
