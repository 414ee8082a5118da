package offline

import (
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// lineOf finds the line of a field such as "spec.windows[0].start". Where the field is missing it is the line of the nearest one above it
// that is there, which is where the mend goes.
func (o *object) lineOf(path string) int {
	node, line := o.node, o.doc.line(o.node)
	for _, step := range steps(path) {
		at, next := child(node, step)
		if next == nil {
			break
		}
		node, line = next, o.doc.line(at)
	}
	return line
}

// steps cuts a path into keys and indexes. A key in brackets may hold dots: "matchLabels[example.com/pool]".
func steps(path string) []string {
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

// child finds a key or an index in a node: the node that shows its line, and its value.
func child(n *yamlv3.Node, step string) (at, value *yamlv3.Node) {
	switch n = resolve(n); n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i], resolve(n.Content[i+1])
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], resolve(n.Content[i])
		}
	}
	return nil, nil
}

// resolve follows an alias to what it stands for.
func resolve(n *yamlv3.Node) *yamlv3.Node {
	for n.Kind == yamlv3.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}
