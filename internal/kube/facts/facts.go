// Package facts reads objects into the vocabulary of the fleet: amounts of resources, the cells of a node, marks, tolerations and parcels. The
// controller, the scheduler and the node agent use the same functions, so that room and side in one are room and side in the others.
package facts

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	helpers "k8s.io/component-helpers/resource"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// GPUSuffix ends the names of the extended resources that count as GPUs: device plugins of every maker call theirs VENDOR/gpu.
const GPUSuffix = "/gpu"

// LabelGPUModel is set by the GPU feature discovery.
const LabelGPUModel = "nvidia.com/gpu.product"

// Resources turns a list of quantities into amounts. A fraction of a millicore counts as a whole one (rounded up), so that
// requests are never understated.
func Resources(list corev1.ResourceList) fleet.Resources {
	r := fleet.Resources{
		CPU:    fleet.MilliCPU(Milli(list.Cpu())),
		Memory: fleet.Bytes(Count(list.Memory())),
		Pods:   Count(list.Pods()),
	}
	for name, q := range list {
		if strings.HasSuffix(string(name), GPUSuffix) {
			r.GPU += Count(&q)
		}
	}
	return r
}

// PodLimits are the limits of a pod, counted as its requests are. A container without one counts as 0.
func PodLimits(spec *corev1.PodSpec) corev1.ResourceList {
	return helpers.PodLimits(&corev1.Pod{Spec: *spec}, helpers.PodResourcesOptions{})
}

// PodRequests is what the scheduler counts for a pod: containers, the largest init container, sidecars, overhead, pod-level requests.
func PodRequests(spec *corev1.PodSpec) corev1.ResourceList {
	return helpers.PodRequests(&corev1.Pod{Spec: *spec}, helpers.PodResourcesOptions{})
}

// RequestsOf is what counts for a pod: for one that has a machine the larger of what it asks for and what it was given, while a resize is under way, of its
// containers or of the pod as a whole.
func RequestsOf(p *corev1.Pod) corev1.ResourceList {
	runs := p.Spec.NodeName != ""
	return helpers.PodRequests(p, helpers.PodResourcesOptions{UseStatusResources: runs, InPlacePodLevelResourcesVerticalScalingEnabled: runs})
}

// HolderTaint is the mark that keeps online pods off a node.
func HolderTaint() corev1.Taint {
	return corev1.Taint{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule}
}

// HasHolderTaint reports whether a node has that mark.
func HasHolderTaint(ts []corev1.Taint) bool { return slices.ContainsFunc(ts, IsHolderTaint) }

// IsHolderTaint reports whether a taint is that mark.
func IsHolderTaint(t corev1.Taint) bool {
	own := HolderTaint()
	return t.MatchTaint(&own) && t.Value == own.Value
}

// ToleratesHolder reports whether tolerations name the holder taint: the pod is offline's. A blanket toleration of everything does not count:
// system pods carry those.
func ToleratesHolder(ts []corev1.Toleration) bool {
	for i := range ts {
		t := &ts[i]
		if t.Key == v1alpha1.TaintHolder && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) &&
			(t.Operator == corev1.TolerationOpExists || t.Value == v1alpha1.TaintHolderOffline) {
			return true
		}
	}
	return false
}

// Epoch is the epoch of a loan as a Loan, a share or a report has it. No loan changes hands so often that it comes near the bound: a number beyond
// it was written by hand, and counting starts again. The rules of the API server let the epoch fall back from there. Where loan and share disagree
// then, the planner writes both again under a new epoch.
func Epoch(n int64) int64 {
	if n < 1 || n > v1alpha1.EpochSpan {
		return 1
	}
	return n
}

