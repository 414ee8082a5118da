//go:build plane

package kube

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// stagedApp is an app whose pods have the readiness gate.
func (p *plane) stagedApp(t *testing.T, id string, replicas int32) fleet.ServiceID {
	t.Helper()
	return p.app(t, id, replicas, "Scale", func(d *appsv1.Deployment, s *v1alpha1.ElasticService) {
		d.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1alpha1.PodInService}}
		s.Spec.ScaleIn = &v1alpha1.ScaleIn{Standby: "15m"}
	})
}

// podNow reads a pod as the API server has it.
func (p *plane) podNow(t *testing.T, n fleet.Name) *corev1.Pod {
	t.Helper()
	pod, err := p.core.CoreV1().Pods(n.Namespace).Get(t.Context(), n.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// gateOf is the condition of a pod's readiness gate, and its reason.
func gateOf(p *corev1.Pod) (corev1.ConditionStatus, string) {
	for _, c := range p.Status.Conditions {
		if c.Type == v1alpha1.PodInService {
			return c.Status, c.Reason
		}
	}
	return "", ""
}

// kubelet plays the kubelet's answer to a gate: Ready is what the gate says.
func (p *plane) kubelet(t *testing.T, n fleet.Name) {
	t.Helper()
	status, _ := gateOf(p.podNow(t, n))
	body := object.MergePatch(map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready",
		"status": string(status), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}})
	if _, err := p.core.CoreV1().Pods(n.Namespace).Patch(t.Context(), n.Name, types.StrategicMergePatchType, body,
		metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

func standbyOf(svc fleet.ServiceID, p *fleet.Pod, back bool) planner.Standby {
	return planner.Standby{Service: svc, Pod: planner.PodRef{Name: p.Name, ID: p.ID}, Node: p.NodeName, Back: back,
		Why: reason.Said("the ebb")}
}

// TestPlaneStandby takes pods of a Deployment out of traffic and brings them back, with the controller's own rights,
// and lets the ReplicaSet delete those whose standby is over.
func TestPlaneStandby(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := "calm-" + rand.String(5)
	svc := p.stagedApp(t, id, 4)
	half := intstr.FromInt32(2)
	if _, err := p.core.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &half,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": id}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := func() *fleet.Service { return p.snapshot(t).Service(svc) }
	until(t, "the gates of new pods to be opened, and the budget", func() bool {
		s := service()
		return s.Stages() && s.Disruptions == fleet.KnownAt[int32](2, s.Disruptions.At)
	})
	for _, pod := range service().Pods {
		if status, why := gateOf(p.podNow(t, pod.Name)); status != corev1.ConditionTrue || why != "Opened" {
			t.Errorf("the gate of %s is %q (%s)", pod.Name, status, why)
		}
	}

	// One leaves: it is not ready from the write on, keeps a little CPU, and the budget counts it.
	first := service().Pods[0]
	out := planner.Plan{Standbys: []planner.Standby{standbyOf(svc, &first, false)}}
	p.must(t, out)
	s := service()
	if x := s.Pods[0]; !x.Standby.OK || x.Ready || x.Requests.CPU != 50 || x.FullCPU != 1000 ||
		x.Requests.Memory != 2*fleet.GiB {
		t.Fatalf("out of traffic: %+v", x)
	}
	if s.Desired.Value != 4 || s.Serving() != 3 || s.Ready() != 3 {
		t.Errorf("%d asked for, %d serve, %d ready", s.Desired.Value, s.Serving(), s.Ready())
	}
	p.kubelet(t, first.Name)
	until(t, "the budget to count it", func() bool { return service().Disruptions.Value == 1 })
	if r := p.apply(t, out); r.Count(loop.Stale) != 1 || !strings.Contains(r.Results[0].Message, "stands by already") {
		t.Errorf("the same again: %+v", r.Results)
	}

	// A second process with another memory sees it alike, opens no gate of it, and may bring it back.
	other := newPlane(t)
	if x := other.snapshot(t).Service(svc).Pods[0]; !x.Standby.OK || x.FullCPU != 1000 {
		t.Errorf("to another process: %+v", x)
	}
	if status, why := gateOf(p.podNow(t, first.Name)); status != corev1.ConditionFalse || why != "Standby" {
		t.Errorf("the gate in standby is %q (%s)", status, why)
	}

	// Nothing is measured of the service: the planner brings it back, in one plan.
	now := p.snapshot(t)
	all := planner.Make(planner.Input{Snapshot: now, Options: planner.DefaultOptions()})
	back := planner.Plan{Returns: slices.DeleteFunc(all.Returns, func(x planner.Standby) bool { return x.Service != svc })}
	if len(back.Returns) != 1 || back.Returns[0].Why.Code != reason.StandbyBlind {
		t.Fatalf("without metrics: %+v", back.Returns)
	}
	p.must(t, back)
	if x := service().Pods[0]; x.Standby.OK || x.Requests != first.Requests {
		t.Errorf("back in service: %+v, before %+v", x, first)
	}
	p.kubelet(t, first.Name)
	until(t, "it to be ready", func() bool { return service().Ready() == 4 })

	// Two leave for good: replicas are lowered, and the ReplicaSet takes these two.
	leave := service().Pods[1:3]
	until(t, "the budget to have room again", func() bool { return service().Disruptions.Value == 2 })
	p.must(t, planner.Plan{Standbys: []planner.Standby{standbyOf(svc, &leave[0], false),
		standbyOf(svc, &leave[1], false)}})
	for i := range leave {
		p.kubelet(t, leave[i].Name)
	}
	s = service()
	lower := planner.Scale{Service: svc, Target: s.Target, Kind: s.TargetKind, By: s.Actuation, From: 4, To: 2,
		Version: s.Version}
	for i := range leave {
		lower.Victims = append(lower.Victims, planner.PodRef{Name: leave[i].Name, ID: leave[i].ID})
	}
	p.must(t, planner.Plan{Lowers: []planner.Scale{lower}})
	until(t, "the pods whose standby is over to leave", func() bool {
		now := p.snapshot(t)
		for i := range leave {
			if pod := find(now, leave[i].ID); pod != nil && !pod.Deleting {
				return false
			}
		}
		return true
	})
	if s = service(); s.Ready() != 2 || s.Serving() != 2 {
		t.Errorf("%d ready, %d serve", s.Ready(), s.Serving())
	}
}

// TestPlaneStandbyRefusals: the API server refuses a standby without a Deployment, and one that is no duration.
func TestPlaneStandbyRefusals(t *testing.T) {
	p := newPlane(t)
	for name, c := range map[string]struct {
		bend func(*v1alpha1.ElasticService)
		want string
	}{
		"a StatefulSet": {func(s *v1alpha1.ElasticService) { s.Spec.TargetRef.Kind = "StatefulSet" },
			"a staged scale-in needs a Deployment"},
		"an HPA's floor": {func(s *v1alpha1.ElasticService) { s.Spec.Actuation = "HPAFloor" },
			"a staged scale-in needs a Deployment"},
		"half a minute": {func(s *v1alpha1.ElasticService) { s.Spec.ScaleIn.Standby = "30s" },
			"must be a duration from 1m to 2h"},
		"no time at all": {func(s *v1alpha1.ElasticService) { s.Spec.ScaleIn.Standby = "soon" },
			"must be a duration from 1m to 2h"},
		"what is accepted": {func(*v1alpha1.ElasticService) {}, ""},
	} {
		s := &v1alpha1.ElasticService{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad-" + rand.String(5)}}
		s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "none"}
		s.Spec.SLO = v1alpha1.SLO{Utilization: &v1alpha1.UtilizationLevels{CPU: "70%"}}
		s.Spec.Replicas = v1alpha1.ReplicaBounds{Min: 1, Max: 5}
		s.Spec.ScaleIn = &v1alpha1.ScaleIn{Standby: "15m"}
		c.bend(s)
		u, err := object.Encode(object.GVRServices, s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.dyn.Resource(object.GVRServices).Namespace("default").Create(t.Context(), u,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
