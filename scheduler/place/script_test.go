package place

import (
	"fmt"
	"strings"
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/scripttest"
)

// TestScripts places into a fleet of machines of 64 cores and 256 GiB, in two sockets of two cells each, in zones z0 to z2 in turn:
//
//	machines N POOL [GPUS MODEL]      N more of them, at home in the pool online or offline
//	lent MACHINE all|SOCKET PHASE     a loan to the other side
//	pod MACHINE CLASS CORES GIB [SERVICE]
//	shape NAME SIDE CORES GIB [WISH...]   wishes: one-cell, few-cells, stable, zones, per-host=N, gpu=N, model=M, pool=P
//
// From the first of these on the table stands:
//
//	place NAME [TIMES] | gang NAME[xTIMES]... | fits NAME | empty MACHINE | handover MACHINE CELL... | close MACHINE
//	remove N                          the Nth pod that was placed
//	begin | commit | rollback
func TestScripts(t *testing.T) { scripttest.Run(t, newScript) }

// script is the facts of a case, and later its table.
type script struct {
	*testing.T
	s      fleet.Snapshot
	tab    *Table
	shapes map[string]Shape
	placed []PodRef
	out    strings.Builder
}

func newScript(t *testing.T) scripttest.Script {
	s := &script{T: t, shapes: map[string]Shape{}}
	s.s.Pools = []fleet.Pool{{ID: "offline", Class: fleet.Offline}, {ID: "online", Class: fleet.Online}}
	return scripttest.Script{Out: s.out.String, Line: func(f scripttest.Line) bool {
		if s.fact(f) {
			return true
		}
		if s.tab == nil {
			s.s.Sort()
			s.tab = FromSnapshot(&s.s)
		}
		return s.do(f)
	}}
}

func (s *script) fact(f scripttest.Line) bool {
	switch f[0] {
	case "machines":
		for range f.Int(1) {
			n := machine(len(s.s.Nodes))
			n.Pool = fleet.PoolID(f[2])
			if f.Has(3) {
				n.Allocatable.GPU, n.GPUModel = int64(f.Int(3)), f[4]
				for c := range n.Cells {
					n.Cells[c].Capacity.GPU = n.Allocatable.GPU / 4
				}
			}
			s.s.Nodes = append(s.s.Nodes, n)
		}
	case "lent":
		n := &s.s.Nodes[f.Int(1)]
		l := fleet.Loan{ID: fleet.LoanID("l" + n.Name), Node: n.ID, Cells: n.AllCells(), From: n.Pool, To: "offline", Phase: fleet.Phase(f[3])}
		if n.Pool == "offline" {
			l.To = "online"
		}
		if f[2] != "all" {
			l.Cells = n.CellsOf(f.Int(2))
		}
		s.s.Loans = append(s.s.Loans, l)
	case "pod":
		n := &s.s.Nodes[f.Int(1)]
		id := fmt.Sprintf("p%02d", len(s.s.Pods))
		p := fleet.Pod{ID: fleet.UID(id), Name: fleet.Name{Name: id}, Node: n.ID, NodeName: n.Name, Class: fleet.PodClass(f[2]), Phase: fleet.PodRunning,
			Requests: fleet.Resources{CPU: fleet.MilliCPU(1000 * f.Int(3)), Memory: fleet.Bytes(f.Int(4)) * fleet.GiB}}
		if f.Has(5) {
			p.Service = fleet.ServiceID(f[5])
			if s.s.Service(p.Service) == nil {
				s.s.Services = append(s.s.Services, fleet.Service{ID: p.Service})
			}
		}
		s.s.Pods = append(s.s.Pods, p)
	case "shape":
		s.shape(f)
	default:
		return false
	}
	return true
}

func (s *script) shape(f scripttest.Line) {
	sh := Shape{Side: fleet.Class(f[2]), Group: f[1], Requests: fleet.Resources{CPU: fleet.MilliCPU(1000 * f.Int(3)), Memory: fleet.Bytes(f.Int(4)) * fleet.GiB}}
	for _, wish := range f[5:] {
		word, value, _ := strings.Cut(wish, "=")
		switch word {
		case "one-cell":
			sh.Cells = OneCell
		case "few-cells":
			sh.Cells = FewCells
		case "stable":
			sh.Stable = true
		case "zones":
			sh.Zones = true
		case "per-host":
			sh.PerHost = int32(scripttest.Int(value))
		case "gpu":
			sh.Requests.GPU = int64(scripttest.Int(value))
		case "model":
			sh.GPUModel = value
		case "pool":
			sh.Pool = fleet.PoolID(value)
		default:
			s.Fatalf("unknown wish %q", wish)
		}
	}
	s.shapes[f[1]] = sh
}

func (s *script) class(name string) ClassID {
	sh, ok := s.shapes[name]
	if !ok {
		s.Fatalf("unknown shape %q", name)
	}
	return s.tab.Class(sh)
}

func (s *script) do(f scripttest.Line) bool {
	t := s.tab
	switch f[0] {
	case "place":
		times := 1
		if f.Has(2) {
			times = f.Int(2)
		}
		for range times {
			p, ok := t.Place(s.class(f[1]))
			s.print("place "+f[1], []Placement{p}, ok)
		}
	case "gang":
		var members []ClassID
		for _, word := range f[1:] {
			name, times, many := strings.Cut(word, "x")
			k := 1
			if many {
				k = scripttest.Int(times)
			}
			for range k {
				members = append(members, s.class(name))
			}
		}
		where, ok := t.Gang(members)
		s.print(f.Rest(0), where, ok)
	case "fits":
		fit := t.Fits(s.class(f[1]))
		fmt.Fprintf(&s.out, "fits %s: %d of %d, fragmentation %.2f, by pool %v\n", f[1], fit.Total, fit.Whole, fit.Fragmentation(), fit.ByPool)
	case "empty":
		where, ok := t.Empty(s.id(f[1]))
		s.print("empty "+f[1], where, ok)
	case "handover":
		var cells []int
		for _, word := range f[2:] {
			cells = append(cells, scripttest.Int(word))
		}
		where, ok := t.HandOver(s.id(f[1]), cells)
		s.print(f.Rest(0), where, ok)
	case "close":
		t.SetOpen(s.id(f[1]), fleet.Online, false)
		t.SetOpen(s.id(f[1]), fleet.Offline, false)
	case "remove":
		t.Remove(s.placed[f.Int(1)])
	case "begin":
		t.Begin()
	case "commit":
		t.Commit()
	case "rollback":
		t.Rollback()
	default:
		return false
	}
	return true
}

func (s *script) id(machine string) fleet.NodeID { return s.s.Nodes[scripttest.Int(machine)].ID }

func (s *script) print(what string, where []Placement, ok bool) {
	if !ok {
		fmt.Fprintf(&s.out, "%s: no room\n", what)
		return
	}
	fmt.Fprintf(&s.out, "%s:", what)
	for _, p := range where {
		if p.UID == "" {
			s.placed = append(s.placed, p.Pod)
		}
		n := s.s.Node(p.Node)
		fmt.Fprintf(&s.out, " %s%s(%s)", p.UID, n.Name, n.Zone)
		if p.Cells != nil {
			fmt.Fprintf(&s.out, "%v", p.Cells)
		}
	}
	s.out.WriteString("\n")
}
