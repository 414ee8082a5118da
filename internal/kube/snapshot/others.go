package snapshot

import (
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/watch"
)

// chosen is a service whose pods are those that the Scale of its target selects.
type chosen struct {
	service int
	w       *watch.WorkloadFacts
	// owners are under which owner its pods are.
	owners []fleet.WorkloadName
	// is remembers the labels that were judged: pods of one revision share theirs.
	is map[string]role
}

// role is what a pod is to a target by its labels.
type role struct {
	// counted pods are those that the Scale counts, workers come with one of them.
	counted, worker bool
	current         bool
}

// ownPods notes how the pods of a service are found: by their owners, or by the selector of a Scale.
func (a *assembly) ownPods(service int, w *watch.WorkloadFacts) {
	if w.Other == nil {
		a.services[watch.Owned{Namespace: w.Namespace, UID: w.UID}] = service
		a.updates[watch.Owned{Namespace: w.Namespace, UID: w.UID}] = w.UpdateRevision
		return
	}
	if w.Other.Selector != nil {
		a.chosen[w.Namespace] = append(a.chosen[w.Namespace], &chosen{service: service, w: w, is: map[string]role{}})
	}
}

// choose finds the service whose Scale selects a pod, the oldest where several do. A pod that its owner gives to
// another service is not asked about.
func (a *assembly) choose(f *watch.PodFacts) (*chosen, role) {
	for _, c := range a.chosen[f.Namespace] {
		if r := c.role(f.LabelText()); r.counted || r.worker {
			return c, r
		}
	}
	return nil, role{}
}

func (c *chosen) role(text string) role {
	if r, known := c.is[text]; known {
		return r
	}
	labels, o := watch.LabelsOf(text), c.w.Other
	r := role{counted: o.Selector.Matches(labels), current: true}
	r.worker = !r.counted && o.GroupLabel != "" && labels[o.GroupLabel] == c.w.Name
	if len(o.Revisions) > 0 {
		r.current = slices.Contains(o.Revisions, labels[o.RevisionLabel])
	}
	c.is[text] = r
	return r
}

// sees notes the owner of a pod, by which metrics know it: what owns its ReplicaSet, or the owner itself.
func (c *chosen) sees(owner fleet.WorkloadName) {
	if owner.Name != "" && !slices.Contains(c.owners, owner) {
		c.owners = append(c.owners, owner)
	}
}

// measure says of each service that is found by its Scale under which owner metrics know its pods.
func (a *assembly) measure() {
	for _, list := range a.chosen {
		for _, c := range list {
			s := &a.s.Services[c.service]
			s.Measured = a.c.Measured(c.w, c.owners)
			s.Untemplated = s.Untemplated && len(s.Pods) == 0
		}
	}
}
