package doctor

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/validate"
)

// checkPauses names pauses that ended and still stand, those without an end, and annotations that cannot be read.
func checkPauses(ctx context.Context, d *doctor) error {
	p := pauses{now: d.Clients.Now()}
	services, err := cluster.List[v1alpha1.ElasticService](ctx, d.Clients, cluster.Services, "")
	if err != nil {
		return err
	}
	for i := range services {
		s := &services[i]
		p.annotated(validate.PausedService, s.Namespace+"/"+s.Name, s.Annotations)
		p.stated(s)
	}
	jobs, err := cluster.List[v1alpha1.ElasticJob](ctx, d.Clients, cluster.Jobs, "")
	if err != nil {
		return err
	}
	for i := range jobs {
		p.annotated(validate.PausedJob, jobs[i].Namespace+"/"+jobs[i].Name, jobs[i].Annotations)
	}
	pools, err := cluster.List[v1alpha1.CapacityPool](ctx, d.Clients, cluster.Pools, "")
	if err != nil {
		return err
	}
	for i := range pools {
		p.annotated(validate.PausedPool, pools[i].Name, pools[i].Annotations)
	}
	namespaces, err := d.Clients.Core.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the namespaces: %w", err)
	}
	for i := range namespaces.Items {
		p.annotated(validate.PausedNamespace, namespaces.Items[i].Name, namespaces.Items[i].Annotations)
	}
	p.report(d)
	return nil
}

// pauses are those that were found, by what is to be said of them.
type pauses struct {
	now                  time.Time
	unreadable           []unreadable
	ended, endless, fine []string
}

// unreadable is an annotation that is not of its form.
type unreadable struct{ what, wrong string }

// annotated looks at the annotation of one object.
func (p *pauses) annotated(on validate.PausedKind, name string, annotations map[string]string) {
	if text, ok := annotations[v1alpha1.AnnotationPause]; ok {
		h := validate.Pause(text, on)
		p.add(string(on)+" "+name, &h)
	}
}

// stated looks at the pause in the spec of one service.
func (p *pauses) stated(s *v1alpha1.ElasticService) {
	stated := s.Spec.Pause
	if stated == nil {
		return
	}
	h := fleet.Hold{Reason: stated.Reason}
	if stated.Until != nil {
		h.Until = stated.Until.Time
	}
	p.add(fmt.Sprintf("service %s/%s by spec.pause", s.Namespace, s.Name), &h)
}

func (p *pauses) add(what string, h *fleet.Hold) {
	if h.Reason != "" {
		what += " (" + h.Reason + ")"
	}
	switch {
	case h.Unreadable != "":
		p.unreadable = append(p.unreadable, unreadable{what, h.Unreadable})
	case h.Over(p.now):
		p.ended = append(p.ended, what)
	case h.Until.IsZero():
		p.endless = append(p.endless, what)
	default:
		p.fine = append(p.fine, what)
	}
}

func (p *pauses) report(d *doctor) {
	for _, x := range p.unreadable {
		d.Report("springtide resume, and pause again",
			"the annotation %s of %s cannot be read, and holds all that it may hold: %s",
			v1alpha1.AnnotationPause, x.what, x.wrong)
	}
	if len(p.ended) > 0 {
		d.Advise("springtide resume, or remove spec.pause: they hold nothing any more",
			"%s over and still stands: %s", isAre(len(p.ended), "pause"), cell.First(p.ended, cell.FewNames))
	}
	if len(p.endless) > 0 {
		d.Advise("give them an end: springtide pause with --for, or spec.pause.until",
			"%s without an end: %s", isAre(len(p.endless), "pause"), cell.First(p.endless, cell.FewNames))
	}
	if len(p.fine) > 0 {
		d.OK("%s in force and ends by itself: %s", isAre(len(p.fine), "pause"), cell.First(p.fine, cell.FewNames))
	}
	if len(p.unreadable)+len(p.ended)+len(p.endless)+len(p.fine) == 0 {
		d.OK("nothing is paused")
	}
}
