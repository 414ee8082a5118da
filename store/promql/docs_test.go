package promql

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "write the table of presets into docs/slo-sources.md")

// TestPresetsAreDocumented: the page's table of presets is the code's.
func TestPresetsAreDocumented(t *testing.T) {
	const file = "../../docs/slo-sources.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const head = "| preset | system | response times | requests | failed requests | the workload is found by " +
		"|\n|---|---|---|---|---|---|\n"
	before, rest, ok := strings.Cut(string(page), head)
	if !ok {
		t.Fatalf("%s has no table of presets", file)
	}
	got, after, _ := strings.Cut(rest, "\n\n")
	var rows []string
	for _, p := range Presets() {
		cells := []string{"`" + p.Name + "`", p.System, p.Latency(), p.Requests(), p.Failed(), p.FoundBy}
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		rows = append(rows, "| "+strings.Join(cells, " | ")+" |")
	}
	want := strings.Join(rows, "\n")
	if got == want {
		return
	}
	if !*updateDocs {
		t.Fatalf("the table of %s is not that of the code; go test ./store/promql -run PresetsAreDocumented -update-docs\n%s",
			file, want)
	}
	if err := os.WriteFile(file, []byte(before+head+want+"\n\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
