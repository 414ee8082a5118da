package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"

	promconfig "github.com/prometheus/common/config"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/internal/validate/lines"
)

// Load reads a configuration file over the defaults and validates it. The error names every field that is wrong, each with its line. An empty
// path gives the defaults, which flags must complete.
func Load(path string) (Controller, error) { return load(path, DefaultController(), Parse) }

// Parse is Load of a text; name stands for the file in errors.
func Parse(name string, text []byte) (Controller, error) {
	c := DefaultController()
	err := read(lines.File{Name: name, Elsewhere: "the HTTP client configuration of Prometheus", Place: inHTTP}, text, &c)
	return c, err
}

// LoadScheduler is Load of the scheduler's configuration.
func LoadScheduler(path string) (Scheduler, error) {
	return load(path, DefaultScheduler(), ParseScheduler)
}

// ParseScheduler is LoadScheduler of a text; name stands for the file in errors.
func ParseScheduler(name string, text []byte) (Scheduler, error) {
	c := DefaultScheduler()
	err := read(lines.File{Name: name}, text, &c)
	return c, err
}

// LoadAgent is Load of the node agent's configuration.
func LoadAgent(path string) (Agent, error) { return load(path, DefaultAgent(), ParseAgent) }

// ParseAgent is LoadAgent of a text; name stands for the file in errors.
func ParseAgent(name string, text []byte) (Agent, error) {
	c := DefaultAgent()
	err := read(lines.File{Name: name}, text, &c)
	return c, err
}

func load[C any](path string, defaults C, parse func(name string, text []byte) (C, error)) (C, error) {
	if path == "" {
		return defaults, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return defaults, fmt.Errorf("read configuration: %w", err)
	}
	return parse(path, text)
}

// read reads a text over what c holds, and judges the whole.
func read(file lines.File, text []byte, c interface{ Validate() []Problem }) error {
	file.Types = groups(reflect.TypeOf(c).Elem())
	root, err := file.Read(text, c)
	if err != nil {
		return err
	}
	var wrong []error
	for _, p := range c.Validate() {
		wrong = append(wrong, file.At(root, p.Field, p.String()))
	}
	return errors.Join(wrong...)
}

// groups are a type of this package and those of its groups of fields.
func groups(of reflect.Type) []reflect.Type {
	out := []reflect.Type{of}
	for f := range of.Fields() {
		t := f.Type
		if t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct && t.PkgPath() == of.PkgPath() && !slices.Contains(out, t) {
			out = append(out, groups(t)...)
		}
	}
	return out
}

// inHTTP gives an error of the HTTP client's configuration, which comes without a place, the line and the name of that field.
func inHTTP(root *yamlv3.Node, err error) error {
	at, node := lines.Find(root.Content[0], "prometheus.httpClientConfig")
	if node == nil {
		return err
	}
	var h promconfig.HTTPClientConfig
	if again := node.Decode(&h); again == nil || again.Error() != err.Error() {
		return err
	}
	return fmt.Errorf("line %d: prometheus.httpClientConfig: %w", at.Line, err)
}

// Problem is one thing wrong with a configuration.
type Problem = validate.Problem
