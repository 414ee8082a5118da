package capacity

import "slices"

// Most is how many levels a service may state.
const Most = 8

// Set is what was learned of the levels of one service, sorted by name.
type Set []Level

// Clone is a copy that learns by itself.
func (s Set) Clone() Set {
	if s == nil {
		return nil
	}
	out := make(Set, len(s))
	for i := range s {
		out[i] = s[i].Clone()
	}
	return out
}

// Of is the level of a name; nil where nothing was learned of it.
func (s Set) Of(name string) *Level {
	if i, found := s.find(name); found {
		return &s[i]
	}
	return nil
}

func (s Set) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s, name, func(l Level, n string) int {
		switch {
		case l.Name < n:
			return -1
		case l.Name > n:
			return 1
		}
		return 0
	})
}

// With is the set with a level of a name, which may be new, and that level. Beyond [Most] levels, or with a name that
// is too long, there is none.
func (s Set) With(name string) (Set, *Level) {
	i, found := s.find(name)
	if !found {
		if len(s) >= Most || len(name) == 0 || len(name) > longestName {
			return s, nil
		}
		s = slices.Insert(s, i, Level{Name: name})
	}
	return s, &s[i]
}

// Only drops the levels that are no longer stated.
func (s Set) Only(names []string) Set {
	return slices.DeleteFunc(s, func(l Level) bool { return !slices.Contains(names, l.Name) })
}
