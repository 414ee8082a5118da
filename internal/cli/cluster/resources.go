package cluster

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
	"github.com/springtide/springtide/internal/cli/usage"
)

// The plural names of our kinds.
const (
	Services  = "elasticservices"
	Pools     = "capacitypools"
	Quotas    = "capacityquotas"
	Loans     = "loans"
	Shares    = "nodeshares"
	Jobs      = "elasticjobs"
	Festivals = "festivalplans"
)

// Nodes is the plural name of machines, which are not ours.
const Nodes = "nodes"

// HPAs is the plural name of HorizontalPodAutoscalers.
const HPAs = "horizontalpodautoscalers"

// Resource is the client of one of our kinds, in a namespace or, where that is empty, in the whole cluster.
func (c *Clients) Resource(plural, namespace string) dynamic.ResourceInterface {
	r := c.Dyn.Resource(v1alpha1.GroupVersion.WithResource(plural))
	if namespace != "" {
		return r.Namespace(namespace)
	}
	return r
}

// List reads all objects of one of our kinds.
func List[T any](ctx context.Context, c *Clients, plural, namespace string) ([]T, error) {
	raw, err := c.Resource(plural, namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, Reading(plural, err)
	}
	out := make([]T, len(raw.Items))
	for i := range raw.Items {
		if err := Decode(&raw.Items[i], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Get reads one object of one of our kinds.
func Get[T any](ctx context.Context, c *Clients, plural string, name fleet.Name) (*T, error) {
	raw, err := c.Resource(plural, name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ReadingOne(kindOf[plural], name, err)
	}
	out := new(T)
	return out, Decode(raw, out)
}

// Decode reads an object as one of our types.
func Decode(u *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("read %s %s: %w: is this binary older than the cluster's definitions? See springtide doctor", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// Reading explains an error of the API server where the fix is ours to name.
func Reading(plural string, err error) error {
	if IsUnserved(err) {
		return fmt.Errorf("the cluster does not know %s.%s: apply deploy/crd first: %w", plural, v1alpha1.GroupVersion.Group, err)
	}
	return fmt.Errorf("read %s: %w", plural, err)
}

// kindOf is what people call one object of ours.
var kindOf = map[string]string{Services: "ElasticService", Pools: "CapacityPool", Quotas: "CapacityQuota", Loans: "Loan", Shares: "NodeShare",
	Jobs: "ElasticJob", Festivals: "FestivalPlan"}

// notThere is the answer about one object that the cluster does not have.
type notThere struct {
	text string
	err  error
}

func (e notThere) Error() string { return e.text }
func (e notThere) Unwrap() error { return e.err }

// ReadingOne explains an error of reading one object: where it was looked for, when it is not there.
func ReadingOne(kind string, name fleet.Name, err error) error {
	switch {
	case IsUnserved(err):
		return fmt.Errorf("the cluster does not know the kind %s: apply deploy/crd first: %w", kind, err)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read %s %s: %w", kind, name, err)
	case name.Namespace == "":
		return notThere{fmt.Sprintf("there is no %s %s", kind, name.Name), err}
	}
	return notThere{fmt.Sprintf("there is no %s %s in namespace %s: -n names another namespace", kind, name.Name, name.Namespace), err}
}

// IsUnserved reports whether the API server knows no such kind.
func IsUnserved(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource")
}

// NameOf reads "namespace/name", or a name in the namespace of -n or of the context.
func (o *Options) NameOf(c *Clients, arg string) (fleet.Name, error) {
	n := fleet.ParseName(arg)
	n.Namespace = cmp.Or(n.Namespace, o.Namespace, c.Namespace)
	if n.Namespace == "" || n.Name == "" {
		return n, usage.Error{Err: fmt.Errorf("%q is no name: write NAME, or NAMESPACE/NAME", arg)}
	}
	return n, nil
}

// About is the head of verbs that do something about one namespaced object: its name, and the cluster that it is in.
func (o *Options) About(run func(cmd *cobra.Command, c *Clients, name fleet.Name) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := o.Connect(o)
		if err != nil {
			return err
		}
		name, err := o.NameOf(c, args[0])
		if err != nil {
			return err
		}
		return run(cmd, c, name)
	}
}

// Names lists the names of one of our kinds, or of the nodes, as they are given to verbs.
func (c *Clients) Names(ctx context.Context, plural, namespace string) ([]string, error) {
	r := c.Resource(plural, namespace)
	switch plural {
	case Nodes:
		r = c.Dyn.Resource(corev1.SchemeGroupVersion.WithResource(Nodes))
	case HPAs:
		return c.hpaNames(ctx, namespace)
	}
	raw, err := r.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, Reading(plural, err)
	}
	out := make([]string, len(raw.Items))
	for i := range raw.Items {
		out[i] = fleet.Name{Namespace: raw.Items[i].GetNamespace(), Name: raw.Items[i].GetName()}.String()
	}
	slices.Sort(out)
	return out, nil
}

func (c *Clients) hpaNames(ctx context.Context, namespace string) ([]string, error) {
	found, err := c.Core.AutoscalingV2().HorizontalPodAutoscalers(namespace).List(ctx, metav1.ListOptions{})
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
