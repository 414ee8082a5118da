package takeover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/adopt/foreign"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/usage"
)

// Found is one scaler of a cluster.
type Found struct {
	Kind string
	Name fleet.Name
	// TargetKind and Target are what it scales; a Deployment where its kind says so by leaving it out.
	TargetKind, Target string
}

// Scalers lists all scalers that can be adopted by themselves: an HPA of a ScaledObject goes with that.
func Scalers(ctx context.Context, c *cluster.Clients, namespace string) ([]Found, error) {
	var out []Found
	all, err := c.Core.AutoscalingV2().HorizontalPodAutoscalers(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the HorizontalPodAutoscalers: %w", err)
	}
	for i := range all.Items {
		h := &all.Items[i]
		if owner := metav1.GetControllerOf(h); owner == nil || owner.Kind != "ScaledObject" {
			out = append(out, Found{HPA, fleet.Name{Namespace: h.Namespace, Name: h.Name}, h.Spec.ScaleTargetRef.Kind,
				h.Spec.ScaleTargetRef.Name})
		}
	}
	for _, kind := range []string{ScaledObject, CronHPA} {
		raw, err := c.Dyn.Resource(Resources[kind]).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue // its operator is not installed
		}
		if err != nil {
			return nil, fmt.Errorf("read the %ss: %w", kind, err)
		}
		for i := range raw.Items {
			u := &raw.Items[i]
			targetKind, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "kind")
			target, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "name")
			out = append(out, Found{kind, fleet.Name{Namespace: u.GetNamespace(), Name: u.GetName()},
				cmp.Or(targetKind, "Deployment"), target})
		}
	}
	slices.SortFunc(out, func(a, b Found) int {
		return strings.Compare(a.Name.String()+a.Kind, b.Name.String()+b.Kind)
	})
	return out, nil
}

// Read is the adoption of one scaler: a service that does what it does, and no more until its mode is changed.
func Read(ctx context.Context, c *cluster.Clients, kind string, name fleet.Name,
	options foreign.Options) (*foreign.Adoption, error) {
	var adopted *foreign.Adoption
	if kind == HPA {
		hpa, err := c.Core.AutoscalingV2().HorizontalPodAutoscalers(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if err != nil {
			return nil, cluster.ReadingOne("HorizontalPodAutoscaler", name, err)
		}
		for _, owner := range hpa.OwnerReferences {
			if owner.Kind == "ScaledObject" {
				return nil, usage.Error{Err: fmt.Errorf("HorizontalPodAutoscaler %s belongs to ScaledObject %s, which would undo "+
					"every change: adopt that (springtide adopt --kind scaledobject %s/%s)", hpa.Name, owner.Name, hpa.Namespace,
					owner.Name)}
			}
		}
		adopted, err = foreign.FromHPA(hpa, options)
		return adopted, asUsage(err)
	}
	u, err := Scaler(ctx, c, kind, name)
	if err != nil {
		return nil, err
	}
	if kind == ScaledObject {
		adopted, err = foreign.FromScaledObject(u, options)
	} else {
		adopted, err = foreign.FromCronHPA(u, options)
	}
	return adopted, asUsage(err)
}

// asUsage marks what the user can change in the call.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usage.Error{Err: err}
}

// Incumbent is a scaler that sizes a workload today, as the service that would do the same.
type Incumbent struct {
	Found
	*foreign.Adoption
}

// Incumbents are the scalers of a workload. One that cannot be read as a service is named in the notes.
func Incumbents(ctx context.Context, c *cluster.Clients, namespace string, target v1alpha1.TargetRef) (
	of []Incumbent, notes []string, err error) {
	all, err := Scalers(ctx, c, namespace)
	if err != nil {
		return nil, nil, err
	}
	for _, x := range all {
		if x.TargetKind != target.Kind || x.Target != target.Name {
			continue
		}
		a, err := Read(ctx, c, x.Kind, x.Name, foreign.Options{Zone: "UTC"})
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s %s is not looked at: %v", x.Kind, x.Name.Name, err))
			continue
		}
		of = append(of, Incumbent{x, a})
	}
	return of, notes, nil
}
