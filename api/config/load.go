package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(text, &root); err != nil {
		return c, located(name, err)
	}
	d := yamlv3.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, located(name, inHTTP(&root, err))
	}
	if err := d.Decode(&yamlv3.Node{}); !errors.Is(err, io.EOF) {
		return c, fmt.Errorf("%s: holds more than one document: keep one", name)
	}
	var wrong []error
	for _, p := range c.Validate() {
		line := 1
		if len(root.Content) > 0 {
			line = lines.Of(root.Content[0], p.Field)
		}
		wrong = append(wrong, fmt.Errorf("%s:%d: %s", name, line, p))
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

var (
	yamlLine     = regexp.MustCompile(`^line (\d+): (.*)$`)
	unknownField = regexp.MustCompile(`^field (\S+) not found in type (\S+)$`)
)

// located brings errors of the YAML library into our form: file, line, and for a field that is not known what was meant.
func located(name string, err error) error {
	messages := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	var several *yamlv3.TypeError
	if errors.As(err, &several) {
		messages = several.Errors
	}
	var out []error
	for _, m := range messages {
		line := 1
		if at := yamlLine.FindStringSubmatch(m); at != nil {
			line, _ = strconv.Atoi(at[1])
			m = at[2]
		}
		if f := unknownField.FindStringSubmatch(m); f != nil {
			m = "unknown field " + f[1] + meant(f[1], f[2])
		}
		out = append(out, fmt.Errorf("%s:%d: %s", name, line, m))
	}
	return errors.Join(out...)
}

// meant names the known field that is nearest, else all that there are.
func meant(field, typeName string) string {
	for _, t := range []reflect.Type{reflect.TypeFor[Controller](), reflect.TypeFor[Prometheus]()} {
		if !strings.HasSuffix(typeName, "."+t.Name()) {
			continue
		}
		var known []string
		for i := range t.NumField() {
			tag, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			known = append(known, tag)
		}
		slices.Sort(known)
		if near := lines.Nearest(field, known); near != "" {
			return ": did you mean " + near + "?"
		}
		return ": write one of " + strings.Join(known, ", ")
	}
	return ": see the HTTP client configuration of Prometheus"
}

// Problem is one thing wrong with a configuration.
type Problem = validate.Problem
