package adapter

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

// Adapter knows one kind of workload.
type Adapter interface {
	// Kind is the workload's kind, Resource the name by which the API server serves it.
	Kind() schema.GroupVersionKind
	Resource() schema.GroupVersionResource
	// Read says what a workload is. It cannot fail: what is missing or of another type than expected becomes a refusal, since an unread
	// setting is not a good one.
	Read(u *unstructured.Unstructured) Workload
	// PartOf names the part of the workload that a pod is of, by the labels of RoleLabels that its operator put there; empty where they
	// do not say.
	PartOf(labels map[string]string) string
}

// Workload is what an adapter reads out of one object.
type Workload struct {
	// Its name in sentences, as in "MPIJob bert".
	What  string
	Parts []Part
	// Finished workloads want nothing any more, and no setting of theirs matters.
	Finished bool
	// Refusals hold for all parts. Each reads "Reason: sentence" and says how to fix it.
	Refusals []fleet.Problem
	// Stopped is when the workload was last suspended, or let run again after that, by its own conditions.
	Stopped time.Time
	// Owned are refusals of members that would be resized: another system owns the size.
	Owned []fleet.Problem
}

// Part is one role of a workload: pods that are alike and are counted in one field.
type Part struct {
	Name string
	// Size is the number of pods asked for.
	Size int32
	// Min and Max are bounds of the workload's own.
	Min, Max Bound
	// Remaining are the pods that there is still work for; negative where that is unknown.
	Remaining int32
	// Active and Ending are the pods that run and that were asked to leave, by the workload's status; negative where
	// pods have to be counted.
	Active, Ending int32
	// Gathers says that the workload begins only once all pods of the part are ready, and has not begun.
	Gathers bool
	// IsHost says that the part, which holds the others together, works as one of them.
	IsHost bool
	// Fixed says why the part can never change its size, as in "the launcher is one"; empty where it can.
	Fixed string
	// SelfSized parts choose their own size between their bounds, or keep the one they have: pods get a notice and are
	// evicted, and nothing is written.
	SelfSized bool
	// Path leads to the field that holds the size; Guard is a list element above it and the name that makes it the part's.
	Path  []string
	Guard *Guard
	// Leaves says which pods the operator takes away when the size falls. Where the operator accepts a choice, Victims
	// leads to the object that holds their names.
	Leaves  fleet.LeaveOrder
	Victims []string
	// Child is the batch/v1 Job that carries the size in the workload's place.
	Child string
	// Template are the part's pods.
	Template *corev1.PodSpec
	// Labels are those of the template, and the one by which the operator marks the part that holds the others together.
	Labels map[string]string
	// Refusals hold where the part is elastic.
	Refusals []fleet.Problem
	// StableToo are refusals that hold for stable members as well: what an eviction breaks, since a festival plan that says takeStable
	// evicts those too, and what keeps the part from running at all.
	StableToo []fleet.Problem
}

// Guard is a field that must still hold a value when Path is written: an index into a list says nothing by itself.
type Guard struct {
	Path  []string
	Value string
}

// Bound is a bound that stands in the workload, with the name of its field for sentences; no bound while Field is empty.
type Bound struct {
	Value int32
	Field string
}

// less is a bound that is lower by n, and at least zero.
func (b Bound) less(n int32) Bound {
	b.Value = max(b.Value-n, 0)
	return b
}

// All lists the adapters, by group and kind.
func All() []Adapter {
	return []Adapter{batchJob{}, volcanoJob{}, jobSet{}, mpiJob{}, pyTorchJob{}, rayCluster{}, sparkApplication{}, trainJob{}}
}

// For finds the adapter of a kind as a reference names it.
func For(apiVersion, kind string) (Adapter, bool) {
	for _, a := range All() {
		if k := a.Kind(); k.GroupVersion().String() == apiVersion && k.Kind == kind {
			return a, true
		}
	}
	return nil, false
}

// RoleLabels are the labels by which operators mark the parts of their pods.
var RoleLabels = []string{labelReplicaType, labelJobRole, labelRayGroup, labelRayNodeType, labelSparkRole, labelVolcanoTask, labelReplicatedJob}

// Part finds a part by its name. A workload of one part has it under any name: there is nothing to tell apart.
func (w *Workload) Part(name string) *Part {
	if len(w.Parts) == 1 && w.Parts[0].Name == "" {
		return &w.Parts[0]
	}
	i := slices.IndexFunc(w.Parts, func(p Part) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &w.Parts[i]
}

// partNames is the list of parts in a sentence.
func (w *Workload) partNames() string {
	names := make([]string, len(w.Parts))
	for i := range w.Parts {
		names[i] = w.Parts[i].Name
	}
	return strings.Join(names, ", ")
}

// refuse adds a refusal to a list.
func refuse(list *[]fleet.Problem, r *catalog.Refusal, args ...any) {
	*list = append(*list, r.Of(args...))
}
