package upstream

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEqualTermsHaveOneName: pods that ask for the same have one name, whichever they are; a namespace, a selector or a topology of namespaces more is another.
func TestEqualTermsHaveOneName(t *testing.T) {
	of := func(namespace, app string, change func(*corev1.PodAffinityTerm)) *corev1.Pod {
		term := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: corev1.LabelHostname}
		if change != nil {
			change(&term)
		}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{Affinity: &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}}}
	}
	terms := NewTerms()
	web := terms.Repels(of("a", "web", nil))
	if web == "" || web != terms.Repels(of("a", "web", nil)) {
		t.Errorf("two equal pods have the names %q and %q", web, terms.Repels(of("a", "web", nil)))
	}
	everywhere := terms.Repels(of("a", "web", func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{} }))
	for _, other := range []string{terms.Repels(of("b", "web", nil)), terms.Repels(of("a", "db", nil)), everywhere, terms.Repels(&corev1.Pod{})} {
		if other == web {
			t.Errorf("another anti-affinity has the name %q too", web)
		}
	}
	for _, c := range []struct {
		name      string
		repels    string
		namespace string
		want      bool
	}{{"of its own namespace", web, "a", true}, {"of another namespace", web, "b", false}, {"of every namespace", everywhere, "b", true}, {"of none", "", "a", false}} {
		if got := terms.Selects(c.repels, of(c.namespace, "web", nil)); got != c.want {
			t.Errorf("%s: keeps away %v, want %v", c.name, got, c.want)
		}
	}
	if none := terms.Repels(of("a", "web", func(t *corev1.PodAffinityTerm) { t.LabelSelector = nil })); none != "" {
		t.Errorf("an anti-affinity to no pod has the name %q", none)
	}
	terms.Forget(web)
	if terms.Selects(web, of("a", "web", nil)) {
		t.Error("what was forgotten keeps a pod away")
	}
}

// TestTermsOfAPodThatRuns: each kind of term bears on the pods that it selects, as upstream's plugin has it: required anti-affinity in its filter, all others in its
// scores.
func TestTermsOfAPodThatRuns(t *testing.T) {
	term := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, TopologyKey: corev1.LabelHostname}
	required, preferred := []corev1.PodAffinityTerm{term}, []corev1.WeightedPodAffinityTerm{{Weight: 1}, {Weight: 1, PodAffinityTerm: term}}
	for _, c := range []struct {
		name string
		a    corev1.Affinity
		want bool
	}{
		{"it must stand apart", corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}, true},
		{"it prefers to stand apart", corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}, true},
		{"it needed company", corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}, true},
		{"it prefers company", corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}, true},
		{"it asks for nothing", corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}, false},
		{"it asks for nodes", corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}, false},
	} {
		terms := NewTerms()
		repels := terms.Repels(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, Spec: corev1.PodSpec{Affinity: &c.a}})
		if (repels != "") != c.want {
			t.Errorf("%s: its terms have the name %q", c.name, repels)
		}
		for app, same := range map[string]bool{"web": true, "db": false} {
			other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Labels: map[string]string{"app": app}}}
			if got := terms.Selects(repels, other); got != (same && c.want) {
				t.Errorf("%s: bears on a pod of %s: %t", c.name, app, got)
			}
		}
	}
}
