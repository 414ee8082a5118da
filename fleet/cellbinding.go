package fleet

import (
	"encoding/json"
	"fmt"
)

// Annotations by which a pod asks for memory and CPUs of few NUMA cells. Katalyst's is understood so that its users need not change their pods; where both
// are given, ours holds.
const (
	AnnotationNUMA           = "springtide.dev/numa"
	AnnotationKatalystMemory = "katalyst.kubewharf.io/memory_enhancement"
)

// Values of AnnotationNUMA.
const (
	NUMABind      = "bind"
	NUMAExclusive = "exclusive"
)

// CellBinding is what a pod asks of NUMA cells. The scheduler chooses cells by it, and the agent confines by it where no scheduler chose: both read it here.
type CellBinding struct {
	// Bind keeps the pod on as few cells as hold it.
	Bind bool
	// Exclusive keeps other pods off its cells; it is never set without Bind.
	Exclusive bool
}

// ReadCellBinding reads a pod's annotations. An unreadable value asks for nothing: bad is then the key of an
// annotation, and want what to write there.
func ReadCellBinding(annotations map[string]string) (b CellBinding, bad, want string) {
	switch annotations[AnnotationNUMA] {
	case NUMABind:
		return CellBinding{Bind: true}, "", ""
	case NUMAExclusive:
		return CellBinding{Bind: true, Exclusive: true}, "", ""
	case "":
	default:
		bad, want = AnnotationNUMA, "write bind or exclusive"
	}
	// An unreadable Katalyst annotation is reported by who reads the rest of it.
	memory, _ := FlatObject(annotations[AnnotationKatalystMemory])
	b.Bind = memory["numa_binding"] == "true"
	b.Exclusive = b.Bind && memory["numa_exclusive"] == "true"
	return b, bad, want
}

// FlatObject reads a JSON object of strings, numbers and booleans, as the annotations of Katalyst are. It reports whether the text is one.
func FlatObject(text string) (map[string]string, bool) {
	if text == "" {
		return nil, true
	}
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return nil, false
	}
	out := map[string]string{}
	for key, value := range object {
		switch value.(type) {
		case string, bool, float64:
			out[key] = fmt.Sprint(value)
		}
	}
	return out, object != nil
}
