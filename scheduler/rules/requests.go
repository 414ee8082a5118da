package rules

import (
	"cmp"
	"slices"
)

// Amount is an amount of one named resource: CPU in millicores, everything else in its own unit.
type Amount struct {
	Name  string
	Value int64
}

// Amounts are sorted by name, each name once.
type Amounts []Amount

// AmountsOf sorts a map into amounts.
func AmountsOf(m map[string]int64) Amounts {
	out := make(Amounts, 0, len(m))
	for k, v := range m {
		out = append(out, Amount{k, v})
	}
	slices.SortFunc(out, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
