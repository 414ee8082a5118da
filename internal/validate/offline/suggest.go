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

func inside(s *structuralschema.Structural, step string) *structuralschema.Structural {
	if _, err := strconv.Atoi(step); err == nil && s.Items != nil {
		return s.Items
	}
	if p, ok := s.Properties[step]; ok {
		return &p
	}
	return nil
}
