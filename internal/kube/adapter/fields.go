package adapter

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// object reads an unstructured object. Fields of another type than asked for read as absent, which every check takes for the worst.
type object map[string]any

// shallow walks down to a map without copying it, as NestedMap would copy the whole of a pod template.
func shallow(o object, path ...string) map[string]any {
	m := map[string]any(o)
	for _, p := range path {
		next, ok := m[p].(map[string]any)
		if !ok {
			return nil
		}
		m = next
	}
	return m
}

func (o object) text(path ...string) string {
	s, _ := shallow(o, path[:len(path)-1]...)[path[len(path)-1]].(string)
	return s
}

func (o object) yes(path ...string) bool {
	b, _ := shallow(o, path[:len(path)-1]...)[path[len(path)-1]].(bool)
	return b
}

func (o object) has(path ...string) bool {
	_, ok := shallow(o, path[:len(path)-1]...)[path[len(path)-1]]
	return ok
}

// number reads an integer, and otherwise where it is absent.
func (o object) number(otherwise int32, path ...string) int32 {
	switch n := shallow(o, path[:len(path)-1]...)[path[len(path)-1]].(type) {
	case int64:
		return int32(max(min(n, 1<<31-1), -1<<31))
	case float64: // JSON that did not come through the API server's own decoder
		return int32(max(min(n, 1<<31-1), -1<<31))
	}
	return otherwise
}

// list reads a list of objects.
func (o object) list(path ...string) []object {
	items, _ := shallow(o, path[:len(path)-1]...)[path[len(path)-1]].([]any)
	out := make([]object, 0, len(items))
	for _, it := range items {
		m, _ := it.(map[string]any)
		out = append(out, m) // one that is no object keeps its place, so that indices stay those of the field
	}
	return out
}

// texts reads a list of strings.
func (o object) texts(path ...string) []string {
	items, _ := shallow(o, path[:len(path)-1]...)[path[len(path)-1]].([]any)
	var out []string
	for _, it := range items {
		if s, ok := it.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// podSpec reads the spec of a pod template.
func (o object) podSpec(path ...string) *corev1.PodSpec {
	spec := &corev1.PodSpec{}
	if m := shallow(o, path...); m != nil {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, spec); err != nil {
			return &corev1.PodSpec{}
		}
	}
	return spec
}

// labels reads the labels of a pod template.
func (o object) labels(path ...string) map[string]string {
	out := map[string]string{}
	for k, v := range shallow(o, path...) {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

// marked adds the label that an operator writes on the pods of a part.
func marked(labels map[string]string, key, value string) map[string]string {
	labels[key] = value
	return labels
}

// condition reports whether one of the conditions in status holds.
func (o object) condition(types ...string) bool {
	return slices.ContainsFunc(o.list("status", "conditions"), func(c object) bool {
		return slices.Contains(types, c.text("type")) && c.text("status") == "True"
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// what names an object in sentences.
func what(u *unstructured.Unstructured) string { return u.GetKind() + " " + u.GetName() }

// dotted is a path in a sentence.
func dotted(path []string) string { return strings.Join(path, ".") }
