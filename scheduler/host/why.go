package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/springtide/springtide/scheduler/place"
)

// mostOfDecision bounds what is written on a pod about its decision, in bytes.
const mostOfDecision = 1024

// decisionText is what is written on a pod.
func decisionText(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	text := strings.Join(kept, "; ")
	if len(text) > mostOfDecision {
		text = strings.ToValidUTF8(text[:mostOfDecision-3], "") + "..."
	}
	return text
}

// fitting says on how many nodes a pod fits, and what removed the others.
func fitting(e *place.Explanation) string {
	text := fmt.Sprintf("%d of %d nodes fit", e.Fit, e.Machines)
	if removed := removedBy(e); removed != "" {
		text += ", removed: " + removed
	}
	return text
}

// removedBy lists the filters with how many nodes each of them removed.
func removedBy(e *place.Explanation) string {
	var b strings.Builder
	sep := ""
	for f, n := range e.Removed {
		if n > 0 {
			fmt.Fprintf(&b, "%s%d %s", sep, n, place.Filter(f))
			sep = ", "
		}
	}
	return b.String()
}

// why says why a pod goes to a node: by its score, and by how much it stands before the next one.
func why(e *place.Explanation, node string) string {
	if node != e.Name {
		return fmt.Sprintf("%s stands first by its score of %d", e.Name, e.Score.Total)
	}
	text := fmt.Sprintf("%s wins with %d points", node, e.Score.Total)
	sep := ": "
	for _, t := range termsOf(&e.Score) {
		text += fmt.Sprintf("%s%s %d", sep, t.name, t.value)
		sep = ", "
	}
	if e.Next != "" {
		text += fmt.Sprintf("; the next is %s with %d", e.Next, e.NextScore)
	}
	return text
}

// term is a part of a score.
type term struct {
	name  string
	value int64
}

// termsOf are the parts of a score that are not zero.
func termsOf(s *place.Score) []term {
	all := []term{{"fill", s.Fill}, {"room", s.Room}, {"keep GPUs", s.KeepGPUs}, {"GPU fragments", s.GPUFragments}, {"whole machines", s.WholeMachines},
		{"whole sockets", s.WholeSockets}, {"zones", s.Zones}, {"hosts", s.Hosts}, {"preferred affinity", s.Preferred}, {"taints", s.Taints},
		{"images", s.Images}}
	return slices.DeleteFunc(all, func(t term) bool { return t.value == 0 })
}
