package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// File is a YAML file of one document whose fields are all known.
type File struct {
	// Name stands before every error.
	Name string
	// Types are those of the fields that a misspelt one may have meant. Of other types Elsewhere says where to look.
	Types     []reflect.Type
	Elsewhere string
	// Place gives an error of the library that has no place a line; nil leaves it as it is.
	Place func(root *yamlv3.Node, err error) error
}

// Read decodes a text over what into holds. Errors name the file, the line and, for a field that is not known, what was meant.
func (f *File) Read(text []byte, into any) (root *yamlv3.Node, err error) {
	root = new(yamlv3.Node)
	if err := yamlv3.Unmarshal(text, root); err != nil {
		return root, f.located(err)
	}
	d := yamlv3.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		if f.Place != nil {
			err = f.Place(root, err)
		}
		return root, f.located(err)
	}
	if err := d.Decode(&yamlv3.Node{}); !errors.Is(err, io.EOF) {
		return root, fmt.Errorf("%s: holds more than one document: keep one", f.Name)
	}
	return root, nil
}

// At is an error at the line of a field of the file.
func (f *File) At(root *yamlv3.Node, field, message string) error {
	line := 1
	if len(root.Content) > 0 {
		line = Of(root.Content[0], field)
	}
	return fmt.Errorf("%s:%d: %s", f.Name, line, message)
}

var (
	yamlLine     = regexp.MustCompile(`^line (\d+): (.*)$`)
	unknownField = regexp.MustCompile(`^field (\S+) not found in type (\S+)$`)
)

// located brings errors of the YAML library into our form.
func (f *File) located(err error) error {
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
		if u := unknownField.FindStringSubmatch(m); u != nil {
			m = "unknown field " + u[1] + f.meant(u[1], u[2])
		}
		out = append(out, fmt.Errorf("%s:%d: %s", f.Name, line, m))
	}
	return errors.Join(out...)
}

// meant names the known field that is nearest, else all that there are.
func (f *File) meant(field, typeName string) string {
	for _, t := range f.Types {
		if !strings.HasSuffix(typeName, "."+t.Name()) {
			continue
		}
		var known []string
		for i := range t.NumField() {
			if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); tag != "" {
				known = append(known, tag)
			}
		}
		slices.Sort(known)
		if near := Nearest(field, known); near != "" {
			return ": did you mean " + near + "?"
		}
		return ": write one of " + strings.Join(known, ", ")
	}
	if f.Elsewhere != "" {
		return ": see " + f.Elsewhere
	}
	return ""
}
