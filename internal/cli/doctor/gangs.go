package doctor

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/internal/cli/cluster"
)

// howGangs is how an API server serves PodGroups.
const howGangs = "where others' gangs are wanted, give the API server --feature-gates=GenericWorkload=true and --runtime-config=scheduling.k8s.io/v1beta1=true (Kubernetes 1.37)"

// checkGangs says whether pods of others can name a gang. An API server without PodGroups drops spec.schedulingGroup of pods without an error: the pods
// of a gang are then placed one by one, and nothing in the cluster tells.
func checkGangs(ctx context.Context, d *doctor) error {
	groups, err := d.Clients.Core.Discovery().ServerGroups()
	if err != nil {
		return fmt.Errorf("ask which groups are served: %w", err)
	}
	served := ""
	for i := range groups.Groups {
		if groups.Groups[i].Name != cluster.SchedulingGroup {
			continue
		}
		for _, v := range groups.Groups[i].Versions {
			list, err := d.Clients.Core.Discovery().ServerResourcesForGroupVersion(v.GroupVersion)
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("ask for the kinds of %s: %w", v.GroupVersion, err)
			}
			if list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "podgroups" }) {
				served = v.Version
				break
			}
		}
	}
	if served == "" {
		d.Advise(howGangs, "gangs by PodGroups are off in this cluster: the API server drops schedulingGroup of a pod without an error; gangs of ElasticJobs go on")
		return nil
	}
	if kept, known := d.keepsGroups(ctx); known && !kept {
		d.Report(howGangs, "PodGroups are served at %s/%s, and the API server drops schedulingGroup of a pod all the same: gangs come to nothing; gangs of ElasticJobs go on", cluster.SchedulingGroup, served)
		return nil
	}
	d.OK("PodGroups are served at %s/%s", cluster.SchedulingGroup, served)
	return nil
}

// keepsGroups tries, in a dry run, whether a pod keeps its group; known is false where this account, or a policy, lets it make no pod.
func (d *doctor) keepsGroups(ctx context.Context) (kept, known bool) {
	group := "doctor"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "springtide-doctor-", Namespace: metav1.NamespaceDefault}, Spec: corev1.PodSpec{
		Containers:      []corev1.Container{{Name: "none", Image: "none.invalid/none"}},
		SchedulingGates: []corev1.PodSchedulingGate{{Name: "springtide.dev/doctor"}},
		SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group},
	}}
	got, err := d.Clients.Core.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err == nil && got.Spec.SchedulingGroup != nil, err == nil
}
