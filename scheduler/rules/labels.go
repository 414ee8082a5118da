package rules

import (
	"cmp"
	"slices"
	"strconv"
)

// Label is one label of a machine.
type Label struct{ Key, Value string }

// Labels are the labels of a machine, sorted by key.
type Labels []Label

// LabelsOf sorts a map into labels.
func LabelsOf(m map[string]string) Labels {
	out := make(Labels, 0, len(m))
	for k, v := range m {
		out = append(out, Label{k, v})
	}
	slices.SortFunc(out, func(a, b Label) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// Get returns the value of a key. Machines have tens of labels, and comparing their lengths first is quicker than a search.
func (l Labels) Get(key string) (string, bool) {
	for i := range l {
		if l[i].Key == key {
			return l[i].Value, true
		}
	}
	return "", false
}

// Operator compares a label with the values of a requirement.
type Operator uint8

// The operators of node affinity.
const (
	In Operator = iota
	NotIn
	Exists
	DoesNotExist
	Gt
	Lt
)

// Requirement is one expression of a term.
type Requirement struct {
	Key    string
	Op     Operator
	Values []string
}

// Matches judges labels. As in Kubernetes, NotIn holds where the key is missing, and Gt and Lt hold only between integers.
func (r *Requirement) Matches(l Labels) bool {
	v, ok := l.Get(r.Key)
	switch r.Op {
	case In:
		return ok && slices.Contains(r.Values, v)
	case NotIn:
		return !ok || !slices.Contains(r.Values, v)
	case Exists:
		return ok
	case DoesNotExist:
		return !ok
	case Gt, Lt:
		if !ok || len(r.Values) != 1 {
			return false
		}
		have, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return false
		}
		limit, err := strconv.ParseInt(r.Values[0], 10, 64)
		if err != nil {
			return false
		}
		return r.Op == Gt && have > limit || r.Op == Lt && have < limit
	}
	return false
}

// Term is one term of node affinity: all of it must hold. A term without any requirement matches no machine, as in Kubernetes.
type Term struct {
	Labels []Requirement
	// Names are the requirements of matchFields on metadata.name; their operators are In and NotIn.
	Names []Requirement
}

// Matches judges a machine by its name and labels.
func (t *Term) Matches(name string, l Labels) bool {
	if len(t.Labels) == 0 && len(t.Names) == 0 {
		return false
	}
	for i := range t.Names {
		r := &t.Names[i]
		// A field has one value and is always there. Kubernetes allows exactly one value to compare it with.
		if len(r.Values) != 1 || r.Op > NotIn || (r.Op == In) != (r.Values[0] == name) {
			return false
		}
	}
	for i := range t.Labels {
		if !t.Labels[i].Matches(l) {
			return false
		}
	}
	return true
}

// Selector is a pod's node selector and its required node affinity.
type Selector struct {
	// Labels are those of spec.nodeSelector: all must be there.
	Labels Labels
	// Required says that there is a required node affinity; its Terms are alternatives, and without any none matches.
	Required bool
	Terms    []Term
}

// Matches judges a machine.
func (s *Selector) Matches(name string, l Labels) bool {
	for _, want := range s.Labels {
		if v, ok := l.Get(want.Key); !ok || v != want.Value {
			return false
		}
	}
	if !s.Required {
		return true
	}
	for i := range s.Terms {
		if s.Terms[i].Matches(name, l) {
			return true
		}
	}
	return false
}

// Empty reports whether the selector matches every machine.
func (s *Selector) Empty() bool { return len(s.Labels) == 0 && !s.Required }

// Weighted is a term of preferred node affinity. An empty term matches every machine.
type Weighted struct {
	Weight int32
	Term   Term
}

// Matches judges a machine.
func (w *Weighted) Matches(name string, l Labels) bool {
	return len(w.Term.Labels) == 0 && len(w.Term.Names) == 0 || w.Term.Matches(name, l)
}
