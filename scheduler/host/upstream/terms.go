package upstream

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/scheduler/host"
)

// Terms says which pods the plugins are needed for. It has one owner.
type Terms struct {
	// parsed are the selectors of the pods that keep others away.
	parsed map[types.UID][]term
}

var _ host.Terms = (*Terms)(nil)

// NewTerms makes it.
func NewTerms() *Terms { return &Terms{parsed: map[types.UID][]term{}} }

// term is one required anti-affinity.
type term struct {
	namespaces []string
	anywhere   bool
	selector   labels.Selector
}

// Needs reports whether a pod asks for volumes, claims, inter-pod affinity or spread.
func (*Terms) Needs(p *corev1.Pod) bool {
	if len(p.Spec.ResourceClaims) > 0 || len(p.Spec.TopologySpreadConstraints) > 0 {
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

// Repels reports whether a pod has required anti-affinity.
func (*Terms) Repels(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// Selects reports whether a pod that repels keeps the other one away from where it is. Terms with a namespace selector count for every namespace: the
// plugins look closer.
func (t *Terms) Selects(repelling, other *corev1.Pod) bool {
	all, ok := t.parsed[repelling.UID]
	if !ok {
		all = parse(repelling)
		if len(t.parsed) > mostParsed {
			clear(t.parsed)
		}
		t.parsed[repelling.UID] = all
	}
	for i := range all {
		if all[i].selects(other) {
			return true
		}
	}
	return false
}

// mostParsed bounds the selectors that are kept.
const mostParsed = 100_000

func (t *term) selects(p *corev1.Pod) bool {
	for _, n := range t.namespaces {
		if n == p.Namespace {
			return t.selector.Matches(labels.Set(p.Labels))
		}
	}
	return t.anywhere && t.selector.Matches(labels.Set(p.Labels))
}

func parse(p *corev1.Pod) []term {
	var out []term
	for i := range p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		t := &p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]
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
