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

// online is the first online pool by name, and whether there are several.
func (p pools) online() (first string, several bool) {
	for _, name := range sortedKeys(p) {
		if p[name].class != fleet.Online {
			continue
		}
		if first != "" {
			return first, true
		}
		first = name
	}
	return first, false
}

// class is the class of a pool; empty for one that is not known.
func (p pools) class(id fleet.PoolID) fleet.Class {
	if pool := p[string(id)]; pool != nil {
		return pool.class
	}
	return ""
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
	access, governed := n.access(home, all)
	for i, c := range n.inside.Cells {
		cell := place.Cell{Cell: c}
		if governed {
			cell.Holder = holderOf(access.Side(c.ID))
		}
		if n.inside.Distances != nil {
			cell.Distances = n.inside.Distances[i]
		}
		m.Cells = append(m.Cells, cell)
	}
	if governed && len(n.inside.Cells) == 0 {
		m.Holder = holderOf(access.Side(0))
	}
	for _, r := range n.inside.Roots {
		m.Roots = append(m.Roots, place.Root(r))
	}
	set := o.Labels
	if governed {
		m.Borrower = access.Borrower()
		m.Closed = place.Sides{Online: !access.Open(fleet.Online), Offline: !access.Open(fleet.Offline)}
		set = withOffline(set, !m.Closed.Offline)
	}
	m.Labels = rules.LabelsOf(set)
	for i := range o.Spec.Taints {
		t := &o.Spec.Taints[i]
		if governed && t.Key == v1alpha1.TaintHolder {
			continue
		}
		m.Taints = append(m.Taints, facts.Taint(t))
	}
	for i := range o.Status.Images {
		for _, name := range o.Status.Images[i].Names {
			m.Images = append(m.Images, place.Image{Name: name, Size: fleet.Bytes(o.Status.Images[i].SizeBytes)})
		}
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

// access is what the share says of the machine. governed: the share is this node's and the pool is known, so that it stands in place of the marks.
func (n *nodeFacts) access(home *poolFacts, all pools) (access fleet.Access, governed bool) {
	if home == nil || n.share == nil || n.share.Spec.NodeUID != string(n.node.UID) {
		return access, false
	}
	var parcels []fleet.ShareParcel
	for i := range n.share.Spec.Parcels {
		parcels = append(parcels, facts.Parcel(&n.share.Spec.Parcels[i]))
	}
	return fleet.AccessOf(&fleet.Node{Pool: fleet.PoolID(home.name), Cells: n.inside.Cells}, parcels, all.class), true
}

// holderOf is a side as the table has it. A cell that belongs to no side moves, or a pool is not known: no side has it until it is.
func holderOf(side fleet.Class) place.Holder {
	switch side {
	case fleet.Online:
		return place.HeldOnline
	case fleet.Offline:
		return place.HeldOffline
	}
	return place.Moving
}

// withLabel is labels with one more.
func withLabel(l rules.Labels, key, value string) rules.Labels {
	l = append(slices.Clone(l), rules.Label{Key: key, Value: value})
	slices.SortFunc(l, func(a, b rules.Label) int { return strings.Compare(a.Key, b.Key) })
	return l
}
