package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"

	promconfig "github.com/prometheus/common/config"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/springtide/springtide/internal/validate"
	"github.com/springtide/springtide/internal/validate/lines"
)

// Load reads a configuration file over the defaults and validates it. The error names every field that is wrong, each with its line.
func Load(path string) (Controller, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Controller{}, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, text)
}

// Parse is Load of a text; name stands for the file in errors.
func Parse(name string, text []byte) (Controller, error) {
	c := DefaultController()
	file := lines.File{Name: name, Types: []reflect.Type{reflect.TypeFor[Controller](), reflect.TypeFor[Prometheus](), reflect.TypeFor[Serving]()},
		Elsewhere: "the HTTP client configuration of Prometheus", Place: inHTTP}
	root, err := file.Read(text, &c)
	if err != nil {
		return c, err
	}
	var wrong []error
	for _, p := range c.Validate() {
		wrong = append(wrong, file.At(root, p.Field, p.String()))
	}
	return c, errors.Join(wrong...)
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
