package report

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/kube/convert"
)

// windowStatus is a window at one moment.
func windowStatus(name string, l hpa.Level) v1alpha1.WindowStatus {
	return v1alpha1.WindowStatus{Name: name, OpenUntil: convert.Stamp(l.Until), LastTime: convert.Stamp(l.Last),
		NextTime: convert.Stamp(l.Next)}
}

// windowsStand reports whether what a status says of windows still holds: the spec is the same, and no edge was passed.
// Schedules are not read in each cycle for each service.
func windowsStand(was []v1alpha1.WindowStatus, n int, same bool, now time.Time) bool {
	passed := func(t *metav1.Time) bool { return t != nil && !now.Before(t.Time) }
	return same && len(was) == n && !slices.ContainsFunc(was, func(w v1alpha1.WindowStatus) bool {
		return passed(w.OpenUntil) || passed(w.NextTime)
	})
}

// serviceWindows says of each window of a service when it opened last and opens next.
func serviceWindows(svc *fleet.Service, o *v1alpha1.ElasticService, now time.Time) []v1alpha1.WindowStatus {
	was := o.Status.Windows
	if windowsStand(was, len(svc.Windows), o.Status.ObservedGeneration == o.Generation, now) {
		return was
	}
	var out []v1alpha1.WindowStatus
	for i := range svc.Windows {
		if l, ok := hpa.LevelOf(&svc.Windows[i], now); ok {
			out = append(out, windowStatus(svc.Windows[i].Name, l))
		}
	}
	return out
}

// poolWindows says the same of the windows of change of a pool.
func poolWindows(p *fleet.Pool, o *v1alpha1.CapacityPool, now time.Time) []v1alpha1.WindowStatus {
	was := o.Status.ChangeWindows
	if windowsStand(was, len(p.Changes), o.Status.ObservedGeneration == o.Generation, now) {
		return was
	}
	var out []v1alpha1.WindowStatus
	for i := range p.Changes {
		out = append(out, windowStatus(p.Changes[i].Name, hpa.ChangeLevel(&p.Changes[i], now)))
	}
	return out
}

// windowGist is what of windows is worth a write of its own: that one opened or closed.
func windowGist(list []v1alpha1.WindowStatus) string {
	gist := ""
	for _, w := range list {
		gist += fmt.Sprintf("%s %t;", w.Name, w.OpenUntil != nil)
	}
	return gist
}
