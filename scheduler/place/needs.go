package place

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// Needs is what few pods ask for, or none of a simulated fleet. It must not change once a shape with it was interned.
type Needs struct {
	Ephemeral fleet.Bytes
	Extended  rules.Amounts
	// NICs are counted where the shape asks for one PCIe root.
	NICs        int64
	Selector    rules.Selector
	Preferred   []rules.Weighted
	Tolerations []rules.Toleration
	Ports       []rules.Port
	// Images are those of the pod's containers and volumes, one that two have twice, and Sources how many containers and image volumes it has.
	Images  []string
	Sources int64
	// Spread are the constraints by which the pod stands apart from others, Sets the sets in which constraints count it, sorted.
	Spread []Spread
	Sets   []string
}

// appendKey writes needs so that equal ones, and only they, give equal bytes. The order of what has none does not count.
func (n *Needs) appendKey(b []byte) []byte {
	if n == nil {
		return b
	}
	b = appendInts(b, int64(n.Ephemeral), n.NICs, int64(len(n.Extended)))
	for _, a := range n.Extended {
		b = appendInts(appendText(b, a.Name), a.Value)
	}
	b = appendSelector(b, &n.Selector)
	b = appendInts(b, int64(len(n.Preferred)))
	for i := range n.Preferred {
		b = appendTerm(appendInts(b, int64(n.Preferred[i].Weight)), &n.Preferred[i].Term)
	}
	b = appendTolerations(b, n.Tolerations)
	ports := slices.Clone(n.Ports)
	slices.SortFunc(ports, func(a, b rules.Port) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
	})
	b = appendInts(b, int64(len(ports)))
	for _, p := range ports {
		b = appendInts(appendText(appendText(b, p.IP), p.Protocol), int64(p.Port))
	}
	b = appendInts(b, n.Sources, int64(len(n.Images)))
	for _, name := range slices.Sorted(slices.Values(n.Images)) {
		b = appendText(b, name)
	}
	if len(n.Spread) == 0 && len(n.Sets) == 0 {
		return b
	}
	b = appendInts(b, int64(len(n.Spread)))
	for i := range n.Spread {
		s := &n.Spread[i]
		b = appendInts(appendText(appendText(b, s.Set), s.Key), int64(s.MaxSkew), int64(s.MinDomains), int64(b2i(s.Self)), int64(b2i(s.Soft)), int64(b2i(s.Taints)),
			int64(b2i(s.Nodes != nil)))
		if s.Nodes != nil {
			b = appendSelector(b, s.Nodes)
		}
	}
	for _, name := range n.Sets {
		b = appendText(b, name)
	}
	return b
}

func appendTolerations(b []byte, all []rules.Toleration) []byte {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b rules.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Effect, b.Effect))
	})
	b = appendInts(b, int64(len(sorted)))
	for _, t := range sorted {
		b = append(appendText(appendText(b, t.Key), t.Value), byte(t.Op), byte(t.Effect))
	}
	return b
}

func appendSelector(b []byte, s *rules.Selector) []byte {
	b = appendInts(b, int64(len(s.Labels)))
	for _, l := range s.Labels {
		b = appendText(appendText(b, l.Key), l.Value)
	}
	if !s.Required {
		return append(b, 0)
	}
	b = appendInts(append(b, 1), int64(len(s.Terms)))
	for i := range s.Terms {
		b = appendTerm(b, &s.Terms[i])
	}
	return b
}

func appendTerm(b []byte, t *rules.Term) []byte {
	for _, all := range [2][]rules.Requirement{t.Labels, t.Names} {
		b = appendInts(b, int64(len(all)))
		for _, r := range all {
			b = appendInts(append(appendText(b, r.Key), byte(r.Op)), int64(len(r.Values)))
			for _, v := range r.Values {
				b = appendText(b, v)
			}
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendInts(b []byte, all ...int64) []byte {
	for _, v := range all {
		b = binary.AppendVarint(b, v)
	}
	return b
}
