package archtest

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the rules of depguard again")

const (
	lintConfig = "../../.golangci.yml"
	begin      = "        # levels: written by go test ./internal/archtest -run Depguard -update\n"
	end        = "        # end of levels\n"
)

// fence is a rule of depguard: what the files of a room must not import.
type fence struct {
	Mode        string   `yaml:"list-mode"`
	Files       []string `yaml:"files"`
	Deny, Allow prefixes
}

// prefixes are packages, written as depguard reads them: a denied one is a map, an allowed one a string.
type prefixes []string

func (p *prefixes) UnmarshalYAML(n *yaml.Node) error {
	for _, x := range n.Content {
		if x.Kind == yaml.ScalarNode {
			*p = append(*p, x.Value)
			continue
		}
		var one struct{ Pkg string }
		if err := x.Decode(&one); err != nil {
			return err
		}
		*p = append(*p, one.Pkg)
	}
	return nil
}

// fences are the rules that the tables of levels and floors give: one for each room that exists, one for each package
// of a room with floors, and one for what no pure room imports.
func fences() map[string]fence {
	out := map[string]fence{}
	var pure []string
	for room := range levels {
		addFence(out, room, filesOf(room), slices.Collect(maps.Keys(levels)), func(other string) bool {
			return refuseOwn(room, room, other) != ""
		})
		if isPure(room) {
			pure = append(pure, room)
		}
	}
	for room := range floors {
		all := packagesOn(room)
		for _, pkg := range all {
			if pkg == room {
				continue // on top of all others
			}
			files := []string{"${config-path}/" + pkg + "/**", "!$test"}
			for _, other := range all {
				if other != pkg && under(other, pkg) {
					files = append(files, "!${config-path}/"+other+"/**")
				}
			}
			// The room itself is a prefix of all its packages: it is denied by its whole name.
			out[pkg+"-"] = fence{Mode: "lax", Files: files, Deny: prefixes{module + room + "$"}}
			addFence(out, pkg, files, all, func(other string) bool {
				return other != room && refuseInside(room, pkg, other) != ""
			})
		}
	}
	all := fence{Mode: "lax"}
	for _, room := range slices.Sorted(slices.Values(pure)) {
		all.Files = append(all.Files, filesOf(room)...)
	}
	all.Files = slices.Compact(slices.SortedFunc(slices.Values(all.Files), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Trim(a, "!"), strings.Trim(b, "!")), cmp.Compare(a, b))
	}))
	for _, p := range slices.Sorted(maps.Keys(forbidden)) {
		if strings.Contains(p, "/") {
			p += "$" // math/rand is no prefix of math/rand/v2
		}
		all.Deny = append(all.Deny, p)
	}
	out["pure"] = all
	return out
}

// packagesOn are the packages of a room with floors.
func packagesOn(room string) []string {
	var out []string
	for _, floor := range floors[room] {
		for _, name := range floor {
			out = append(out, path.Join(room, name))
		}
	}
	slices.Sort(out)
	return out
}

// addFence adds the rule that denies some of all to files, by a name.
func addFence(out map[string]fence, name string, files, all []string, refused func(string) bool) {
	f := fence{Mode: "lax", Files: files}
	var denied, allowed []string
	for _, other := range all {
		if refused(other) {
			denied = append(denied, other)
		} else {
			allowed = append(allowed, other)
		}
	}
	below := func(list []string, p string) bool {
		return slices.ContainsFunc(list, func(r string) bool { return r != p && under(p, r) })
	}
	// Depguard looks at the entry before an import in order of the alphabet, and at no other: an entry below another
	// one would hide it. So it stands in a rule of its own where an entry that is allowed would let it through.
	own := f
	for _, p := range slices.Sorted(slices.Values(allowed)) {
		if below(denied, p) {
			f.Allow = append(f.Allow, module+p)
		}
	}
	for _, p := range slices.Sorted(slices.Values(denied)) {
		switch {
		case !below(denied, p):
			f.Deny = append(f.Deny, module+p)
		case slices.ContainsFunc(f.Allow, func(a string) bool { return strings.HasPrefix(module+p, a) }):
			own.Deny = append(own.Deny, module+p)
		}
	}
	if len(f.Deny) > 0 {
		out[name] = f
	}
	if len(own.Deny) > 0 {
		out[name+"+"] = own
	}
}

