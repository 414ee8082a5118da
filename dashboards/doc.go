// Package dashboards is what operators look at, as code: Grafana dashboards and Prometheus alerts are built from Go
// values, so that a test can run every query of theirs. The files next to it are generated.
package dashboards

//go:generate go run ./gen
//go:generate go test ../deploy -run TestPrometheusRule -update
//go:generate go -C ../deploy/base run ../../tools/chart
