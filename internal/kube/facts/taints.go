package facts

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/scheduler/rules"
)

// Taint reads a taint.
func Taint(t *corev1.Taint) rules.Taint {
	return rules.Taint{Key: t.Key, Value: t.Value, Effect: effectOf(t.Effect)}
}

// Tolerations reads the tolerations of a pod, or of a template.
func Tolerations(list []corev1.Toleration) []rules.Toleration {
	var out []rules.Toleration
	for i := range list {
		t := &list[i]
		r := rules.Toleration{Key: t.Key, Value: t.Value, Effect: effectOf(t.Effect)}
		switch t.Operator {
		case corev1.TolerationOpExists:
			r.Op = rules.Anything
		case corev1.TolerationOpGt:
			r.Op = rules.NumericGt
		case corev1.TolerationOpLt:
			r.Op = rules.NumericLt
		case corev1.TolerationOpEqual, "":
			r.Op = rules.Equal
		}
		out = append(out, r)
	}
	return out
}

func effectOf(e corev1.TaintEffect) rules.Effect {
	switch e {
	case corev1.TaintEffectNoSchedule:
		return rules.NoSchedule
	case corev1.TaintEffectPreferNoSchedule:
		return rules.PreferNoSchedule
	case corev1.TaintEffectNoExecute:
		return rules.NoExecute
	}
	return rules.AnyEffect
}
