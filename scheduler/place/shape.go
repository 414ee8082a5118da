package place

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// CellPolicy says how a pod is bound to NUMA cells.
type CellPolicy uint8

// The policies.
const (
	// Float: the pod runs on any cell of its side and holds none.
	Float CellPolicy = iota
	// OneCell: the pod must fit into one cell.
	OneCell
	// FewCells: one cell where one can hold it, else whole free cells and a part of one more, of one socket where that is possible.
	FewCells
	// PreferCells: as FewCells where that is possible, else as Float.
	PreferCells
	// OneSocket: as FewCells, and all of one socket.
	OneSocket
	// Restricted: no more cells than the pod would need on an empty machine of the kind.
	Restricted
)

// Shape is what makes two pods alike to a placement. Its zero fields ask for nothing.
type Shape struct {
	// Requests are what one pod asks for; that it counts as one pod is added.
	Requests fleet.Resources
	// Side says whose cells the pod may use.
	Side fleet.Class
	// Pool is the home pool that the machine must be of, GPUModel the model that its GPUs must be of; empty for any.
	Pool     fleet.PoolID
	GPUModel string
	// Daemon: the pod is for one machine and belongs to it, so it may land while a side is closed, and takes of either side what the other has free. It is
	// placed by name alone ([Table.Assume], [Table.PreemptOn]).
	Daemon bool
	// Stable keeps the pod off what is away from home.
	Stable bool
	Cells  CellPolicy
	// Group names the pods that are counted together for Zones and PerHost: a service or a job.
	Group string
	// Zones asks for the zone with the fewest pods of the group that has room.
	Zones bool
	// PerHost is the most pods of the group on a machine, this one included, when it lands there; 0 for any number.
	PerHost int32
	// ZoneSkew is by how much the pods of the group in a zone, this one included, may exceed those in the zone with the fewest of all zones that have
	// a machine whose labels and taints would do; 0 for any number.
	ZoneSkew int32

	// Holder is the pool that must hold the cells: the home pool, or the borrower of those that are lent; empty for any.
	Holder fleet.PoolID
	// Exclusive: while the pod is there, its cells belong to it alone, and it takes all that they can hold. It goes with a policy other than Float.
	Exclusive bool
	// OneRoot: the GPUs, and the NICs of Needs, hang on one PCIe root.
	OneRoot bool
	// Priority is the pod's, and Guaranteed pods stand before all that are not.
	Priority   int32
	Guaranteed bool
	// Claimant and ClaimantPool name whose claims the pod may use.
	Claimant, ClaimantPool string
	// Needs is what is left, or nil.
	Needs *Needs
}

// shapeKey distinguishes shapes: the shape without its needs, and their bytes.
type shapeKey struct {
	shape Shape
	needs string
}

// ClassID is an interned shape.
type ClassID int32

// class is a shape as the table uses it.
type class struct {
	shape Shape
	// want is what one pod takes; its hole is the CPU that one cell must have free.
	want   vec
	nics   int64
	asks   []ask
	ports  []rules.Port
	images []int32
	limits []limit // its constraints, those that refuse machines first
	sets   []int32
	group  int32 // none without
	model  int32 // of its GPUs; none for any
	side   side
	// plain: the columns alone say where the pod fits. It floats, and asks for no ports.
	plain   bool
	asked   bool // before, so that it is worth a view
	profile int32
	// pinned are the names of the only machines that the pod may use, where its affinity names them.
	pinned []string
	// domains are those in which such pods may land, best rank first.
	domains []choice
}

// choice is a domain with the rank that a class gives it: lower is better.
type choice struct{ domain, rank int32 }

