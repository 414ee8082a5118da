package simulate

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/sim"
)

// The names of the JSON are a contract: who renames, drops or adds one does it here, too.
func TestNamesOfTheJSON(t *testing.T) {
	var report simulateReport
	fill(reflect.ValueOf(&report).Elem())
	text, err := json.Marshal(&report)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	namesIn(value, "", names)
	want := []string{
		"days", "nodes", "notes", "policies",
		"policies.classes", "policies.classes.NAME",
		"policies.classes.NAME.onlineCoreHours", "policies.classes.NAME.serviceWeeks", "policies.classes.NAME.sloViolationMinutes",
		"policies.default", "policies.harmMinutes", "policies.knob", "policies.lender", "policies.meanUtilisation", "policies.moves",
		"policies.offlineCoreHours", "policies.onlineCoreHours", "policies.peakUtilisation", "policies.policy", "policies.recallsLate",
		"policies.returnToBoundP50Seconds", "policies.returnToBoundP99Seconds", "policies.returns", "policies.scales", "policies.seed",
		"policies.services", "policies.services.class", "policies.services.disaggregated", "policies.services.harmMinutes",
		"policies.services.onlineCoreHours", "policies.services.service", "policies.services.sloViolationMinutes", "policies.services.young",
		"policies.sloViolationMinutes", "policies.target", "policies.termsBroken", "policies.workLostCoreHours",
		"scenario", "seeds", "services",
	}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(names))); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
}

// fill gives every exported field a value, so that none is left out as empty: one element to lists, and NAME for a key to maps.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("NAME"), element)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	}
}

// namesIn collects the paths of all keys below a value of JSON; elements of lists add nothing to a path.
func namesIn(value any, at string, names map[string]bool) {
	switch x := value.(type) {
	case []any:
		for _, e := range x {
			namesIn(e, at, names)
		}
	case map[string]any:
		for k, e := range x {
			names[at+k] = true
			namesIn(e, at+k+".", names)
		}
	}
}

// A seed that broke is printed with the command that plays the row again, whatever its file is called; where there were
// no faults, nothing is said of fewer.
func TestABrokenSeedIsPlayedAgain(t *testing.T) {
	at := time.Date(2026, 6, 3, 4, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		o    simulateFlags
		want string
	}{
		{"Springtide alone", simulateFlags{scenario: "fleet.yaml"}, "springtide simulate --scenario fleet.yaml --policies hpa+springtide --seeds 7"},
		{"one of many rows", simulateFlags{scenario: "dir/fleet.yaml", policies: []string{"all"}},
			"springtide simulate --scenario dir/fleet.yaml --policies hpa+springtide --seeds 7"},
		{"a shell would read it", simulateFlags{scenario: "my fleet's.yaml"},
			`springtide simulate --scenario 'my fleet'\''s.yaml' --policies hpa+springtide --seeds 7`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := NewCommand()
			var stderr bytes.Buffer
			cmd.SetErr(&stderr)
			// Nothing was built: that what broke without faults is played with fewer would end the test.
			err := tt.o.complain(cmd, []sim.Seeded{{Broken: []sim.BrokenRow{{Why: &sim.Broken{Seed: 7, Row: "hpa+springtide", At: at, What: "a tide ran dry"}}}}}, []uint64{7})
			want := "seed 7, hpa+springtide, 2026-06-03 04:00:00Z: a tide ran dry\n  play it again: " + tt.want + "\n"
			if stderr.String() != want {
				t.Errorf("got\n%swant\n%s", stderr.String(), want)
			}
			if err == nil || err.Error() != "1 seed of 1 broke an invariant" {
				t.Errorf("got %v", err)
			}
		})
	}
}
