// Command gen writes the dashboards and alerts next to the package that holds them as code. It runs in that package's
// folder.
package main

import (
	"log"
	"os"

	"github.com/springtide/springtide/dashboards"
)

func main() {
	for name, d := range dashboards.All() {
		b, err := d.JSON()
		if err != nil {
			log.Fatal(err)
		}
		write(name, b)
	}
	write("alerts.yaml", dashboards.AlertsYAML())
	write("slo.rules.yaml", dashboards.SLORulesYAML())
}

func write(name string, b []byte) {
	if err := os.WriteFile(name, b, 0o644); err != nil {
		log.Fatal(err)
	}
}
