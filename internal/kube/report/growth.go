package report

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
)

const (
	// growthAhead is how far an agent is to see: a reclaimed pod that is placed now should still find its CPU then.
	growthAhead = 30 * time.Minute
	// growthQuantile of the forecast is met by nine in ten tides.
	growthQuantile = 0.9
	// growthStep rounds what is written up, growthSlack keeps a value that wavers about a step from being written each time, and maxGrowth bounds it: a
	// service that wakes from nearly nothing multiplies nearly nothing.
	growthStep, growthSlack, maxGrowth = 0.25, 0.05, 4
	// growthsAtOnce is how many machines learn of another growth in one cycle.
	growthsAtOnce = 50
)

// onlineGrowth reports to the agents that offer idle CPU how far the load of their online pods is forecast to grow.
// They measure online's use of now, and their offer is still in use when the tide has come in.
func (w *statusWriter) onlineGrowth(r *loop.Report) {
	var ofService map[fleet.ServiceID]float64
	var pods map[fleet.NodeID][]growing
	left := growthsAtOnce
	for i := range r.Snapshot.Nodes {
		n := &r.Snapshot.Nodes[i]
		f, ok := w.c.Nodes.Get("", n.Name)
		if !ok || !f.Offers {
			continue
		}
		o, ok := w.c.Shares.Get("", n.Name)
		if !ok || o.Facts.Node != n.ID {
			continue
		}
		if pods == nil {
			ofService = growths(r)
			pods = growingPods(r.Snapshot, ofService)
		}
		was := o.API.Annotations[v1alpha1.AnnotationOnlineGrowth]
		next := growthText(was, growthOf(pods[n.ID]))
		if next == was {
			continue
		}
		if left--; left < 0 {
			return
		}
		w.writeGrowth(o, next)
	}
}

// growths is by how much the load of one replica of each service may grow. Planned replicas take their part of it. A
// service that is only observed, or whose forecast is not trusted, is not in it.
func growths(r *loop.Report) map[fleet.ServiceID]float64 {
	out := map[fleet.ServiceID]float64{}
	replicas := map[fleet.ServiceID]float64{}
	for i := range r.Plan.Targets {
		t := &r.Plan.Targets[i]
		if t.Current > 0 {
			replicas[t.Service] = max(float64(t.Replicas)/float64(t.Current), 1)
		}
	}
	for i := range r.Snapshot.Services {
		s := &r.Snapshot.Services[i]
		tide, ok := r.Tides[s.ID]
		if !ok || !tide.Trusted || s.Mode == fleet.Observe {
			continue
		}
		if g := tide.Growth(r.Snapshot.At, r.Snapshot.At.Add(growthAhead), growthQuantile); !math.IsNaN(g) {
			out[s.ID] = max(g/max(replicas[s.ID], 1), 1)
		}
	}
	return out
}

// growing is the request of an online pod, and by how much its load may grow.
type growing struct {
	cpu    fleet.MilliCPU
	growth float64
}

func growingPods(s *fleet.Snapshot, of map[fleet.ServiceID]float64) map[fleet.NodeID][]growing {
	out := map[fleet.NodeID][]growing{}
	for i := range s.Services {
		g, ok := of[s.Services[i].ID]
		if !ok {
			g = 1
		}
		for j := range s.Services[i].Pods {
			p := &s.Services[i].Pods[j]
			if p.Node != "" && p.Ready && !p.Deleting {
				out[p.Node] = append(out[p.Node], growing{p.Requests.CPU, g})
			}
		}
	}
	return out
}

// growthOf is the growth of a machine: that of its pods, by what they request.
func growthOf(pods []growing) float64 {
	var sum, weights float64
	for _, p := range pods {
		sum, weights = sum+float64(p.cpu)*p.growth, weights+float64(p.cpu)
	}
	if weights == 0 {
		return 1
	}
	return min(sum/weights, maxGrowth)
}

// growthText is what is to be written for a growth where something stands: nothing where the agent keeps that much free anyway, by its default.
func growthText(was string, growth float64) string {
	keptFree := shape.DefaultAdvice().Growth
	text := func(g float64) string {
		if g = math.Ceil(g/growthStep) * growthStep; g <= keptFree {
			return ""
		}
		return strconv.FormatFloat(g, 'g', -1, 64)
	}
	stands, err := strconv.ParseFloat(was, 64)
	if was == "" {
		stands = keptFree
	}
	if (was == "" || err == nil) && growth <= stands && growth > stands-growthStep-growthSlack {
		return was
	}
	return text(growth)
}

// writeGrowth queues the annotation. The share is written as it was read: another version of it is left to the next cycle.
func (w *statusWriter) writeGrowth(o *watch.OwnShare, text string) {
	next := *o.API
	next.Annotations = maps.Clone(next.Annotations)
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	if text == "" {
		delete(next.Annotations, v1alpha1.AnnotationOnlineGrowth)
	} else {
		next.Annotations[v1alpha1.AnnotationOnlineGrowth] = text
	}
	w.todo = append(w.todo, func(ctx context.Context) error {
		obj, err := object.Encode(object.GVRShares, &next)
		if err != nil {
			return err
		}
		got, err := w.c.Dyn.Resource(object.GVRShares).Update(ctx, obj, object.UpdateOptions())
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("write the growth of online on the NodeShare of %s: %w", next.Name, err)
		}
		w.See(w.c.Shares.Sees("", o.Name, o.UID, got.GetResourceVersion()))
		return nil
	})
}
