package upstream

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	base "k8s.io/component-base/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"github.com/springtide/springtide/scheduler/host"
)

// Terms says which pods the plugins are needed for. It has one owner.
type Terms struct {
	// parsed are the selectors by which pods keep others away or draw them, by the names that Repels gave them.
	parsed map[string][]term
}

var _ host.Terms = (*Terms)(nil)

// NewTerms makes it.
func NewTerms() *Terms { return &Terms{parsed: map[string][]term{}} }

// term is one term of an affinity or anti-affinity.
type term struct {
	namespaces []string
	anywhere   bool
	selector   labels.Selector
}

// release is the version by which upstream's plugin for declared features judges; nil where the binary has none that can be read.
var release, _ = version.Parse(base.Get().String())

// Needs reports whether a pod asks for volumes, claims, inter-pod affinity, or features that a node must declare.
func (*Terms) Needs(p *corev1.Pod) bool {
	if release != nil {
		features, err := nodedeclaredfeatures.DefaultFramework.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &p.Spec}, release)
		if err != nil || !features.IsEmpty() {
			return true
		}
	}
	if len(p.Spec.ResourceClaims) > 0 {
		return true
	}
	if a := p.Spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
		return true
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i].VolumeSource
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil ||
			v.AzureDisk != nil || v.ISCSI != nil || v.RBD != nil || v.Cinder != nil {
			return true
		}
	}
	return false
}

// Repels names the terms by which a pod bears on others while it runs, as text: its required anti-affinity keeps them away, and all other terms of its
// affinity and anti-affinity are in their scores.
func (t *Terms) Repels(p *corev1.Pod) string {
	a := p.Spec.Affinity
	if a == nil || a.PodAntiAffinity == nil && a.PodAffinity == nil {
		return ""
	}
	all := parse(p)
	var name strings.Builder
	for i := range all {
		fmt.Fprintf(&name, "%q %t %s; ", all[i].namespaces, all[i].anywhere, all[i].selector)
	}
	if _, ok := t.parsed[name.String()]; !ok {
		t.parsed[name.String()] = all
	}
	return name.String()
}

// Selects reports whether pods with these terms bear on the other one. Terms with a namespace selector count for every
// namespace: the plugins look closer.
func (t *Terms) Selects(repels string, other *corev1.Pod) bool {
	all := t.parsed[repels]
	for i := range all {
		if all[i].selects(other) {
			return true
		}
	}
	return false
}

// Forget ends what is known of such terms.
func (t *Terms) Forget(repels string) { delete(t.parsed, repels) }

func (t *term) selects(p *corev1.Pod) bool {
	for _, n := range t.namespaces {
		if n == p.Namespace {
			return t.selector.Matches(labels.Set(p.Labels))
		}
	}
	return t.anywhere && t.selector.Matches(labels.Set(p.Labels))
}

func parse(p *corev1.Pod) []term {
	var terms []corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms = append(terms, required...)
		for i := range preferred {
			terms = append(terms, preferred[i].PodAffinityTerm)
		}
	}
	if a := p.Spec.Affinity.PodAntiAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := p.Spec.Affinity.PodAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	var out []term
	for i := range terms {
		t := &terms[i]
		if t.LabelSelector == nil {
			continue // it selects no pod, and its text is that of a selector of all
		}
		s, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		if err != nil {
			s = labels.Everything()
		}
		names := t.Namespaces
		if len(names) == 0 && t.NamespaceSelector == nil {
			names = []string{p.Namespace}
		}
		out = append(out, term{namespaces: names, anywhere: t.NamespaceSelector != nil, selector: s})
	}
	return out
}
