package config

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	yamlv3 "go.yaml.in/yaml/v3"
)

// Duration is a time.Duration that is written as in "1m30s".
type Duration time.Duration

// String renders the duration as it is written.
func (d Duration) String() string { return model.Duration(d).String() }

// MarshalYAML renders the duration as it is written.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// UnmarshalYAML reads a duration. Its error is one that the YAML library collects with its line, so that one look finds all of them.
func (d *Duration) UnmarshalYAML(n *yamlv3.Node) error {
	v, err := model.ParseDuration(n.Value)
	if n.Kind != yamlv3.ScalarNode || err != nil {
		return &yamlv3.TypeError{Errors: []string{fmt.Sprintf("line %d: %q is no duration: write one such as 30s or 1m30s", n.Line, n.Value)}}
	}
	*d = Duration(v)
	return nil
}
