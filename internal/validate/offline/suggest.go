package offline

import (
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/springtide/springtide/internal/validate/lines"
)

// suggest names the known field that an unknown one most likely means, by its path and as ": did you mean X?"; without one near it says
// what to do.
func (d *Definition) suggest(path string) (near, text string) {
	if now, text := d.formerly(path); now != "" {
		return now, text
	}
	all := lines.Steps(path)
	if len(all) == 0 {
		return "", ""
	}
	at := d.structural
	for _, s := range all[:len(all)-1] {
		if at = inside(at, s); at == nil {
			return "", ""
		}
	}
	var known []string
	for name := range at.Properties {
		known = append(known, name)
	}
	slices.Sort(known)
	if near := lines.Nearest(all[len(all)-1], known); near != "" {
		return strings.TrimSuffix(path, all[len(all)-1]) + near, ": did you mean " + near + "?"
	}
	return "", ": remove it, or see `kubectl explain " + d.plural + "`"
}

// insideList reports whether a field stands in a mapping where the schema has a list.
func (d *Definition) insideList(path string) bool {
	parent, name := parentOf(path)
	_, err := strconv.Atoi(name)
	at := d.at(parent)
	return err != nil && at != nil && at.Items != nil
}

func inside(s *structuralschema.Structural, step string) *structuralschema.Structural {
	if _, err := strconv.Atoi(step); err == nil && s.Items != nil {
		return s.Items
	}
	if p, ok := s.Properties[step]; ok {
		return &p
	}
	return nil
}