// Parcel reads an entry of a NodeShare's spec, without what was reported on it.
func Parcel(p *v1alpha1.ShareParcel) fleet.ShareParcel {
	out := fleet.ShareParcel{Cells: make([]int, len(p.Cells)), Holder: fleet.PoolID(p.Holder), Next: fleet.PoolID(p.Next),
		Loan: fleet.LoanID(p.LoanName), LoanUID: fleet.UID(p.LoanUID), Epoch: Epoch(p.Epoch)}
	for i, c := range p.Cells {
		out.Cells[i] = int(c)
	}
	return out
}

// Topologies is the resource that Cells and TopologyOf read.
var Topologies = schema.GroupVersionResource{Group: "topology.node.k8s.io", Version: "v1alpha2", Resource: "noderesourcetopologies"}

// Cells reads the zones of type Node of a NodeResourceTopology as cells, sorted by number. The socket of a cell is the number at the end of its parent, a zone of type
// Socket or Package, or else the value of its attribute "socket" (the ecosystem's exporters agree on neither, and some say nothing). A
// node with a cell whose socket is unknown, or with two cells of one number, counts as one of unknown topology: it is lent whole, since half a socket is worse than none.
func Cells(u *unstructured.Unstructured) []fleet.Cell {
	var cells []fleet.Cell
	zones, _, _ := unstructured.NestedSlice(u.Object, "zones")
	sockets := map[string]int{}
	for _, z := range zones {
		zone, _ := z.(map[string]any)
		kind, _ := zone["type"].(string)
		name, _ := zone["name"].(string)
		if n, ok := trailingNumber(name); ok && (kind == "Socket" || kind == "Package") {
			sockets[name] = n
		}
	}
	for _, z := range zones {
		zone, _ := z.(map[string]any)
		if kind, _ := zone["type"].(string); kind != "Node" {
			continue
		}
		cell, ok := cellOf(zone, sockets)
		if !ok {
			return nil
		}
		cells = append(cells, cell)
	}
	slices.SortFunc(cells, func(a, b fleet.Cell) int { return a.ID - b.ID })
	for i := range cells {
		if i > 0 && cells[i].ID == cells[i-1].ID {
			return nil
		}
	}
	return cells
}

// Root is a PCIe root with what hangs on it.
type Root struct {
	// Cell is the number of the NUMA cell that it belongs to.
	Cell       int
	GPUs, NICs int64
}

// Topology is the inside of a node as a NodeResourceTopology describes it.
type Topology struct {
	Cells []fleet.Cell
	// Distances are those between the cells, in their order; nil unless all are known.
	Distances [][]int
	// Roots are in the order of their names; nil unless the PCIe root and the cell of every GPU are known: a root that is not known has room for none.
	Roots []Root
}

// TopologyOf reads a NodeResourceTopology: its cells, the costs between them, and the zones of type GPU and NIC beneath them, which the node agent writes.
func TopologyOf(u *unstructured.Unstructured) Topology {
	t := Topology{Cells: Cells(u)}
	if len(t.Cells) == 0 {
		return t
	}
	at := map[string]int{} // place of a cell by the name of its zone
	zones, _, _ := unstructured.NestedSlice(u.Object, "zones")
	for _, z := range zones {
		zone, _ := z.(map[string]any)
		name, _ := zone["name"].(string)
		id, ok := trailingNumber(name)
		if kind, _ := zone["type"].(string); kind == "Node" && ok {
			at[name] = slices.IndexFunc(t.Cells, func(c fleet.Cell) bool { return c.ID == id })
		}
	}
	if len(at) == len(t.Cells) { // two zones of one name: whose costs and devices they have is not known
		t.Distances = distancesOf(zones, at)
		t.Roots = rootsOf(zones, at, t.Cells)
	}
	return t
}

// distancesOf reads the costs of the zones of cells; nil unless all are there.
func distancesOf(zones []any, at map[string]int) [][]int {
	out := make([][]int, len(at))
	for _, z := range zones {
		zone, _ := z.(map[string]any)
		name, _ := zone["name"].(string)
		from, ok := at[name]
		if !ok {
			continue
		}
		row, known := make([]int, len(at)), 0
		costs, _ := zone["costs"].([]any)
		for _, c := range costs {
			cost, _ := c.(map[string]any)
			name, _ := cost["name"].(string)
			n, err := strconv.Atoi(text(cost["value"]))
			if to, ok := at[name]; ok && err == nil && n > 0 && n <= mostDistance && row[to] == 0 {
				row[to] = n
				known++
			}
		}
		if known < len(at) {
			return nil
		}
		out[from] = row
	}
	return out
}

