package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// floors are the orders inside of rooms that have one, from the top. A package imports packages of lower floors alone. Packages of one floor do not know
// each other, so that each can be read, changed and tested without the next.
var floors = map[string][][]string{
	"internal/cli": {
		{"."}, // the root command
		{"act", "adopt", "backtest", "doctor", "explain", "festival", "forecast", "initial", "promote", "rules", "run",
			"simulate", "slo", "uninstall", "upgrade", "validate", "view", "whatif",
			"clitest", "chart/charttest"}, // verbs, and what their tests alone import
		{"trial"},
		{"examine", "input", "takeover"},
		{"cluster", "files"},
		{"screen"},
		{"adopt/foreign", "build", "cell", "chart", "prom", "usage"},
	},
	"internal/kube": {
		{"."},                         // what is put together
		{"act", "election", "report"}, // what writes
		{"gates", "hostlists", "podgroups", "snapshot"}, // what both sides ask
		{"recorder"},                       // events
		{"watch"},                          // the mirrors
		{"convert", "fence", "leadership"}, // values, writes within the lease, epochs
		{"object", "target"},               // how objects are read, written and seen again; what a Scale says
		{"adapter", "facts"},
		{"kubetest"}, // objects for tests
	},
}

// forTests are packages that tests of their own floor may import.
var forTests = []string{"internal/cli/clitest", "internal/cli/chart/charttest"}

// floorOf is the floor of a package in its room, counted from the top; -1 without one.
func floorOf(room, pkg string) int {
	name := "."
	if pkg != room {
		name = strings.TrimPrefix(pkg, room+"/")
	}
	return slices.IndexFunc(floors[room], func(floor []string) bool { return slices.Contains(floor, name) })
}

// refuseInside judges an import between two packages of one room; empty where it is fine, or the room has no floors.
func refuseInside(room, pkg, own string) string {
	if floors[room] == nil || pkg == own {
		return ""
	}
	from, to := floorOf(room, pkg), floorOf(room, own)
	switch {
	case from < 0:
		return fmt.Sprintf("%s has no floor: add it to the table and to the comment of its room", pkg)
	case to < 0:
		return fmt.Sprintf("%s has no floor: add it to the table and to the comment of its room", own)
	case to == from:
		return fmt.Sprintf("%s is of the same floor of %s: move what both need to a lower one", own, room)
	case to < from:
		return fmt.Sprintf("%s is of a higher floor of %s: imports go down", own, room)
	}
	return ""
}

// TestFloors: each package of a room with floors stands on one, and its tests keep to the order too. TestImportsGoStrictlyDown judges what is no test.
func TestFloors(t *testing.T) {
	there := map[string]bool{}
	for _, f := range load(t) {
		_, room, ok := levelOf(f.pkg)
		if !ok || floors[room] == nil {
			continue
		}
		there[f.pkg] = true
		if floorOf(room, f.pkg) < 0 {
			t.Errorf("%s: package %s has no floor: add it to the table and to the comment of its room", f.name, f.pkg)
			continue
		}
		for _, imp := range imports(f) {
			own, found := strings.CutPrefix(imp, module)
			if !found || !f.test || !under(own, room) || slices.Contains(forTests, own) {
				continue
			}
			if why := refuseInside(room, f.pkg, own); why != "" {
				t.Errorf("%s imports %s: %s", f.name, imp, why)
			}
		}
	}
	for room, all := range floors {
		for _, floor := range all {
			for _, name := range floor {
				if !there[path.Join(room, name)] {
					t.Errorf("floors[%q] names %s, which is not there", room, name)
				}
			}
		}
	}
}