// filesOf are the files of a room as patterns: those below it that are of no other room, without tests.
func filesOf(room string) []string {
	out := []string{"${config-path}/" + room + "/**", "!$test"}
	for _, other := range slices.Sorted(maps.Keys(levels)) {
		if other != room && under(other, room) {
			out = append(out, "!${config-path}/"+other+"/**")
		}
	}
	return out
}

func (f fence) text(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "        %s:\n          list-mode: %s\n", name, f.Mode)
	fmt.Fprintf(&b, "          files: [\"%s\"]\n", strings.Join(f.Files, `", "`))
	fmt.Fprintf(&b, "          deny: [{pkg: %s}]\n", strings.Join(f.Deny, "}, {pkg: "))
	if len(f.Allow) > 0 {
		fmt.Fprintf(&b, "          allow: [%s]\n", strings.Join(f.Allow, ", "))
	}
	return b.String()
}

// TestDepguardKnowsTheLevels keeps the rules of golangci-lint in line with the table of levels, so that an editor
// shows what this package refuses.
func TestDepguardKnowsTheLevels(t *testing.T) {
	text, err := os.ReadFile(lintConfig)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	is, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no block between %q and %q", lintConfig, begin, end)
	}
	var want strings.Builder
	all := fences()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		want.WriteString(all[name].text(name))
	}
	if is == want.String() {
		return
	}
	if *update {
		if err := os.WriteFile(lintConfig, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("the rules of depguard differ from the table of levels: go test ./internal/archtest -run Depguard -update")
}

// TestDepguardRefusesTheSame plays every import between two packages of ours on the rules as they are written.
func TestDepguardRefusesTheSame(t *testing.T) {
	text, err := os.ReadFile(lintConfig)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct{ Rules map[string]fence }
			}
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	rules := config.Linters.Settings.Depguard.Rules
	packages := map[string]bool{}
	for _, f := range load(t) {
		packages[f.pkg] = true
	}
	refused := 0
	for _, from := range slices.Sorted(maps.Keys(packages)) {
		_, room, _ := levelOf(from)
		for _, to := range slices.Sorted(maps.Keys(packages)) {
			want := refuseOwn(from, room, to) != ""
			got := slices.ContainsFunc(slices.Collect(maps.Values(rules)), func(f fence) bool {
				return f.holds(from) && f.refuses(module+to)
			})
			if got != want {
				t.Errorf("%s imports %s: depguard refuses it: %v, this package: %v", from, to, got, want)
			}
			if want {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("no import is refused: the test looks in the wrong place")
	}
	for imp, want := range map[string]bool{
		"os/exec": true, "math/rand": true, "math/rand/v2": false, "sync/atomic": true, "strings": false,
	} {
		if got := rules["pure"].holds("planner") && rules["pure"].refuses(imp); got != want {
			t.Errorf("planner imports %s: depguard refuses it: %v, want %v", imp, got, want)
		}
	}
}

// holds reports whether the rule is for the files of a package; patterns are those of [filesOf].
func (f fence) holds(pkg string) bool {
	match := func(pattern string) bool {
		dir, ok := strings.CutPrefix(path.Dir(pattern), "${config-path}/")
		return ok && under(pkg, dir)
	}
	in := false
	for _, p := range f.Files {
		if but, ok := strings.CutPrefix(p, "!"); !ok {
			in = in || match(p)
		} else if match(but) {
			return false
		}
	}
	return in
}

// refuses is how depguard judges an import in lax mode: a longer prefix that is allowed beats one that is denied.
func (f fence) refuses(imp string) bool {
	denied, ok := before(imp, f.Deny)
	if !ok {
		return false
	}
	allowed, ok := before(imp, f.Allow)
	return !ok || len(allowed) <= len(denied)
}

// before is the last entry before an import in order, as far as it is a prefix of it: depguard looks at no other.
func before(imp string, sorted []string) (string, bool) {
	list := slices.SortedFunc(slices.Values(sorted), cmp.Compare)
	var last string
	for _, p := range list {
		if strings.TrimRight(p, "$") <= imp {
			last = p
		}
	}
	if exact, ok := strings.CutSuffix(last, "$"); ok {
		return last, imp == exact
	}
	return last, last != "" && strings.HasPrefix(imp, last)
}