// Class interns a shape: equal shapes are one class, however often they are asked for.
func (t *Table) Class(s Shape) ClassID {
	key := shapeKey{shape: s}
	key.shape.Needs = nil
	t.key = s.Needs.appendKey(t.key[:0])
	key.needs = string(t.key)
	if id, ok := t.classOf[key]; ok {
		return id
	}
	c := class{shape: s, want: vecOf(s.Requests), group: t.group(s.Group), model: none}
	c.want[pods] = 1
	if s.Cells == OneCell {
		c.want[hole] = c.want[cpu]
	}
	if n := s.Needs; n != nil {
		c.nics, c.asks, c.ports = n.NICs, t.asksOf(n), n.Ports
		for _, name := range n.Images {
			c.images = append(c.images, t.imageNumber(name))
		}
		c.limits = t.limitsOf(n)
		for _, name := range n.Sets {
			c.sets = append(c.sets, t.setNumber(name))
		}
	}
	if s.GPUModel != "" {
		c.model, _ = intern(t.models, s.GPUModel)
	}
	for i := range t.domains {
		c.addDomain(&t.domains[i], int32(i))
	}
	id := ClassID(len(t.classes))
	c.side = sideOf(s.Side)
	c.plain = s.Cells == Float && !s.OneRoot && len(c.ports) == 0 && c.perHost() == 0
	c.pinned = pinnedTo(s.Needs)
	if c.pinned == nil {
		c.profile = t.profileOf(&s, id)
	}
	t.classes = append(t.classes, c)
	t.classOf[key] = id
	return id
}

// pinnedTo is the names of machines that each term of an affinity asks for, or nil. The pods of a DaemonSet have one each, so they are not worth
// an index.
func pinnedTo(n *Needs) []string {
	if n == nil || !n.Selector.Required {
		return nil
	}
	out := []string{}
	for i := range n.Selector.Terms {
		names := n.Selector.Terms[i].Names
		if len(names) == 0 || names[0].Op != rules.In {
			return nil
		}
		out = append(out, names[0].Values...)
	}
	return out
}

// addDomain shows a class one more domain.
func (c *class) addDomain(d *domain, id int32) {
	if !c.shape.mayUse(d) {
		return
	}
	ch := choice{domain: id, rank: c.shape.rank(d)}
	i, _ := slices.BinarySearchFunc(c.domains, ch, func(a, b choice) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.domain, b.domain)) })
	c.domains = slices.Insert(c.domains, i, ch)
}

func (s *Shape) mayUse(d *domain) bool {
	return d.side == sideOf(s.Side) && (s.Pool == "" || s.Pool == d.pool) && (!s.Stable || d.home) &&
		(s.Requests.GPU == 0 || d.gpu && (s.GPUModel == "" || s.GPUModel == d.model))
}

// rank keeps GPUs for those who need them, stable room for those who may use no other, and borrowed room free to go home.
func (s *Shape) rank(d *domain) int32 {
	var r int32
	if s.Requests.GPU == 0 && d.gpu {
		r += 2
	}
	if d.home == (s.Side == fleet.Offline) {
		r++
	}
	return r
}

// group interns the name of a group and gives it a count for every zone.
func (t *Table) group(name string) int32 {
	if name == "" {
		return none
	}
	id, fresh := intern(t.groupOf, name)
	if fresh {
		t.groupZones = append(t.groupZones, make([]int32, len(t.zones)))
		t.groupHosts = append(t.groupHosts, map[int32]int32{})
	}
	return id
}

// vec is an amount of each resource, in the order below; hole is no resource but the most free CPU in one cell.
type vec [5]int64

const (
	gpus = iota
	cpu
	memory
	pods
	hole
	resources = hole // the number of resources
	perCell   = pods // the number of those that cells are computed in
)

// most bounds every amount that enters the table, at a pebibyte or a trillion cores. Eight thousand pods of that size on one machine are still
// added without overflow, so sums are exact and undoing them is too.
const most = 1 << 50

func vecOf(r fleet.Resources) vec {
	v := vec{gpus: r.GPU, cpu: int64(r.CPU), memory: int64(r.Memory), pods: r.Pods}
	for i := range v {
		v[i] = min(max(v[i], 0), most)
	}
	return v
}

func (v *vec) resources() fleet.Resources {
	return fleet.Resources{CPU: fleet.MilliCPU(v[cpu]), Memory: fleet.Bytes(v[memory]), GPU: v[gpus], Pods: v[pods]}
}

// fits reports whether want fits into v in every entry.
func (v *vec) fits(want *vec) bool {
	return v[gpus] >= want[gpus] && v[cpu] >= want[cpu] && v[memory] >= want[memory] && v[pods] >= want[pods] && v[hole] >= want[hole]
}
