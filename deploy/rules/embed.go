// Package rules carries Springtide's recording and alerting rules, so that the lab and the tests load what is shipped.
package rules

import "embed"

// Files holds the rule files in Prometheus' format.
//
//go:embed *.yaml
var Files embed.FS
