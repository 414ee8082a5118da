package v1alpha1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mostCells bounds a list of cells, and mostCellID a cell's number: the bounds of a NodeShare's parcels.
const (
	mostCells  = 64
	mostCellID = 1023
)

// FormatCells writes cells in Linux' list format, as in "0-1,3": sorted, each once.
func FormatCells(cells []int) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(cells)))
	var b strings.Builder
	for i := 0; i < len(sorted); {
		k := i
		for k+1 < len(sorted) && sorted[k+1] == sorted[k]+1 {
			k++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(sorted[i]))
		if k > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(sorted[k]))
		}
		i = k + 1
	}
	return b.String()
}

// ParseCells reads what FormatCells writes. Anything that is out of order, doubled or out of bounds is an error: the annotation has one writer, and
// what another one wrote is not obeyed.
func ParseCells(s string) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := cellID(from)
		if err != nil {
			return nil, fmt.Errorf("cells %q: %w", s, err)
		}
		b := a
		if isRange {
			if b, err = cellID(to); err != nil {
				return nil, fmt.Errorf("cells %q: %w", s, err)
			}
			if b <= a {
				return nil, fmt.Errorf("cells %q: the range %q does not rise", s, part)
			}
		}
		if len(out) > 0 && a <= out[len(out)-1] {
			return nil, fmt.Errorf("cells %q: not in order", s)
		}
		for c := a; c <= b; c++ {
			out = append(out, c)
		}
		if len(out) > mostCells {
			return nil, fmt.Errorf("cells %q: more than %d cells", s, mostCells)
		}
	}
	if FormatCells(out) != s {
		return nil, fmt.Errorf("cells %q: write %q", s, FormatCells(out))
	}
	return out, nil
}

// cellID reads one number, without sign or leading zero.
func cellID(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(n) != s || n < 0 || n > mostCellID {
		return 0, fmt.Errorf("%q is no number of a cell (0 to %d)", s, mostCellID)
	}
	return n, nil
}