// rootsOf gathers GPUs and NICs by their PCIe root.
func rootsOf(zones []any, at map[string]int, cells []fleet.Cell) []Root {
	byName := map[string]*Root{}
	for _, z := range zones {
		zone, _ := z.(map[string]any)
		kind, _ := zone["type"].(string)
		if kind != "GPU" && kind != "NIC" {
			continue
		}
		parent, _ := zone["parent"].(string)
		cell, ok := at[parent]
		name := attribute(zone, "pcieRoot")
		if !ok || name == "" {
			if kind == "GPU" {
				return nil
			}
			continue
		}
		r := byName[name]
		if r == nil {
			r = &Root{Cell: cells[cell].ID}
			byName[name] = r
		}
		if kind == "GPU" {
			r.GPUs++
		} else {
			r.NICs++
		}
	}
	var out []Root
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, *byName[name])
	}
	return out
}

// attribute is the value of an attribute of a zone; empty without it.
func attribute(zone map[string]any, name string) string {
	list, _ := zone["attributes"].([]any)
	for _, a := range list {
		if attr, _ := a.(map[string]any); attr["name"] == name {
			return text(attr["value"])
		}
	}
	return ""
}

func cellOf(zone map[string]any, sockets map[string]int) (fleet.Cell, bool) {
	name, _ := zone["name"].(string)
	id, ok := trailingNumber(name)
	if !ok {
		return fleet.Cell{}, false
	}
	parent, _ := zone["parent"].(string)
	socket, ok := sockets[parent]
	if !ok {
		if socket, ok = socketAttribute(zone); !ok {
			return fleet.Cell{}, false
		}
	}
	cell := fleet.Cell{ID: id, Socket: socket}
	list, _ := zone["resources"].([]any)
	amounts := corev1.ResourceList{}
	var pages int64 // bytes of huge pages
	allocatable := false
	for _, r := range list {
		res, _ := r.(map[string]any)
		name, _ := res["name"].(string)
		q, err := resource.ParseQuantity(text(res["capacity"]))
		if err != nil {
			continue
		}
		if name == string(corev1.ResourceMemory) {
			// Exporters that know what is reserved on each cell say so.
			if a, err := resource.ParseQuantity(text(res["allocatable"])); err == nil && a.Sign() >= 0 && a.Cmp(q) < 0 {
				q, allocatable = a, true
			}
		}
		if strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
			pages += max(Count(&q), 0)
		}
		amounts[corev1.ResourceName(name)] = q
	}
	cell.Capacity = Resources(amounts)
	if !allocatable {
		cell.Capacity.Memory = max(cell.Capacity.Memory-fleet.Bytes(pages), 0)
	}
	return cell, true
}

func socketAttribute(zone map[string]any) (int, bool) {
	for _, name := range []string{"socket", "springtide.dev/socket"} {
		if value := attribute(zone, name); value != "" {
			n, err := strconv.Atoi(value)
			return n, err == nil && n >= 0 && n <= mostCellID
		}
	}
	return 0, false
}

// text renders a quantity as JSON may carry it: a string, or a bare whole number.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// mostCellID is the largest number of a cell or a socket, as in NodeShare; mostDistance is the largest distance between two that firmware can state.
const mostCellID, mostDistance = 1023, 254

// trailingNumber reads the 3 of "node-3".
func trailingNumber(s string) (int, bool) {
	digits := s[len(strings.TrimRight(s, "0123456789")):]
	n, err := strconv.Atoi(digits)
	return n, err == nil && n <= mostCellID
}
