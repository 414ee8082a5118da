package watch

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/target"
)

// OtherFacts is what is known of a target that is neither a Deployment nor a StatefulSet.
type OtherFacts struct {
	// Templated says that the object has a pod template that is read.
	Templated bool
	// Workers is what the further pods of one replica ask for; GroupLabel names the object on all of its pods.
	Workers    fleet.Resources
	GroupLabel string
	// RevisionLabel and Revisions say which pods are of a revision that is kept up; empty where that is not known.
	RevisionLabel string
	Revisions     []string
	// Measured is under which owner metrics know its pods; zero where the object does not say it.
	Measured fleet.WorkloadName
	// Selector finds the pods that the Scale counts; nil where the Scale names none.
	Selector labels.Selector
	// Unscalable says why the object is read and cannot be scaled.
	Unscalable fleet.Problem
}

// NewOtherFacts reads an object of any kind, without what its Scale says.
func NewOtherFacts(u *unstructured.Unstructured) *WorkloadFacts {
	s := target.Read(u)
	f := &WorkloadFacts{Header: object.HeaderOf(u), Writers: scaleWriters(u.GetManagedFields()),
		Leader: leadership.StampOn(u), Other: &OtherFacts{Templated: s.Template != nil, GroupLabel: s.GroupLabel,
			RevisionLabel: s.RevisionLabel, Revisions: s.Revisions}}
	if s.MeasuredKind != "" {
		f.Other.Measured = fleet.WorkloadName{Kind: s.MeasuredKind, Name: u.GetName()}
	}
	if s.Template != nil {
		spec := &s.Template.Spec
		f.Request, f.Devices, f.Tolerations = convert.PodRequests(spec), deviceAsksOf(spec),
			facts.Tolerations(spec.Tolerations)
		f.labels = s.Template.Labels
	}
	if s.Worker != nil && s.Workers > 0 {
		f.Other.Workers = convert.PodRequests(&s.Worker.Spec).Times(s.Workers)
	}
	return f
}

// scaleWriters names the managers that own the size of an object: those of spec.replicas, where nearly all kinds keep
// it, and those that wrote its Scale, wherever that stands.
func scaleWriters(fields []metav1.ManagedFieldsEntry) []ReplicaWriter {
	out := replicaWriters(fields)
	for i := range fields {
		e := &fields[i]
		if e.Subresource != target.Subresource ||
			slices.ContainsFunc(out, func(w ReplicaWriter) bool { return w.Manager == e.Manager }) {
			continue
		}
		w := ReplicaWriter{Manager: e.Manager}
		if e.Time != nil {
			w.At = e.Time.UTC()
		}
		out = append(out, w)
	}
	return out
}

// withScale are the facts of an object with what its Scale says. They are as old as the older of the two, so that a
// write that depends on their version fails where either changed since.
func (f *WorkloadFacts) withScale(s *target.Scale, same bool) *WorkloadFacts {
	out, other := *f, *f.Other
	out.Replicas, other.Selector, out.Other = s.Replicas, s.Selector, &other
	if same {
		return &out
	}
	if c, err := resourceversion.CompareResourceVersion(s.Version, f.ResourceVersion); err == nil && c < 0 {
		out.ResourceVersion = s.Version
	}
	return &out
}

// ReadOther reads a target and its Scale again. The object is read first: facts that change in between are refused by
// its version.
func (c *Watcher) ReadOther(ctx context.Context, gvr schema.GroupVersionResource, n fleet.Name) (*WorkloadFacts,
	error) {
	client := c.Dyn.Resource(gvr).Namespace(n.Namespace)
	u, err := client.Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", gvr.Resource, n, err)
	}
	s, err := c.readScale(ctx, gvr, n)
	if err != nil {
		return nil, err
	}
	return NewOtherFacts(u).withScale(&s, true), nil
}

func (c *Watcher) readScale(ctx context.Context, gvr schema.GroupVersionResource, n fleet.Name) (target.Scale, error) {
	u, err := c.Dyn.Resource(gvr).Namespace(n.Namespace).Get(ctx, n.Name, metav1.GetOptions{}, target.Subresource)
	if err != nil {
		return target.Scale{}, fmt.Errorf("read the Scale of %s %s: %w", gvr.Resource, n, err)
	}
	return target.ReadScale(u)
}
