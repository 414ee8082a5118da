package shape

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxID bounds the numbers of CPUs and cells: far above what a kernel supports, and small enough that "0-4000000000" costs no memory.
const maxID = 1 << 14

// Set is a set of CPUs or of memory cells, sorted and without repetition.
type Set []int

// SetOf makes a set of numbers in any order.
func SetOf(ids ...int) Set {
	s := Set(slices.Clone(ids))
	slices.Sort(s)
	return slices.Compact(s)
}

// ParseSet reads a Linux list such as "0-3,8". An empty text is the empty set.
func ParseSet(text string) (Set, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(part, "-")
		a, err := parseID(low)
		if err != nil {
			return nil, fmt.Errorf("list %q: %w", text, err)
		}
		b := a
		if ranged {
			if b, err = parseID(high); err != nil {
				return nil, fmt.Errorf("list %q: %w", text, err)
			}
		}
		if b < a {
			return nil, fmt.Errorf("list %q: range %s ends before it begins", text, part)
		}
		for i := a; i <= b; i++ {
			out = append(out, i)
		}
	}
	return SetOf(out...), nil
}

func parseID(text string) (int, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, fmt.Errorf("%q is no number: write a list such as 0-3,8", text)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n >= maxID {
		return 0, fmt.Errorf("%s is above %d", text, maxID-1)
	}
	return n, nil
}

// String renders a set as a Linux list.
func (s Set) String() string {
	var b strings.Builder
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(s[j]))
		}
		i = j + 1
	}
	return b.String()
}

// Has reports whether the set has a number.
func (s Set) Has(id int) bool {
	_, ok := slices.BinarySearch(s, id)
	return ok
}

// Union returns what is in either set.
func (s Set) Union(o Set) Set { return SetOf(append(slices.Clone(s), o...)...) }

// Intersect returns what is in both sets.
func (s Set) Intersect(o Set) Set {
	return slices.DeleteFunc(slices.Clone(s), func(id int) bool { return !o.Has(id) })
}

// Minus returns what is in s and not in o.
func (s Set) Minus(o Set) Set {
	return slices.DeleteFunc(slices.Clone(s), func(id int) bool { return o.Has(id) })
}

// Contains reports whether all of o is in s.
func (s Set) Contains(o Set) bool {
	return !slices.ContainsFunc(o, func(id int) bool { return !s.Has(id) })
}

// Equal reports whether both sets have the same numbers.
func (s Set) Equal(o Set) bool { return slices.Equal(s, o) }
