package world

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// freshEvery is how often the world counts the services of which the controller has fresh data, where scrapes are slow or lossy.
const freshEvery = 10 * time.Minute

// Fresh counts looks at a service, the looks at which the controller had fresh data of it, and for each service and what it lacked those at
// which it had none.
type Fresh struct {
	Fresh, Looks int
	Lacked       map[string]int
}

// Fresh returns the counts since the account began.
func (w *World) Fresh() Fresh { return w.fresh }

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
		w.fresh.Looks++
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionDataFresh)
		if c != nil && c.Status == metav1.ConditionTrue {
			w.fresh.Fresh++
			continue
		}
		what := s.Namespace + "/" + s.Name + ": not sized yet"
		if c != nil {
			what = s.Namespace + "/" + s.Name + ": " + c.Message // which names a missing forecast, too
		}
		if w.fresh.Lacked == nil {
			w.fresh.Lacked = map[string]int{}
		}
		w.fresh.Lacked[what]++
	}
}
