package scenario

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"unicode"
)

var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

func plainName(id string) string {
	return strings.Trim(notPlain.ReplaceAllString(strings.ToLower(id), "-"), "-")
}

// namesOf are the names of the services of one entry, trace by trace, and those whose ids do not show in them: an id of
// letters that a name cannot hold, or like another one but for signs and case, gets a name with a number made of the id
// alone. So the same id has the same name in whatever order and company, and no name changes that another id is added
// next to.
func namesOf(entry string, all []trace) (names []string, unlike map[int]bool) {
	like := map[string]int{}
	for _, t := range all {
		like[plainName(t.id)]++
	}
	unlike = map[int]bool{}
	for i, t := range all {
		plain := plainName(t.id)
		switch {
		case t.id == "":
			names = append(names, entry)
			continue
		case plain == "" || foreign(t.id) || like[plain] > 1 && t.id != plain:
			h := fnv.New32a()
			h.Write([]byte(t.id))
			plain = strings.TrimPrefix(fmt.Sprintf("%s-%08x", plain, h.Sum32()), "-")
			unlike[i] = true
		}
		names = append(names, entry+"-"+plain)
	}
	return names, unlike
}

// foreign reports whether an id has letters, digits or symbols that a name cannot hold.
func foreign(id string) bool {
	return strings.ContainsFunc(id, func(r rune) bool { return r > unicode.MaxASCII && !unicode.IsPunct(r) && !unicode.IsSpace(r) })
}

// few are the first of many things, and how many more there are.
func few(things []string, most int) string {
	if len(things) <= most+1 { // a single one takes no more room than its number
		return strings.Join(things, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(things[:most], ", "), len(things)-most)
}

// distinct refuses two services of one name; they are sorted by it.
func (b *Built) distinct() error {
	for i := 1; i < len(b.Services); i++ {
		if x, y := &b.Services[i-1], &b.Services[i]; x.Name == y.Name {
			return fmt.Errorf("two services are called %s: of %s and of %s: name one of them otherwise", x.Name, x.origin(), y.origin())
		}
	}
	return nil
}

// origin is where in its scenario a service stands.
func (o *Online) origin() string {
	if o.id == "" {
		return "entry " + o.Spec.Name
	}
	return fmt.Sprintf("entry %s, id %q", o.Spec.Name, o.id)
}

// names are those that a scenario may speak of.
func (b *Built) names() string {
	var out []string
	for i := range b.Services {
		o := &b.Services[i]
		name := string(o.ID())
		if o.unlike {
			name += fmt.Sprintf(" (id %q)", o.id)
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}
