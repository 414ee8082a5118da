package rules

import "strconv"

// Effect is what a taint does to a pod that does not tolerate it.
type Effect uint8

// The effects. The zero Effect of a toleration stands for all of them.
const (
	AnyEffect Effect = iota
	NoSchedule
	PreferNoSchedule
	NoExecute
)

// Taint is one taint of a machine.
type Taint struct {
	Key, Value string
	Effect     Effect
}

// unschedulable is the taint that stands for spec.unschedulable: a pod that tolerates it may land on a cordoned machine.
const unschedulable = "node.kubernetes.io/unschedulable"

// TolerationOp compares a toleration's value with that of a taint.
type TolerationOp uint8

// The operators of tolerations.
const (
	Equal TolerationOp = iota
	Anything
	NumericGt
	NumericLt
)

// Toleration is one toleration of a pod. An empty key with the operator Anything tolerates every taint.
type Toleration struct {
	Key, Value string
	Op         TolerationOp
	Effect     Effect
}

// Tolerates judges one taint.
func (t *Toleration) Tolerates(taint *Taint) bool {
	if t.Effect != AnyEffect && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Op {
	case Anything:
		return true
	case Equal:
		return t.Value == taint.Value
	}
	want, err := strconv.ParseInt(t.Value, 10, 64)
	if err != nil {
		return false
	}
	have, err := strconv.ParseInt(taint.Value, 10, 64)
	if err != nil {
		return false
	}
	return t.Op == NumericGt && have > want || t.Op == NumericLt && have < want
}

func tolerated(all []Toleration, taint *Taint) bool {
	for i := range all {
		if all[i].Tolerates(taint) {
			return true
		}
	}
	return false
}

// Admits reports whether a pod with these tolerations may land on a machine with these taints, and whether the machine is cordoned.
func Admits(all []Toleration, taints []Taint, cordoned bool) bool {
	if cordoned && !tolerated(all, &Taint{Key: unschedulable, Effect: NoSchedule}) {
		return false
	}
	for i := range taints {
		if taints[i].Effect != PreferNoSchedule && !tolerated(all, &taints[i]) {
			return false
		}
	}
	return true
}

// Unwanted counts the taints of effect PreferNoSchedule that are not tolerated. As in Kubernetes, tolerations of the effect or of all count.
func Unwanted(all []Toleration, taints []Taint) int {
	n := 0
	for i := range taints {
		if taints[i].Effect == PreferNoSchedule && !tolerated(all, &taints[i]) {
			n++
		}
	}
	return n
}
