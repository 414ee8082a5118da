package offline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/internal/validate/lines"
)

// document is one YAML document of a file: its values as the API server reads them, and where they stand.
type document struct {
	file  string
	first int // line of the file on which the document's text begins, from 1
	value map[string]any
	root  *yamlv3.Node
}

// split reads the documents of a file. Those without any value are left out.
func split(file string, text []byte) ([]document, []Finding) {
	var docs []document
	var findings []Finding
	for _, c := range chunks(text) {
		d, f := parse(file, c.first, c.text)
		if f != nil {
			findings = append(findings, *f)
		} else if d != nil {
			docs = append(docs, *d)
		}
	}
	return docs, findings
}

// Documents cuts a text at its "---" lines, as kubectl does.
func Documents(text []byte) [][]byte {
	var out [][]byte
	for _, c := range chunks(text) {
		out = append(out, c.text)
	}
	return out
}

// chunk is the text of one document and the line on which it begins, from 1.
type chunk struct {
	first int
	text  []byte
}

func chunks(text []byte) []chunk {
	out := []chunk{{first: 1}}
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		if rest, ok := bytes.CutPrefix(line, []byte("---")); ok && (len(bytes.TrimSpace(rest)) == 0 || bytes.HasPrefix(bytes.TrimSpace(rest), []byte("#"))) {
			out = append(out, chunk{first: i + 2})
			continue
		}
		last := &out[len(out)-1]
		last.text = append(last.text, line...)
	}
	return out
}

func parse(file string, first int, text []byte) (*document, *Finding) {
	fail := func(err error) *Finding {
		line, message := yamlError(err)
		return &Finding{File: file, Line: first + line - 1, Message: message}
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(text, &root); err != nil && !errors.Is(err, io.EOF) {
		return nil, fail(err)
	}
	if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil, nil
	}
	// The strict reader refuses a key that is given twice.
	json, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fail(err)
	}
	d := &document{file: file, first: first, root: root.Content[0]}
	if d.root.Kind != yamlv3.MappingNode {
		return nil, &Finding{File: file, Line: first + d.root.Line - 1, Message: "not an object: begin with apiVersion, kind and metadata"}
	}
	if err := utiljson.Unmarshal(json, &d.value); err != nil {
		return nil, fail(err)
	}
	return d, nil
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// yamlError takes the line out of an error of the YAML library.
func yamlError(err error) (int, string) {
	message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	message = strings.TrimPrefix(message, "yaml: ")
	message = strings.TrimSpace(strings.TrimPrefix(message, "unmarshal errors:"))
	line := 1
	if at := yamlLine.FindStringSubmatchIndex(message); at != nil {
		if n, err := strconv.Atoi(message[at[2]:at[3]]); err == nil {
			line = n
		}
		message = message[:at[0]] + message[at[1]:]
	}
	return line, fmt.Sprintf("not YAML: %s", message)
}

// claims reports whether the document says in any way that it is an object of Kubernetes.
func (d *document) claims() bool {
	for _, field := range []string{"apiVersion", "kind", "metadata", "spec"} {
		if _, ok := d.value[field]; ok {
			return true
		}
	}
	return false
}

// items are the objects in the document: itself, or the items of a List.
func (d *document) items() []object {
	if kind, _ := d.value["kind"].(string); kind != "List" {
		return []object{{doc: d, value: d.value, node: d.root}}
	}
	list, _ := d.value["items"].([]any)
	_, node := lines.Child(d.root, "items")
	var out []object
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok || node == nil || i >= len(node.Content) {
			continue
		}
		out = append(out, object{doc: d, value: m, node: lines.Resolve(node.Content[i])})
	}
	return out
}
