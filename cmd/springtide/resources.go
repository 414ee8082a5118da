package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// The plural names of our kinds.
const (
	services  = "elasticservices"
	pools     = "capacitypools"
	quotas    = "capacityquotas"
	loans     = "loans"
	shares    = "nodeshares"
	jobs      = "elasticjobs"
	festivals = "festivalplans"
)

// nodes is the plural name of machines, which are not ours.
const nodes = "nodes"

// hpas is the plural name of HorizontalPodAutoscalers.
const hpas = "horizontalpodautoscalers"

func (c *clients) resource(plural, namespace string) dynamic.ResourceInterface {
	r := c.dyn.Resource(v1alpha1.GroupVersion.WithResource(plural))
	if namespace != "" {
		return r.Namespace(namespace)
	}
	return r
}

// list reads all objects of one of our kinds.
func list[T any](ctx context.Context, c *clients, plural, namespace string) ([]T, error) {
	raw, err := c.resource(plural, namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, reading(plural, err)
	}
	out := make([]T, len(raw.Items))
	for i := range raw.Items {
		if err := decode(&raw.Items[i], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// get reads one object of one of our kinds.
func get[T any](ctx context.Context, c *clients, plural string, name fleet.Name) (*T, error) {
	raw, err := c.resource(plural, name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil, readingOne(kindOf[plural], name, err)
	}
	out := new(T)
	return out, decode(raw, out)
}

func decode(u *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("read %s %s: %w: is this binary older than the cluster's definitions? See springtide doctor", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// reading explains an error of the API server where the fix is ours to name.
func reading(plural string, err error) error {
	if isUnserved(err) {
		return fmt.Errorf("the cluster does not know %s.%s: apply deploy/crd first: %w", plural, v1alpha1.GroupVersion.Group, err)
	}
	return fmt.Errorf("read %s: %w", plural, err)
}

// kindOf is what people call one object of ours.
var kindOf = map[string]string{services: "ElasticService", pools: "CapacityPool", quotas: "CapacityQuota", loans: "Loan", shares: "NodeShare",
	jobs: "ElasticJob", festivals: "FestivalPlan"}

// notThere is the answer about one object that the cluster does not have.
type notThere struct {
	text string
	err  error
}

func (e notThere) Error() string { return e.text }
func (e notThere) Unwrap() error { return e.err }

// readingOne explains an error of reading one object: where it was looked for, when it is not there.
func readingOne(kind string, name fleet.Name, err error) error {
	switch {
	case isUnserved(err):
		return fmt.Errorf("the cluster does not know the kind %s: apply deploy/crd first: %w", kind, err)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read %s %s: %w", kind, name, err)
	case name.Namespace == "":
		return notThere{fmt.Sprintf("there is no %s %s", kind, name.Name), err}
	}
	return notThere{fmt.Sprintf("there is no %s %s in namespace %s: -n names another namespace", kind, name.Name, name.Namespace), err}
}

// isUnserved reports whether the API server knows no such kind.
func isUnserved(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource")
}

// nameOf reads "namespace/name", or a name in the namespace of -n or of the context.
func (o *cliOptions) nameOf(c *clients, arg string) (fleet.Name, error) {
	n := fleet.ParseName(arg)
	n.Namespace = cmp.Or(n.Namespace, o.namespace, c.namespace)
	if n.Namespace == "" || n.Name == "" {
		return n, usageError{fmt.Errorf("%q is no name: write NAME, or NAMESPACE/NAME", arg)}
	}
	return n, nil
}

// about is the head of verbs that do something about one namespaced object: its name, and the cluster that it is in.
func (o *cliOptions) about(run func(cmd *cobra.Command, c *clients, name fleet.Name) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := o.connect(o)
		if err != nil {
			return err
		}
		name, err := o.nameOf(c, args[0])
		if err != nil {
			return err
		}
		return run(cmd, c, name)
	}
}

// amountText prints an amount of capacity.
func amountText(a *v1alpha1.ResourceAmounts) string {
	if a.CPU.IsZero() && a.Memory.IsZero() && a.GPU == 0 {
		return "nothing"
	}
	parts := []string{a.CPU.String() + " cpu"}
	if !a.Memory.IsZero() {
		parts = append(parts, a.Memory.String())
	}
	if a.GPU > 0 {
		parts = append(parts, fmt.Sprintf("%d gpu", a.GPU))
	}
	return strings.Join(parts, ", ")
}

// names lists the names of one of our kinds, or of the nodes, as they are given to verbs.
func (c *clients) names(ctx context.Context, plural, namespace string) ([]string, error) {
	r := c.resource(plural, namespace)
	switch plural {
	case nodes:
		r = c.dyn.Resource(corev1.SchemeGroupVersion.WithResource(nodes))
	case hpas:
		return c.hpaNames(ctx, namespace)
	}
	raw, err := r.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, reading(plural, err)
	}
	out := make([]string, len(raw.Items))
	for i := range raw.Items {
		out[i] = fleet.Name{Namespace: raw.Items[i].GetNamespace(), Name: raw.Items[i].GetName()}.String()
	}
	slices.Sort(out)
	return out, nil
}

func (c *clients) hpaNames(ctx context.Context, namespace string) ([]string, error) {
	found, err := c.core.AutoscalingV2().HorizontalPodAutoscalers(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the HorizontalPodAutoscalers: %w", err)
	}
	out := make([]string, len(found.Items))
	for i := range found.Items {
		out[i] = found.Items[i].Namespace + "/" + found.Items[i].Name
	}
	slices.Sort(out)
	return out, nil
}
