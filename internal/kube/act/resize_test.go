package act

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
)

func TestResizedContainers(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: list("100m",
			"64Mi")}}},
		Containers: []corev1.Container{
			{Name: "main", Resources: corev1.ResourceRequirements{Requests: list("1500m", "3Gi"), Limits: list("3", "3Gi")}},
			{Name: "proxy", Resources: corev1.ResourceRequirements{Requests: list("500m", "1Gi")}},
			{Name: "logs"},
		},
		Overhead: list("0", "1Gi"),
	}
	from := convert.PodRequests(&spec)
	to := from
	to.CPU, to.Memory = 1000, from.Memory+2*fleet.GiB
	got, err := resized(&spec, from, to)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"containers":[` +
		`{"name":"main","resources":{"limits":{"cpu":"1500m","memory":"4831838208"},` +
		`"requests":{"cpu":"750m","memory":"4831838208"}}},` +
		`{"name":"proxy","resources":{"requests":{"cpu":"250m","memory":"1536Mi"}}}]}`
	if text := string(object.MergePatch(map[string]any{"containers": got})); text != strings.ReplaceAll(want,
		"4831838208", "4608Mi") {
		t.Errorf("%s\nwant %s", text, want)
	}
	to.Memory = fleet.GiB / 2
	if _, err := resized(&spec, from, to); err == nil {
		t.Error("less than the overhead was granted")
	}
	spec.Resources = &corev1.ResourceRequirements{Requests: list("4", "8Gi")}
	if _, err := resized(&spec, from, to); err == nil {
		t.Error("requests of the pod itself were passed over")
	}
}
