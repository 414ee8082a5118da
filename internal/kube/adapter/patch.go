package adapter

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// op is one operation of a JSON patch.
type op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Resize is the JSON patch that gives a part another size, made from the object as it was just read. It changes one
// field, names the pods that leave where the operator accepts names, and marks the object with notes as annotations.
// The tests in it are its preconditions: the same object (UID), the same part at the same place, and the size still
// that which the decision started from. Where there is nothing yet to test, the version of the object takes the place
// of a value. Status may move on meanwhile without harm, as it does with each pod.
func Resize(u *unstructured.Unstructured, p *Part, to int32, victims []string, notes map[string]string) ([]byte, error) {
	ops := []op{{"test", "/metadata/uid", string(u.GetUID())}}
	if p.Guard != nil {
		ops = append(ops, op{"test", pointer(p.Guard.Path), p.Guard.Value})
	}
	parent, _, err := at(u.Object, p.Path[:len(p.Path)-1])
	if err != nil {
		return nil, err
	}
	fields, ok := parent.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no object", strings.Join(p.Path[:len(p.Path)-1], "."))
	}
	version := false
	if size, ok := fields[p.Path[len(p.Path)-1]]; ok {
		ops = append(ops, op{"test", pointer(p.Path), size})
	} else {
		version = true
	}
	ops = append(ops, op{"add", pointer(p.Path), to})
	if p.Victims != nil && len(victims) > 0 {
		ops = append(ops, op{"add", pointer(p.Victims), map[string]any{"workersToDelete": victims}})
	}
	if u.GetAnnotations() == nil && len(notes) > 0 {
		version = true
		ops = append(ops, op{"add", "/metadata/annotations", notes})
	} else {
		for _, k := range sortedKeys(notes) {
			ops = append(ops, op{"add", pointer([]string{"metadata", "annotations", k}), notes[k]})
		}
	}
	if version {
		ops = append([]op{{"test", "/metadata/resourceVersion", u.GetResourceVersion()}}, ops...)
	}
	return json.Marshal(ops)
}

// pointer is a JSON pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}

// at walks down a path of field names and list indices.
func at(v any, path []string) (value any, found bool, err error) {
	for i, p := range path {
		switch x := v.(type) {
		case map[string]any:
			if v, found = x[p]; !found {
				return nil, false, nil
			}
		case []any:
			n, err := strconv.Atoi(p)
			if err != nil || n < 0 || n >= len(x) {
				return nil, false, fmt.Errorf("%s has no element %s", strings.Join(path[:i], "."), p)
			}
			v = x[n]
		default:
			return nil, false, fmt.Errorf("%s is neither object nor list", strings.Join(path[:i], "."))
		}
	}
	return v, true, nil
}
