package host

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/scheduler/rules"
)

// nodeFacts is what is known of a node.
type nodeFacts struct {
	node    *corev1.Node
	inside  facts.Topology
	share   *v1alpha1.NodeShare
	counted amount // what of it is in the sum of all nodes
	pool    string // its home pool; empty for none
}

// poolFacts is a pool as the scheduler needs it.
type poolFacts struct {
	name     string
	class    fleet.Class
	selector labels.Selector
	// scheduler is who serves the pool; empty for the cluster's own.
	scheduler string
}

// pools are the pools by name.
type pools map[string]*poolFacts

// homeOf is the pool that picks a node; nil where none does, or two do.
func (p pools) homeOf(set map[string]string) *poolFacts {
	var home *poolFacts
	for _, pool := range p {
		if pool.selector.Matches(labels.Set(set)) {
			if home != nil {
				return nil
			}
			home = pool
		}
	}
	return home
}

func (p pools) classOf(name string) (fleet.Class, bool) {
	pool := p[name]
	if pool == nil {
		return "", false
	}
	return pool.class, true
}

// machine is a node as the table sees it.
//
// The NodeShare is written before the marks of a node, so what it says stands in place of the marks that follow from it: the holder taint and the
// label of offline machines. A node without a share, or with one of an earlier node of the name, has the marks that it carries.
func (n *nodeFacts) machine(all pools, d *devices) place.Machine {
	o := n.node
	home := all.homeOf(o.Labels)
	r := split(o.Status.Allocatable)
	m := place.Machine{
		ID: fleet.NodeID(o.Name), Name: o.Name, Home: fleet.Online, Zone: o.Labels[corev1.LabelTopologyZone], GPUModel: o.Labels[facts.LabelGPUModel],
		Allocatable: r.resources, Ephemeral: r.ephemeral, Extended: d.offer(&r), Unschedulable: o.Spec.Unschedulable,
	}
	m.Allocatable.GPU += d.gpus.OnNode(o.Name)
	if home != nil {
		m.Pool, m.Home = fleet.PoolID(home.name), home.class
	}
	moves := n.moves(home, all)
	for i, c := range n.inside.Cells {
		cell := place.Cell{Cell: c, Holder: moves.holder(c.ID)}
		if n.inside.Distances != nil {
			cell.Distances = n.inside.Distances[i]
		}
		m.Cells = append(m.Cells, cell)
	}
	if len(n.inside.Cells) == 0 {
		m.Holder = moves.holder(0)
	}
	for _, r := range n.inside.Roots {
		m.Roots = append(m.Roots, place.Root(r))
	}
	m.Borrower = fleet.PoolID(moves.borrower)
	set := o.Labels
	governed := moves.governed
	if governed {
		set = withOffline(set, moves.offlineOpen)
	}
	m.Labels = rules.LabelsOf(set)
	for i := range o.Spec.Taints {
		t := &o.Spec.Taints[i]
		if governed && t.Key == v1alpha1.TaintHolder {
			continue
		}
		m.Taints = append(m.Taints, rules.Taint{Key: t.Key, Value: t.Value, Effect: effectOf(t.Effect)})
	}
	for i := range o.Status.Images {
		for _, name := range o.Status.Images[i].Names {
			m.Images = append(m.Images, place.Image{Name: name, Size: fleet.Bytes(o.Status.Images[i].SizeBytes)})
		}
	}
	if governed {
		m.Closed = place.Sides{Online: !moves.onlineOpen, Offline: !moves.offlineOpen}
	}
	if o.DeletionTimestamp != nil {
		m.Closed = place.Sides{Online: true, Offline: true}
	}
	return m
}

// withOffline is the labels with the mark that offline pods ask for, as the share has it.
func withOffline(set map[string]string, open bool) map[string]string {
	if (set[v1alpha1.LabelOffline] == "true") == open {
		return set
	}
	out := make(map[string]string, len(set)+1)
	for k, v := range set {
		out[k] = v
	}
	if open {
		out[v1alpha1.LabelOffline] = "true"
	} else {
		delete(out, v1alpha1.LabelOffline)
	}
	return out
}

// moves is what a NodeShare says of the cells of its node.
type moves struct {
	parcels []v1alpha1.ShareParcel
	all     pools
	home    fleet.Class
	// governed: the share is this node's and the pool is known, so that it stands in place of the marks.
	governed                bool
	onlineOpen, offlineOpen bool
	borrower                string
}

func (n *nodeFacts) moves(home *poolFacts, all pools) moves {
	v := moves{all: all, home: fleet.Online}
	if home == nil || n.share == nil || n.share.Spec.NodeUID != string(n.node.UID) {
		return v
	}
	v.governed, v.home, v.parcels = true, home.class, n.share.Spec.Parcels
	for i := range v.parcels {
		if p := &v.parcels[i]; p.Holder != home.name && p.Next == "" {
			v.borrower = p.Holder
		}
	}
	atHome, away := facts.Open(v.parcels, home.name)
	if home.class == fleet.Offline {
		v.offlineOpen, v.onlineOpen = atHome, away
	} else {
		v.onlineOpen, v.offlineOpen = atHome, away
	}
	return v
}

// holder is who may use a cell.
func (v *moves) holder(cell int) place.Holder {
	i := slices.IndexFunc(v.parcels, func(p v1alpha1.ShareParcel) bool { return slices.Contains(p.Cells, int32(cell)) })
	if !v.governed || i < 0 {
		return place.AtHome
	}
	p := &v.parcels[i]
	if p.Next != "" {
		return place.Moving
	}
	switch class, _ := v.all.classOf(p.Holder); class {
	case fleet.Online:
		return place.HeldOnline
	case fleet.Offline:
		return place.HeldOffline
	}
	return place.Moving // a pool that is not known: no side has it until it is
}

// withLabel is labels with one more.
func withLabel(l rules.Labels, key, value string) rules.Labels {
	l = append(slices.Clone(l), rules.Label{Key: key, Value: value})
	slices.SortFunc(l, func(a, b rules.Label) int { return strings.Compare(a.Key, b.Key) })
	return l
}
