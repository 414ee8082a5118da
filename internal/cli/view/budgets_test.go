package view

import (
	"slices"
	"testing"

	"github.com/springtide/springtide/internal/cli/cell"
)

// TestSortedByBudget: the service with the least budget left comes first, one that is not known last; all else is
// sorted from the largest down.
func TestSortedByBudget(t *testing.T) {
	cells := []string{"12m of 40m", cell.None, "-5m of 40m", "0m of 201m", "-20m of 40m"}
	least, most := slices.Clone(cells), slices.Clone(cells)
	slices.SortFunc(least, ordered(true))
	slices.SortFunc(most, ordered(false))
	if want := []string{"-20m of 40m", "-5m of 40m", "0m of 201m", "12m of 40m", cell.None}; !slices.Equal(least, want) {
		t.Errorf("%q, want %q", least, want)
	}
	if want := []string{"12m of 40m", "0m of 201m", "-5m of 40m", "-20m of 40m", cell.None}; !slices.Equal(most, want) {
		t.Errorf("%q, want %q", most, want)
	}
}
