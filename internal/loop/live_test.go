package loop

import (
	"maps"
	"testing"

	"github.com/springtide/springtide/fleet"
)

// saying is a source that says why data is missing.
type saying struct {
	History
	said map[fleet.ServiceID]DataProblem
}

func (s saying) QueryProblems() map[fleet.ServiceID]DataProblem { return s.said }

// The cause that samples show comes first, then the words of the source. A source that cannot answer for a namespace
// gives the only cause.
func TestQueryProblems(t *testing.T) {
	old, query := DataProblem{CauseSamplesTooOld, "old"}, DataProblem{CauseNegative, "metric queue: negative"}
	refused := DataProblem{CauseNamespaceRefused, "refused"}
	lacking := map[fleet.ServiceID]DataProblem{"a": old, "b": old, "d": old}
	l := &Loop{p: Ports{History: saying{said: map[fleet.ServiceID]DataProblem{"b": query, "c": query, "d": refused}}}}
	both := DataProblem{CauseSamplesTooOld, "old; metric queue: negative"}
	want := map[fleet.ServiceID]DataProblem{"a": old, "b": both, "c": query, "d": refused}
	if got := l.queryProblems(lacking); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(lacking) != 3 || lacking["b"] != old {
		t.Errorf("what samples lack was changed: %v", lacking)
	}
	silent := &Loop{p: Ports{History: struct{ History }{}}}
	if got := silent.queryProblems(lacking); !maps.Equal(got, lacking) {
		t.Errorf("a source that says nothing: %v, want %v", got, lacking)
	}
}
