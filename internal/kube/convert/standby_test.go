package convert

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
)

// A note that is garbled, of another container or too small gives back nothing, and takes nothing away.
func TestNotedCPU(t *testing.T) {
	for name, c := range map[string]struct {
		note string
		want int64 // what the containers requested before, in millicores, where they request 100 now
	}{
		"as it was written":   {`{"main":"1","side":"250m"}`, 1250},
		"one container":       {`{"main":"1"}`, 1050},
		"another container":   {`{"other":"4"}`, 100},
		"less than it has":    {`{"main":"10m","side":"10m"}`, 100},
		"no quantity":         {`{"main":"much"}`, 100},
		"negative":            {`{"main":"-1"}`, 100},
		"no JSON":             {`main=1`, 100},
		"nothing was written": {"", 100},
		"written by hand":     {`{"main":"1000000000000000"}`, 1069},
	} {
		p := &corev1.Pod{}
		p.Annotations = map[string]string{v1alpha1.AnnotationInServiceCPU: c.note}
		for _, n := range []string{"main", "side"} {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: n, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}}})
		}
		if got := int64(CPUBefore(p)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	p := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}}}, {Name: "none"}}}
	if got := CPUNote(&p); got != `{"main":"1500m"}` {
		t.Errorf("the note is %s", got)
	}
}
