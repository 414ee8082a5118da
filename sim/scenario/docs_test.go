package scenario

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page names each field of a scenario: in the first column of the table, or in the row of what it belongs to.
func TestEveryFieldIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "scenario.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := fieldRows(string(page))
	var check func(under string, row map[string]bool, of reflect.Type)
	check = func(under string, row map[string]bool, of reflect.Type) {
		for f := range of.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			kind, below := f.Type, under+name+"."
			if kind.Kind() == reflect.Slice {
				kind, below = kind.Elem(), under+name+"[]."
			}
			own, named := rows[under+name]
			switch {
			case options == "inline":
				check(under, row, kind)
				continue
			case !f.IsExported() || under+name == "defaults": // which are services
				continue
			case named:
			case row[name]:
				own = row
			case !slices.ContainsFunc(slices.Collect(maps.Keys(rows)), func(r string) bool { return strings.HasPrefix(r, below) }):
				t.Errorf("docs/scenario.md says nothing of %s", under+name)
				continue
			}
			if slices.Contains(types, kind) {
				check(below, own, kind)
			}
		}
	}
	check("", nil, reflect.TypeFor[Scenario]())
}

// fieldRows are what the rows of the table of fields name, by each field in their first column; there later names leave out what the first has
// before its last dot.
func fieldRows(page string) map[string]map[string]bool {
	_, table, _ := strings.Cut(page, "| field | default | says |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	quoted := regexp.MustCompile("`([^`]+)`")
	out := map[string]map[string]bool{}
	for line := range strings.Lines(table) {
		row := map[string]bool{}
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			row[m[1]] = true
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		under := ""
		for i, m := range quoted.FindAllStringSubmatch(first, -1) {
			if i == 0 {
				under = m[1][:strings.LastIndex(m[1], ".")+1]
			}
			out[under+strings.TrimPrefix(m[1], under)] = row
		}
	}
	return out
}
