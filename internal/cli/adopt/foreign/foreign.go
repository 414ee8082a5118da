// Package foreign reads the autoscalers of other systems: a HorizontalPodAutoscaler, KEDA's ScaledObject or a CronHorizontalPodAutoscaler
// comes in, and an ElasticService that does the same comes out, with a list of what it cannot do. Tables say for each field of their
// schemas whether it is taken, harmless or lost.
package foreign

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/validate/offline"
)

// Adoption is a foreign autoscaler as an ElasticService in mode Observe.
type Adoption struct {
	Service *v1alpha1.ElasticService
	// Lost are the fields that the service does without, each as "PATH: what differs".
	Lost []string
	// Notes are small differences that lose nothing.
	Notes []string
}

func (a *Adoption) lose(path, format string, args ...any) {
	a.Lost = append(a.Lost, path+": "+fmt.Sprintf(format, args...))
}

func (a *Adoption) note(format string, args ...any) {
	a.Notes = append(a.Notes, fmt.Sprintf(format, args...))
}

// Options is what the objects themselves do not say.
type Options struct {
	// Utilisation is the CPU utilisation in percent that the service level allows; the autoscaler's own target when 0.
	Utilisation int32
	// Zone is the IANA zone by which the jobs of a CronHorizontalPodAutoscaler run.
	Zone string
}

func newAdoption(namespace string, target v1alpha1.TargetRef) *Adoption {
	return &Adoption{Service: &v1alpha1.ElasticService{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ElasticService"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: target.Name},
		Spec:       v1alpha1.ElasticServiceSpec{TargetRef: target, Mode: string(fleet.Observe)},
	}}
}

// finish sets the service level and judges the result as springtide validate does. Metrics and windows that it refuses are lost; anything
// else that it refuses is an error.
func (a *Adoption) finish(of string, utilisation int32) (*Adoption, error) {
	if utilisation < 1 || utilisation > 100 {
		return nil, fmt.Errorf("%s has no CPU target between 1 and 100 %%: give --utilisation", of)
	}
	a.Service.Spec.SLO = v1alpha1.SLO{Utilization: &v1alpha1.UtilizationLevels{CPU: v1alpha1.PercentOf(
		float64(utilisation) / 100)}}
	for {
		finding, err := a.judge()
		if err != nil {
			return nil, err
		}
		if finding == nil {
			a.noteZero()
			slices.Sort(a.Lost)
			a.Lost = slices.Compact(a.Lost)
			return a, nil
		}
		spec := &a.Service.Spec
		var i int
		switch {
		case item(finding.Field, "spec.metrics", len(spec.Metrics), &i):
			a.lose("metric "+spec.Metrics[i].Name, "%s", finding.Message)
			spec.Metrics = slices.Delete(spec.Metrics, i, i+1)
		case item(finding.Field, "spec.windows", len(spec.Windows), &i):
			a.lose("window "+spec.Windows[i].Name, "%s", finding.Message)
			spec.Windows = slices.Delete(spec.Windows, i, i+1)
		default:
			return nil, fmt.Errorf("%s scales what Springtide cannot: %s: %s", of, finding.Field, finding.Message)
		}
	}
}

// noteZero says that a minimum of 0 is kept at 1 where nothing that is taken over would wake the service.
func (a *Adoption) noteZero() {
	spec := &a.Service.Spec
	if spec.Replicas.Min > 0 || spec.Actuation == string(fleet.ByHPAFloor) {
		return
	}
	if !slices.ContainsFunc(spec.Metrics, func(m v1alpha1.Metric) bool { return m.Type == "Query" }) {
		a.note("replicas.min 0: one replica stays until the service has a signal that is read without pods, " +
			"as a metric of type Query")
	}
}

// judge asks the offline judge about the service, and returns the first finding.
func (a *Adoption) judge() (*offline.Finding, error) {
	text, err := yaml.Marshal(a.Object())
	if err != nil {
		return nil, fmt.Errorf("render ElasticService %s: %w", a.Service.Name, err)
	}
	judged, err := offline.Files([]offline.Input{{Name: "adopted", Text: text}}, offline.Options{Namespace: a.Service.Namespace})
	if err != nil {
		return nil, fmt.Errorf("judge ElasticService %s: %w", a.Service.Name, err)
	}
	if len(judged.Findings) > 0 {
		return &judged.Findings[0], nil
	}
	return nil, nil
}

// Object is the service as it is printed and written: without a status.
func (a *Adoption) Object() map[string]any {
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.Service)
	if err != nil { // a type of ours always converts
		panic(err)
	}
	delete(value, "status")
	return value
}

// item reads the index of a list's item out of the path of a field. A finding about the list as a whole is about its last item.
func item(field, list string, n int, i *int) bool {
	rest, ok := strings.CutPrefix(field, list)
	if !ok || n == 0 {
		return false
	}
	*i = n - 1
	if digits, _, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok {
		if v, err := strconv.Atoi(digits); err == nil && v < n {
			*i = v
		}
	}
	return true
}

// plainName makes a name of an item that is unique within a service.
func plainName(text string, taken map[string]bool) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, text)
	plain = strings.Trim(plain[:min(len(plain), 56)], "-")
	base := cmp.Or(plain, "item")
	name := base
	for i := 2; taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	taken[name] = true
	return name
}

// FromHPA reads a HorizontalPodAutoscaler, which stays in charge: Springtide raises its floor.
func FromHPA(hpa *autoscalingv2.HorizontalPodAutoscaler, o Options) (*Adoption, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hpa)
	if err != nil {
		return nil, fmt.Errorf("read HorizontalPodAutoscaler %s: %w", hpa.Name, err)
	}
	ref := hpa.Spec.ScaleTargetRef
	a := newAdoption(hpa.Namespace, v1alpha1.TargetRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
	a.Lost = lost(HPAFields, object)
	s := a.Service
	s.Spec.Actuation = string(fleet.ByHPAFloor)
	s.Spec.Replicas = v1alpha1.ReplicaBounds{Min: 1, Max: hpa.Spec.MaxReplicas}
	if least := hpa.Spec.MinReplicas; least != nil {
		s.Spec.Replicas.Min = max(*least, 0)
	}
	return a.finish("HorizontalPodAutoscaler "+hpa.Name, cmp.Or(o.Utilisation, cpuTarget(hpa)))
}

// cpuTarget is the first CPU target of an HPA in percent, 0 if it has none.
func cpuTarget(hpa *autoscalingv2.HorizontalPodAutoscaler) int32 {
	for _, m := range hpa.Spec.Metrics {
		if m.Resource != nil && m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil {
			return *m.Resource.Target.AverageUtilization
		}
		if m.ContainerResource != nil && m.ContainerResource.Name == corev1.ResourceCPU && m.ContainerResource.Target.AverageUtilization != nil {
			return *m.ContainerResource.Target.AverageUtilization
		}
	}
	return 0
}

// number is a decimal number as text, as fields of ours take it: not in scientific notation, and rounded to thousandths as KEDA does.
func number(v float64) string {
	text := strings.TrimRight(strconv.FormatFloat(v, 'f', 3, 64), "0")
	return strings.TrimSuffix(text, ".")
}

var errNotPositive = errors.New("it is no positive number")
