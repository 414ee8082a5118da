package foreign

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/validate"
)

// cronHPA is what of Alibaba's kind is read.
type cronHPA struct {
	Spec struct {
		ScaleTargetRef v1alpha1.TargetRef `json:"scaleTargetRef"`
		CronMode       string             `json:"cronMode"`
		Jobs           []struct {
			Name       string `json:"name"`
			Schedule   string `json:"schedule"`
			TargetSize int32  `json:"targetSize"`
			RunOnce    bool   `json:"runOnce"`
		} `json:"jobs"`
	} `json:"spec"`
}

// utilisationOfCronHPA is the service level of a target whose autoscaler knows the clock alone, in percent.
const utilisationOfCronHPA = 60

// FromCronHPA reads a CronHorizontalPodAutoscaler, which is to be deleted: the size of each job holds until another job sets the next one.
func FromCronHPA(u *unstructured.Unstructured, opts Options) (*Adoption, error) {
	var o cronHPA
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return nil, fmt.Errorf("read CronHorizontalPodAutoscaler %s: %w", u.GetName(), err)
	}
	zone, err := validate.Zone(opts.Zone)
	if err != nil {
		return nil, fmt.Errorf("--time-zone: %w", err)
	}
	of := "CronHorizontalPodAutoscaler " + u.GetName()
	ref := o.Spec.ScaleTargetRef
	switch {
	case ref.Kind == "HorizontalPodAutoscaler":
		return nil, fmt.Errorf("%s moves the bounds of HorizontalPodAutoscaler %s: adopt that, and write the jobs as windows", of, ref.Name)
	case o.Spec.CronMode == "Disable":
		return nil, fmt.Errorf("%s is switched off (spec.cronMode: Disable) and scales nothing: delete it, or set Enable", of)
	}
	a := newAdoption(u.GetNamespace(), ref)
	a.Lost = lost(CronHPAFields, u.Object)
	s := &a.Service.Spec
	s.Actuation = string(fleet.ByScale)
	s.Replicas.Min = 1
	var jobs []job
	for i, j := range o.Spec.Jobs {
		path, text := fmt.Sprintf("spec.jobs[%d]", i), fiveFields(j.Schedule)
		s.Replicas.Max = max(s.Replicas.Max, j.TargetSize)
		if j.TargetSize == 0 {
			s.Replicas.Min = 0
		}
		schedule, err := hpa.ParseSchedule(text)
		switch {
		case err != nil:
			a.lose(path, "job %s: %s", j.Name, err)
		case j.RunOnce:
			a.lose(path, "job %s runs once, and a window opens again: scale by hand for that day, or write a FestivalPlan", j.Name)
		default:
			jobs = append(jobs, job{schedule: schedule, text: text, size: j.TargetSize, name: j.Name, path: path})
		}
	}
	all := true
	for _, j := range jobs {
		all = all && weekly(j.text)
	}
	names := map[string]bool{}
	for i, j := range jobs {
		if j.size < 1 { // the least that replicas.min allows
			continue
		}
		a.window(j.path, plainName(j.name, names), names, fit(j.text, j.schedule, all, holds(jobs, i), zone), opts.Zone, j.size)
	}
	return a.finish(of, cmp.Or(opts.Utilisation, utilisationOfCronHPA))
}

// fiveFields drops the seconds of a cron expression of six fields where they are 0.
func fiveFields(schedule string) string {
	fields := strings.Fields(schedule)
	if len(fields) == 6 && strings.Trim(fields[0], "0") == "" {
		return strings.Join(fields[1:], " ")
	}
	return schedule
}
