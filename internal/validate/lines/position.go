// Package lines finds where in a YAML text a field stands, so that an error can say which line to fix.
package lines

import (
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Of finds the line of a field such as "spec.windows[0].start" below a node. Where the field is missing it is the line
// of the nearest one above it that is there, which is where the fix goes.
func Of(root *yamlv3.Node, path string) int {
	node, line := root, root.Line
	for _, step := range Steps(path) {
		at, next := Child(node, step)
		if next == nil {
			break
		}
		node, line = next, at.Line
	}
	return line
}

// Find finds a field below a node: the node that shows its line, and its value; both are nil where it is missing.
func Find(root *yamlv3.Node, path string) (at, value *yamlv3.Node) {
	value = root
	for _, step := range Steps(path) {
		if at, value = Child(value, step); value == nil {
			return nil, nil
		}
	}
	return at, value
}

// Steps cuts a path into keys and indexes. A key in brackets may hold dots: "matchLabels[example.com/pool]".
func Steps(path string) []string {
	var out []string
	for path != "" {
		switch i := strings.IndexAny(path, ".["); {
		case path[0] == '[':
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return append(out, path[1:])
			}
			out, path = append(out, path[1:end]), path[end+1:]
		case i < 0:
			return append(out, path)
		default:
			if i > 0 {
				out = append(out, path[:i])
			}
			path = path[i:]
			if path[0] == '.' {
				path = path[1:]
			}
		}
	}
	return out
}

// Child finds a key or an index in a node: the node that shows its line, and its value.
func Child(n *yamlv3.Node, step string) (at, value *yamlv3.Node) {
	switch n = Resolve(n); n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i], Resolve(n.Content[i+1])
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], Resolve(n.Content[i])
		}
	}
	return nil, nil
}

// Resolve follows an alias to what it stands for.
func Resolve(n *yamlv3.Node) *yamlv3.Node {
	for n.Kind == yamlv3.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}
