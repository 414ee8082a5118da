package world

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
)

// freshEvery is how often the world counts the services of which the controller has fresh data, where scrapes are slow or lossy.
const freshEvery = 10 * time.Minute

// Fresh counts looks at services and those at which the controller had fresh data: in all, and of the service that had it least often. Lacked counts for
// each service and what it lacked the looks at which data were missing.
type Fresh struct {
	Fresh, Looks           int
	LeastFresh, LeastLooks int
	Lacked                 map[string]int
}

// looks are the looks at one service.
type looks struct{ fresh, all int }

// freshLooks are the looks at all services, and what lacked.
type freshLooks struct {
	services map[string]looks
	lacked   map[string]int
}

// Fresh returns the counts since the account began.
func (w *World) Fresh() Fresh {
	f := Fresh{Lacked: w.fresh.lacked}
	for _, l := range w.fresh.services {
		f.Fresh, f.Looks = f.Fresh+l.fresh, f.Looks+l.all
		if f.LeastLooks == 0 || l.fresh*f.LeastLooks < f.LeastFresh*l.all {
			f.LeastFresh, f.LeastLooks = l.fresh, l.all
		}
	}
	return f
}

// noteFresh looks at the condition DataFresh of each service.
func (w *World) noteFresh(ctx context.Context) {
	list, err := w.api.own("elasticservices", "").List(ctx, metav1.ListOptions{})
	if err != nil {
		w.log.Debug("list services", "err", err) // the API server is down
		return
	}
	for i := range list.Items {
		o, err := typed[v1alpha1.ElasticService](&list.Items[i])
		s, ok := o.(*v1alpha1.ElasticService)
		if err != nil || !ok {
			continue
		}
		if w.fresh.services == nil {
			w.fresh = freshLooks{services: map[string]looks{}, lacked: map[string]int{}}
		}
		name := s.Namespace + "/" + s.Name
		l := w.fresh.services[name]
		l.all++
		if c := meta.FindStatusCondition(s.Status.Conditions, catalog.ConditionDataFresh); c == nil {
			w.fresh.lacked[name+": not sized yet"]++
		} else if c.Status != metav1.ConditionTrue {
			w.fresh.lacked[name+": "+c.Message]++
		} else {
			l.fresh++
		}
		w.fresh.services[name] = l
	}
}
