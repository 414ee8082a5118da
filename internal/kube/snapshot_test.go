package kube

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/snapshot"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// Whose gangs the bundled scheduler times is known by its own name, and by the name under which a pool says that it serves it.
func TestPodsOfTheBundledScheduler(t *testing.T) {
	for _, c := range []struct {
		pool, pod string
		want      bool
	}{
		{"", "springtide", true}, {"", "default-scheduler", false}, {"default-scheduler", "default-scheduler", true},
		{"springtide", "default-scheduler", false}, {"default-scheduler", "springtide", true}, {"", "", false},
	} {
		web, p := kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Pod("train", "w0", "", "", "")
		web.Spec.SchedulerName, p.Spec.SchedulerName = c.pool, c.pod
		if got := newWorld(t, web, p).snapshot(t).Pods[0].Bundled; got != c.want {
			t.Errorf("pool served by %q, pod of %q: bundled %v", c.pool, c.pod, got)
		}
	}
}

// An owner's UID in an object of another namespace proves nothing: every user who may make pods there can write it.
func TestOwnersAreOfTheSameNamespace(t *testing.T) {
	stray := kubetest.Pod("mallory", "cart-x", "n1", "ReplicaSet", "cart-2")
	stray.OwnerReferences[0].UID = kubetest.ReplicaSet("cart", 2).UID
	newer := kubetest.ReplicaSet("cart", 3)
	newer.Namespace, newer.UID = "mallory", "newer"
	jobs := kubetest.Pod("mallory", "bert-x", "n1", "Job", "bert")
	jobs.OwnerReferences[0].UID = kubetest.BatchJob("bert", 4).UID
	s := newWorld(t, append(kubetest.Shop(), stray, newer, jobs, kubetest.ElasticJob("bert"),
		kubetest.BatchJob("bert", 4))...).snapshot(t)
	svc := s.Service("shop/cart")
	for i := range svc.Pods {
		if p := &svc.Pods[i]; p.Name.Namespace != "shop" {
			t.Errorf("pod %s counts as one of shop/cart", p.Name)
		} else if p.Name.Name == "cart-b" && !p.CurrentRevision {
			t.Error("a ReplicaSet of another namespace made the service's own pods old")
		}
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Name.Namespace == "mallory" && (p.Job != "" || p.Service != "") {
			t.Errorf("pod %s is one of service %q, job %q", p.Name, p.Service, p.Job)
		}
	}
}

func TestServiceAndItsPods(t *testing.T) {
	// A pod with the same name prefix but without the owner belongs to no service; a finished one does not count at
	// all.
	stray := kubetest.Pod("shop", "cart-stray", "n1", "", "")
	ended := kubetest.Pod("shop", "cart-ended", "n1", "ReplicaSet", "cart-2")
	ended.Status.Phase = corev1.PodFailed
	s := newWorld(t, append(kubetest.Shop(), stray, ended)...).snapshot(t)

	svc := s.Service("shop/cart")
	if svc == nil {
		t.Fatal("the service is missing")
	}
	if svc.Blocked.Any() || !svc.TargetFound || !svc.Steerable || svc.Desired.Value != 3 || !svc.Desired.OK {
		t.Errorf("target: blocked %q, found %v, steerable %v, desired %+v", svc.Blocked, svc.TargetFound, svc.Steerable, svc.Desired)
	}
	if want := (fleet.Resources{CPU: 2000, Memory: 2 * fleet.GiB, Pods: 1}); svc.Request != want {
		t.Errorf("request = %v, want %v", svc.Request, want)
	}
	if svc.Created != kubetest.Now.Add(-time.Hour) {
		t.Errorf("created = %v: the API server's stamp was not brought into our time", svc.Created)
	}
	var got []string
	for _, p := range svc.Pods {
		got = append(got, p.Name.Name)
	}
	if diff := cmp.Diff([]string{"cart-a", "cart-b", "cart-c"}, got); diff != "" {
		t.Errorf("pods by owner chain (-want +got):\n%s", diff)
	}
	if n := svc.Ready(); n != 1 {
		t.Errorf("Ready() = %d, want 1: the old revision does not count", n)
	}
	b, c := svc.Pods[1], svc.Pods[2]
	if b.ReadySince.Value != kubetest.Now.Add(-29*time.Minute) ||
		b.Started.Value != kubetest.Now.Add(-30*time.Minute) || b.Created != kubetest.Now.Add(-time.Hour) {
		t.Errorf("times of cart-b: started %v, ready %v, created %v", b.Started.Value, b.ReadySince.Value, b.Created)
	}
	if !c.Unschedulable || c.Ready || c.Node != "" {
		t.Errorf("cart-c = %+v: want unschedulable, unready, unbound", c)
	}
	if len(s.Pods) != 4 {
		t.Errorf("%d pods, want 4: finished pods are left out", len(s.Pods))
	}
	if n := s.Nodes[0]; n.Pool != "web" || n.Allocatable.CPU != 64000 || !n.Ready {
		t.Errorf("node = %+v", n)
	}
}

// Since when a pod is ready, or is not any more: by it a pod that lost its readiness is distinguished from one that
// never had it. TestTimesOfRealMachines: a kubelet and an agent stamp by their machine's clock, as the API server does
// by its own.
func TestTimesOfRealMachines(t *testing.T) {
	p := kubetest.Pod("shop", "cart-b", "n1", "ReplicaSet", "cart-2")
	p.Status.HostIP = "10.0.2.15"
	started := metav1.NewTime(p.Status.StartTime.Add(kubetest.Skew))
	p.Status.StartTime = &started
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].LastTransitionTime = metav1.NewTime(p.Status.Conditions[i].LastTransitionTime.Add(
			kubetest.Skew))
	}
	share := kubetest.NodeShare("n1", "l", "web", "batch", 3, true, 0)
	share.Status.Reporter = v1alpha1.ReporterAgent
	seen := metav1.NewTime(share.Status.Parcels[0].Time.Add(kubetest.Skew))
	share.Status.Parcels[0].Time = &seen
	s := newWorld(t, kubetest.Node("n1", kubetest.InWeb), kubetest.Pool("web", "Online", kubetest.InWeb),
		kubetest.Pool("batch", "Offline", kubetest.InBatch), p, share).snapshot(t)
	if got := s.Pods[0]; got.ReadySince.Value != kubetest.Now.Add(-29*time.Minute) ||
		got.Started.Value != kubetest.Now.Add(-30*time.Minute) {
		t.Errorf("the pod started %v and is ready since %v", got.Started.Value, got.ReadySince.Value)
	}
	if got := s.Nodes[0].Share.Parcels; len(got) != 1 || got[0].CleanAt != kubetest.Now.Add(-time.Minute) {
		t.Errorf("%+v: want the parcel clean a minute ago", got)
	}
}

func TestServiceBlocked(t *testing.T) {
	second := kubetest.Service("cart")
	second.Name, second.UID, second.CreationTimestamp = "a-younger", "younger", kubetest.Stamp(time.Minute)
	floor := kubetest.Service("cart")
	floor.Spec.Actuation = "HPAFloor"
	kedaOwned := kubetest.Autoscaler("keda-hpa-cart", "cart")
	kedaOwned.OwnerReferences = kubetest.OwnedBy("ScaledObject", "cart")
	cron := kubetest.Service("cart")
	cron.Spec.Windows = []v1alpha1.Window{{Name: "noon", Start: "0 25 * * *", Duration: "1h", TimeZone: "UTC"}}
	feast := kubetest.Service("cart")
	feast.Spec.Calendar = &v1alpha1.Calendar{TimeZone: "UTC", Days: []v1alpha1.CalendarDay{{Name: "never", Date: "02-30"}}}
	daemon := kubetest.Service("cart")
	daemon.Spec.TargetRef.Kind = "DaemonSet"
	scaled := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
		"metadata": map[string]any{"namespace": "shop", "name": "by-queue"}, "spec": map[string]any{"scaleTargetRef": map[string]any{"name": "cart"}}}}
	paused := scaled.DeepCopy()
	paused.SetAnnotations(map[string]string{v1alpha1.AnnotationKEDAPaused: "true"})
	looksOn := kubetest.Service("cart")
	looksOn.Spec.Mode = "Observe"
	cronHPA := func(kind, name string) metav1.Object {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling.alibabacloud.com/v1beta1", "kind": "CronHorizontalPodAutoscaler",
			"metadata": map[string]any{"namespace": "shop", "name": "evening"},
			"spec":     map[string]any{"scaleTargetRef": map[string]any{"kind": kind, "name": name}}}}
	}

	for _, c := range []struct {
		name    string
		objects []metav1.Object
		id      fleet.ServiceID
		want    string // the beginning
	}{
		{"a CronHPA on the target", []metav1.Object{kubetest.Service("cart"), kubetest.Deployment("cart", 3),
			cronHPA("Deployment", "cart")}, "shop/cart",
			"CronHPAFound: CronHorizontalPodAutoscaler evening scales the target too: write its jobs as spec.windows and delete it"},
		{"a CronHPA on the HPA", []metav1.Object{floor, kubetest.Deployment("cart", 3),
			kubetest.Autoscaler("mine", "cart"), cronHPA("HorizontalPodAutoscaler", "mine")},
			"shop/cart", "CronHPAFound: "},
		{"a CronHPA on something else", []metav1.Object{kubetest.Service("cart"), kubetest.Deployment("cart", 3),
			cronHPA("Deployment", "other")}, "shop/cart", ""},
		{"accepted", []metav1.Object{kubetest.Service("cart"), kubetest.Deployment("cart", 3)}, "shop/cart", ""},
		{"no target", []metav1.Object{kubetest.Service("cart")}, "shop/cart",
			"TargetNotFound: there is no Deployment shop/cart"},
		{"the older of two acts", []metav1.Object{kubetest.Service("cart"), second, kubetest.Deployment("cart", 3)},
			"shop/cart", ""},
		{"the younger of two is blocked", []metav1.Object{kubetest.Service("cart"), second,
			kubetest.Deployment("cart", 3)}, "shop/a-younger",
			"Conflicted: Deployment shop/cart is the target of the older ElasticService shop/cart"},
		{"an HPA that is not adopted", []metav1.Object{kubetest.Service("cart"), kubetest.Deployment("cart", 3),
			kubetest.Autoscaler("mine", "cart")}, "shop/cart",
			"HPAFound: HorizontalPodAutoscaler mine scales the target: set spec.actuation to HPAFloor"},
		{"an HPA on something else", []metav1.Object{kubetest.Service("cart"), kubetest.Deployment("cart", 3),
			kubetest.Autoscaler("mine", "other")}, "shop/cart", ""},
		{"a floor without an HPA", []metav1.Object{floor, kubetest.Deployment("cart", 3)}, "shop/cart", "HPAMissing: "},
		{"a floor under an HPA", []metav1.Object{floor, kubetest.Deployment("cart", 3),
			kubetest.Autoscaler("mine", "cart")}, "shop/cart", ""},
		{"a floor under two", []metav1.Object{floor, kubetest.Deployment("cart", 3), kubetest.Autoscaler("mine", "cart"),
			kubetest.Autoscaler("yours", "cart")}, "shop/cart",
			"HPAAmbiguous: HorizontalPodAutoscalers mine, yours all"},
		{"a floor under KEDA's HPA", []metav1.Object{floor, kubetest.Deployment("cart", 3), kedaOwned}, "shop/cart",
			"ScaledObjectFound: "},
		{"a ScaledObject", []metav1.Object{kubetest.Service("cart"), kubetest.Deployment("cart", 3), scaled}, "shop/cart",
			"ScaledObjectFound: ScaledObject by-queue"},
		{"a ScaledObject that is paused", []metav1.Object{kubetest.Service("cart"), kubetest.Deployment("cart", 3),
			paused}, "shop/cart", ""},
		{"a ScaledObject in charge, and only looking on", []metav1.Object{looksOn, kubetest.Deployment("cart", 3), scaled,
			kedaOwned}, "shop/cart", ""},
		{"a CronHPA in charge, and only looking on", []metav1.Object{looksOn, kubetest.Deployment("cart", 3),
			cronHPA("Deployment", "cart")}, "shop/cart", ""},
		{"an HPA in charge, and only looking on", []metav1.Object{looksOn, kubetest.Deployment("cart", 3),
			kubetest.Autoscaler("mine", "cart")}, "shop/cart", "HPAFound: "},
		{"a window that cannot be", []metav1.Object{cron, kubetest.Deployment("cart", 3)}, "shop/cart",
			"InvalidSpec: spec.windows[0].start: "},
		{"a day that cannot be", []metav1.Object{feast, kubetest.Deployment("cart", 3)}, "shop/cart",
			"InvalidSpec: spec.calendar.days[0].date: "},
		{"a kind without replicas", []metav1.Object{daemon}, "shop/cart",
			"KindNotInstalled: spec.targetRef: the cluster serves no DaemonSet of apps/v1: install its operator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := newWorld(t, c.objects...).snapshot(t).Service(c.id).Blocked.String()
			if !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("Blocked = %q, want %q…", got, c.want)
			}
		})
	}
}

// A calendar is read with its zone; its regions are sorted, so that services that name them in another order are kin.
func TestServiceCalendar(t *testing.T) {
	cart := kubetest.Service("cart")
	cart.Spec.Calendar = &v1alpha1.Calendar{TimeZone: "Asia/Shanghai", Regions: []string{"US", "CN"}, Days: []v1alpha1.CalendarDay{
		{Name: "sale", Date: "08-08", Days: kubetest.Ptr(int32(3))}, {Name: "opening", Date: "2026-03-01"}}}
	got := newWorld(t, cart, kubetest.Deployment("cart", 3)).snapshot(t).Service("shop/cart").Calendar
	want := []fleet.NamedDay{{Name: "sale", Month: time.August, Day: 8, Length: 3}, {Name: "opening", Year: 2026, Month: time.March, Day: 1, Length: 1}}
	if !slices.Equal(got.Regions, []string{"CN", "US"}) || !slices.Equal(got.Days, want) || got.Zone.String() != "Asia/Shanghai" {
		t.Errorf("calendar = %+v", got)
	}
	if c := newWorld(t, kubetest.Service("cart"), kubetest.Deployment("cart",
		3)).snapshot(t).Service("shop/cart").Calendar; !c.Empty() {
		t.Errorf("a service without a calendar has %+v", c)
	}
}

// A target that another writer set to 0 was switched off, or another controller runs its pods; at a 0 that Springtide set its load goes on deciding.
func TestSetToZero(t *testing.T) {
	by := func(manager, sub string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, Subresource: sub, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}}
	}
	for _, c := range []struct {
		name   string
		fields []metav1.ManagedFieldsEntry
		ours   bool // Springtide would own its 0, or sets none
		want   string
	}{
		{"kubectl scale", by("kubectl", "scale"), true, "kubectl"},
		{"a Rollout that runs the pods of a Deployment", by("rollouts-controller", ""), true, "rollouts-controller"},
		{"created at 0 by GitOps", by("argocd-controller", ""), false, "argocd-controller"},
		{"restored without managed fields", nil, true, "another component"},
		{"Springtide, whose minimum was 0", by("springtide", "scale"), true, ""},
		{"both agree", append(by("springtide", "scale"), by("kubectl", "scale")...), false, ""},
		{"no writer is known, and 0 is allowed", nil, false, ""},
	} {
		d := kubetest.Deployment("cart", 0)
		d.ManagedFields = c.fields
		if got := snapshot.ZeroBy(watch.NewDeploymentFacts(d).Writers, c.ours); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	floor := kubetest.Service("cart")
	floor.Spec.Actuation = "HPAFloor"
	toZero := kubetest.Autoscaler("mine", "cart")
	toZero.Spec.MinReplicas = kubetest.Ptr(int32(0))
	for _, c := range []struct {
		name    string
		objects []metav1.Object
		off     bool
	}{
		{"at 0", []metav1.Object{kubetest.Service("cart"), kubetest.Deployment("cart", 0)}, true},
		{"at 1", []metav1.Object{kubetest.Service("cart"), kubetest.Deployment("cart", 1)}, false},
		{"at 0 under an HPA", []metav1.Object{floor, kubetest.Deployment("cart", 0), kubetest.Autoscaler("mine", "cart")},
			true},
		{"at 0 under an HPA that scales to 0", []metav1.Object{floor, kubetest.Deployment("cart", 0), toZero}, false},
	} {
		if got := newWorld(t, c.objects...).snapshot(t).Service("shop/cart").SetToZero; (got != "") != c.off {
			t.Errorf("%s: set to 0 by %q, want it off %v", c.name, got, c.off)
		}
	}
}

func TestPodClasses(t *testing.T) {
	tolerant := kubetest.Pod("train", "tolerant", "n1", "", "")
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists}}
	blanket := kubetest.Pod("kube-system", "blanket", "n1", "", "")
	blanket.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	onlineTolerant := kubetest.Pod("shop", "cart-a", "n1", "ReplicaSet", "cart-1")
	onlineTolerant.Spec.Tolerations = tolerant.Spec.Tolerations
	filler := kubetest.Pod(kubetest.Namespace, "filler", "n1", "", "")
	filler.Labels = map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentFiller}
	pretender := kubetest.Pod("shop", "pretender", "n1", "", "")
	pretender.Labels = filler.Labels
	ours := kubetest.Pod(kubetest.Namespace, "scheduler", "n1", "", "")
	ours.Labels = map[string]string{v1alpha1.LabelComponent: "scheduler"}
	agent := kubetest.Pod(kubetest.Namespace, "agent", "n1", "DaemonSet", "agent")
	agent.Labels = map[string]string{v1alpha1.LabelComponent: "agent"}
	mirror := kubetest.Pod("kube-system", "etcd", "n1", "Node", "n1")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}

	w := newWorld(t, kubetest.Node("n1", kubetest.InWeb), kubetest.Deployment("cart", 1),
		kubetest.ReplicaSet("cart", 1), kubetest.Service("cart"), kubetest.BatchJob("bert", 4), kubetest.ElasticJob("bert"),
		tolerant, blanket, onlineTolerant, filler, pretender, ours, agent, mirror, kubetest.DaemonSet(kubetest.Namespace,
			"agent"), kubetest.DaemonSet("kube-system", "proxy"),
		kubetest.Pod("kube-system", "proxy", "n1", "DaemonSet", "proxy"), kubetest.Pod("train", "bert-0", "n1", "Job",
			"bert"), kubetest.Pod("train", "other", "n1", "Job", "unknown"))
	want := map[string]fleet.PodClass{
		"tolerant": fleet.PodOffline, "bert-0": fleet.PodOffline,
		"blanket": fleet.PodOnline, "other": fleet.PodOnline, "pretender": fleet.PodOnline,
		"cart-a": fleet.PodOnline, // of a service: never evicted, whatever it tolerates
		"filler": fleet.PodFiller,
		"proxy":  fleet.PodSystem, "etcd": fleet.PodSystem, "scheduler": fleet.PodSystem, "agent": fleet.PodSystem,
	}
	got := map[string]fleet.PodClass{}
	s := w.snapshot(t)
	for _, p := range s.Pods {
		got[p.Name.Name] = p.Class
		if p.Own != (p.Name.Name == "scheduler") {
			t.Errorf("%s is a component of ours: %v", p.Name, p.Own)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
	for _, p := range s.Pods {
		if p.Name.Name == "bert-0" && (p.Job != "train/bert" || p.Role != "worker") {
			t.Errorf("bert-0 belongs to job %q role %q", p.Job, p.Role)
		}
	}
}

// A pod is of the system by an object that stands behind what it says, and never in an offline tenant's namespace.
func TestSystemPodsAreProved(t *testing.T) {
	kruise := &unstructured.Unstructured{}
	kruise.SetAPIVersion(gvrKruise.GroupVersion().String())
	kruise.SetKind("DaemonSet")
	kruise.SetNamespace("monitoring")
	kruise.SetName("logs")
	kruise.SetUID(kubetest.UID("DaemonSet", "logs"))
	ofKruise := func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = gvrKruise.GroupVersion().String() }
	isMirror := func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
	tolerating := func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists}}
	}
	for name, c := range map[string]struct {
		namespace, onNode, kind, owner string
		change                         []func(p *corev1.Pod)
		without                        bool // without OpenKruise in the configuration
		want                           fleet.PodClass
	}{
		"of a DaemonSet":                         {"monitoring", "n1", "DaemonSet", "proxy", nil, false, fleet.PodSystem},
		"of a DaemonSet, and tolerating":         {"monitoring", "n1", "DaemonSet", "proxy", []func(*corev1.Pod){tolerating}, false, fleet.PodSystem},
		"of a DaemonSet that does not exist":     {"monitoring", "n1", "DaemonSet", "none", []func(*corev1.Pod){tolerating}, false, fleet.PodOffline},
		"of a DaemonSet of another UID":          {"monitoring", "n1", "DaemonSet", "proxy", []func(*corev1.Pod){tolerating, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "made up" }}, false, fleet.PodOffline},
		"of a DaemonSet of another namespace":    {"shop", "n1", "DaemonSet", "proxy", []func(*corev1.Pod){tolerating}, false, fleet.PodOffline},
		"of a DaemonSet that is not its manager": {"monitoring", "n1", "DaemonSet", "proxy", []func(*corev1.Pod){tolerating, func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }}, false, fleet.PodOffline},
		"of evil.example/v1 DaemonSet":           {"monitoring", "n1", "DaemonSet", "proxy", []func(*corev1.Pod){tolerating, func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "evil.example/v1" }}, false, fleet.PodOffline},
		"of OpenKruise's DaemonSet":              {"monitoring", "n1", "DaemonSet", "logs", []func(*corev1.Pod){tolerating, ofKruise}, false, fleet.PodSystem},
		"of OpenKruise, which is not configured": {"monitoring", "n1", "DaemonSet", "logs", []func(*corev1.Pod){tolerating, ofKruise}, true, fleet.PodOffline},
		"of a tenant's own DaemonSet":            {"train", "n1", "DaemonSet", "own", nil, false, fleet.PodOffline},
		"of a tenant's own, tolerating all": {"train", "n1", "DaemonSet", "own", []func(*corev1.Pod){func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}}, false, fleet.PodOffline},
		"of the kubelet":                          {"kube-system", "n1", "Node", "n1", []func(*corev1.Pod){isMirror, tolerating}, false, fleet.PodSystem},
		"of the kubelet of another machine":       {"kube-system", "n1", "Node", "n2", []func(*corev1.Pod){isMirror, tolerating}, false, fleet.PodOffline},
		"of a machine that was there before":      {"kube-system", "n1", "Node", "n1", []func(*corev1.Pod){isMirror, tolerating, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "an earlier one" }}, false, fleet.PodOffline},
		"of v1 Node without the annotation":       {"monitoring", "n1", "Node", "n1", []func(*corev1.Pod){tolerating}, false, fleet.PodOffline},
		"with the kubelet's annotation alone":     {"monitoring", "n1", "", "", []func(*corev1.Pod){isMirror, tolerating}, false, fleet.PodOffline},
		"with the annotation, tolerating nothing": {"monitoring", "n1", "", "", []func(*corev1.Pod){isMirror}, false, fleet.PodOnline},
		"of the kubelet, in a tenant's namespace": {"train", "n1", "Node", "n1", []func(*corev1.Pod){isMirror}, false, fleet.PodOffline},
	} {
		p := kubetest.Pod(c.namespace, "p", c.onNode, c.kind, c.owner)
		for _, change := range c.change {
			change(p)
		}
		o := watch.Options{DaemonKinds: []watch.Kind{{APIVersion: gvrKruise.GroupVersion().String(), Kind: "DaemonSet"},
			{APIVersion: "not.installed/v1", Kind: "DaemonSet"}}}
		if c.without {
			o = watch.Options{}
		}
		w := newWorldWith(t, o, kubetest.Node("n1", kubetest.InWeb), kubetest.Node("n2", kubetest.InWeb),
			kubetest.DaemonSet("monitoring", "proxy"), kubetest.DaemonSet("train", "own"), kruise.DeepCopy(), p,
			kubetest.NamespaceOf("train", map[string]string{v1alpha1.LabelTenant: "true"}))
		got := w.snapshot(t).Pods[0]
		if got.Class != c.want {
			t.Errorf("a pod %s is %s, want %s", name, got.Class, c.want)
		}
		// A tenant's own DaemonSet makes another pod of it at once; a pod that only says so is as any other.
		if own := c.owner == "own"; got.Daemon != own {
			t.Errorf("a pod %s is of a tenant's DaemonSet: %v", name, got.Daemon)
		}
	}
}

func TestNodesAndPools(t *testing.T) {
	both := kubetest.Node("n3", map[string]string{"tier": "web", "extra": "yes"})
	lent := kubetest.Node("n2", kubetest.InWeb)
	lent.Spec.Taints = []corev1.Taint{facts.HolderTaint(), {Key: "other", Effect: corev1.TaintEffectNoExecute}}
	lent.Labels = map[string]string{"tier": "web", v1alpha1.LabelOffline: "true", corev1.LabelTopologyZone: "z1", v1alpha1.LabelNetworkPod: "np1"}
	lent.Annotations = map[string]string{watch.AnnotationScaleDownDisabled: "true",
		watch.AnnotationDoNotDisrupt: "true", watch.AnnotationKept: ""}
	cordoned := kubetest.Node("n4", kubetest.InBatch)
	cordoned.Spec.Unschedulable = true
	cordoned.Labels = map[string]string{v1alpha1.LabelHome: v1alpha1.HomeOffline}
	maps.Copy(cordoned.Labels, kubetest.InBatch)
	stale := kubetest.NodeShare("n4", "gone", "web", "", 1, true, 0)
	stale.Spec.NodeUID = "an earlier machine"
	lease := &coordinationv1.Lease{ObjectMeta: kubetest.Meta("Lease", kubetest.Namespace, "springtide-agent-n2"),
		Spec: coordinationv1.LeaseSpec{RenewTime: kubetest.Ptr(metav1.NowMicro())}}
	w := newWorld(t, kubetest.Node("n1", kubetest.InWeb), lent, both, cordoned,
		kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Pool("batch", "Offline", kubetest.InBatch),
		kubetest.Pool("extra", "Online", map[string]string{"extra": "yes"}), kubetest.Topology("n2"), stale, lease,
		kubetest.Loan("l", "n2", "Noticed", 3, 0, 1), kubetest.NodeShare("n2", "l", "batch", "web", 3, true, 0, 1))
	s := w.snapshot(t)

	byName := map[string]fleet.Node{}
	for _, n := range s.Nodes {
		byName[n.Name] = n
	}
	for name, pool := range map[string]fleet.PoolID{"n1": "web", "n2": "web", "n3": "", "n4": "batch"} {
		if got := byName[name].Pool; got != pool {
			t.Errorf("home of %s = %q, want %q", name, got, pool)
		}
	}
	for id, want := range map[fleet.PoolID]string{"web": "NodeContested: node n3 is picked by pool extra too", "extra": "NodeContested: node n3 is picked by pool web too", "batch": ""} {
		if got := s.Pool(id).Refused.String(); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("note of pool %s = %q, want %q…", id, got, want)
		}
	}
	n2 := byName["n2"]
	if n2.Marks != (fleet.NodeMarks{HolderTaint: true, OfflineLabel: true, KeepNode: true}) || n2.Zone != "z1" || n2.Network != "np1" || !n2.AgentAlive {
		t.Errorf("n2: marks %+v, zone %q, agent %v", n2.Marks, n2.Zone, n2.AgentAlive)
	}
	if m := byName["n4"].Marks; m != (fleet.NodeMarks{HomeLabel: true}) {
		t.Errorf("n4: marks %+v", m)
	}
	if len(n2.Cells) != 4 || n2.Cells[3] != (fleet.Cell{ID: 3, Socket: 1, Capacity: fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB}}) {
		t.Errorf("cells of n2 = %+v", n2.Cells)
	}
	entry := n2.Share.Find("l")
	if !entry.IsClean(3) || entry.Holder != "batch" || entry.Next != "web" ||
		entry.CleanAt != kubetest.Now.Add(-time.Minute) {
		t.Errorf("share of n2 = %+v", entry)
	}
	if byName["n4"].Share.Exists || byName["n4"].Ready || byName["n1"].AgentAlive || len(byName["n1"].Cells) != 0 {
		t.Errorf("n4 = %+v, n1 = %+v", byName["n4"], byName["n1"])
	}
	l := s.Loan("l")
	if l.Phase != fleet.Noticed || l.Epoch != 3 || l.Since != kubetest.Now.Add(-10*time.Minute) ||
		l.Parcel != fleet.MakeParcelID(n2.ID, []int{0, 1}) || l.Capacity.CPU != 64000 {
		t.Errorf("loan = %+v", l)
	}
}

func TestJobs(t *testing.T) {
	noPolicy, replaces, suspended := kubetest.BatchJob("bert", 4), kubetest.BatchJob("bert",
		4), kubetest.BatchJob("bert", 4)
	noPolicy.Spec.PodFailurePolicy = nil
	replaces.Spec.PodReplacementPolicy = kubetest.Ptr(batchv1.TerminatingOrFailed)
	suspended.Spec.Suspend = kubetest.Ptr(true)
	over := kubetest.BatchJob("bert", 4)
	over.Spec.PodFailurePolicy = nil
	over.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	unbounded := kubetest.BatchJob("bert", 4)
	unbounded.Spec.Completions = nil
	younger := kubetest.ElasticJob("bert")
	younger.Name, younger.UID, younger.CreationTimestamp = "zweit", "zweit", kubetest.Stamp(time.Minute)
	spark := kubetest.ElasticJob("bert")
	spark.Spec.Members[0].WorkloadRef.Kind = "SparkApplication"

	for _, c := range []struct {
		name      string
		objects   []metav1.Object
		id        fleet.JobID
		blocked   string
		remaining int32
	}{
		{"fit", []metav1.Object{kubetest.ElasticJob("bert"), kubetest.BatchJob("bert", 4)}, "train/bert", "", 90},
		{"no workload", []metav1.Object{kubetest.ElasticJob("bert")}, "train/bert", "WorkloadNotFound: ", 0},
		{"no failure policy", []metav1.Object{kubetest.ElasticJob("bert"), noPolicy}, "train/bert",
			"PodFailurePolicyMissing: spec.podFailurePolicy", 90},
		{"pods are replaced early", []metav1.Object{kubetest.ElasticJob("bert"), replaces}, "train/bert",
			"PodReplacementPolicyMissing: spec.podReplacementPolicy", 90},
		{"suspended", []metav1.Object{kubetest.ElasticJob("bert"), suspended}, "train/bert",
			"JobSuspended: spec.suspend", 90},
		{"over", []metav1.Object{kubetest.ElasticJob("bert"), over}, "train/bert", "", 0},
		{"no end", []metav1.Object{kubetest.ElasticJob("bert"), unbounded}, "train/bert", "", -1},
		{"claimed by an older one", []metav1.Object{kubetest.ElasticJob("bert"), younger, kubetest.BatchJob("bert", 4)},
			"train/zweit", "Conflicted: ", 0},
		{"no adapter", []metav1.Object{spark}, "train/bert", "UnsupportedWorkload: ", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newWorld(t, c.objects...).snapshot(t).Job(c.id)
			if !strings.HasPrefix(j.Blocked.String(), c.blocked) || (c.blocked == "") != (!j.Blocked.Any()) {
				t.Errorf("Blocked = %q, want %q…", j.Blocked, c.blocked)
			}
			if m := j.Members[0]; m.Remaining != c.remaining {
				t.Errorf("Remaining = %d, want %d", m.Remaining, c.remaining)
			}
		})
	}
	m := newWorld(t, kubetest.ElasticJob("bert"), kubetest.BatchJob("bert", 4)).snapshot(t).Job("train/bert").Members[0]
	if m.Desired != 4 || m.Active != 4 || m.Ending != 1 || m.Request.CPU != 8000 {
		t.Errorf("member = %+v", m)
	}
}

// A tenant's jobs rank no higher than it may let them, nor do its pods of no job; those of no tenant rank as they say.
func TestHighestJobPriority(t *testing.T) {
	high, free := kubetest.ElasticJob("bert"), kubetest.ElasticJob("gpt")
	high.Spec.Priority, free.Spec.Priority = "High", "High"
	free.Namespace = "lab"
	q := &v1alpha1.CapacityQuota{ObjectMeta: kubetest.Meta("CapacityQuota", "", "research")}
	q.Spec.HighestJobPriority = "Low"
	q.Spec.NamespaceSelector = v1alpha1.Selector{MatchLabels: map[string]string{"team": "research"}}
	bound, loose, low := kubetest.Pod("train", "bound", "n1", "", ""), kubetest.Pod("lab", "loose", "n1", "",
		""), kubetest.Pod("lab", "low", "n1", "", "")
	bound.Spec.PriorityClassName, loose.Spec.PriorityClassName, low.Spec.PriorityClassName = "springtide-offline-high", "springtide-offline-high", "springtide-offline-low"
	s := newWorld(t, high, free, q, bound, loose, low, kubetest.NamespaceOf("train",
		map[string]string{"team": "research"}), kubetest.NamespaceOf("lab", nil)).snapshot(t)
	for i := range s.Pods {
		if p := &s.Pods[i]; (p.Rank == fleet.PriorityHigh) != (p.Name.Name == "loose") {
			t.Errorf("pod %s, which is of no job, ranks %d", p.Name, p.Rank)
		}
	}
	if got := s.Job("train/bert").Priority; got != fleet.PriorityLow {
		t.Errorf("the tenant's job has priority %d, want low", got)
	}
	if got := s.Job("lab/gpt").Priority; got != fleet.PriorityHigh {
		t.Errorf("nobody's job has priority %d, want high", got)
	}
}

func TestTenants(t *testing.T) {
	quota := func(name, parent string, selector map[string]string) *v1alpha1.CapacityQuota {
		q := &v1alpha1.CapacityQuota{ObjectMeta: kubetest.Meta("CapacityQuota", "", name)}
		q.Spec.Parent, q.Spec.NamespaceSelector = parent, v1alpha1.Selector{MatchLabels: selector}
		return q
	}
	w := newWorld(t,
		quota("root", "", map[string]string{"x": "none"}), quota("shop", "root", map[string]string{"team": "shop"}),
		quota("below", "a", map[string]string{"x": "below"}), quota("a", "b", map[string]string{"x": "a"}), quota("b", "a", map[string]string{"x": "b"}),
		quota("lost", "nowhere", map[string]string{"x": "c"}), quota("garbled", "", map[string]string{"x": "c d"}), quota("greedy", "", map[string]string{"env": "prod"}),
		kubetest.NamespaceOf("shop", map[string]string{"team": "shop"}), kubetest.NamespaceOf("shop-prod",
			map[string]string{"team": "shop", "env": "prod"}))
	s := w.snapshot(t)
	refused := map[fleet.TenantID]string{}
	for _, tenant := range s.Tenants {
		refused[tenant.ID] = tenant.Refused.String()
	}
	for id, want := range map[fleet.TenantID]string{
		"root": "", "a": "ParentCycle: spec.parent: the parents form a circle (a -> b -> a): leave parent out of one of them", "b": "ParentCycle: ",
		"below":   "ParentCycle: ",
		"garbled": `InvalidSpec: spec.namespaceSelector.matchLabels[x]: "c d" is no label's value`, "lost": "ParentNotFound: ",
		"shop":   "NamespaceContested: namespace shop-prod is chosen by CapacityQuota greedy too",
		"greedy": "NamespaceContested: namespace shop-prod is chosen by CapacityQuota shop too",
	} {
		if got := refused[id]; !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("note of %s = %q, want %q…", id, got, want)
		}
	}
	for _, tenant := range s.Tenants {
		note := tenant.Refused.String()
		if tenant.Accepted != (note == "" || strings.HasPrefix(note, "NamespaceContested")) {
			t.Errorf("%s: accepted %v with note %q", tenant.ID, tenant.Accepted, note)
		}
		if tenant.ID == "shop" {
			if diff := cmp.Diff([]string{"shop"}, tenant.Namespaces); diff != "" {
				t.Errorf("namespaces of shop: the contested one belongs to nobody (-want +got):\n%s", diff)
			}
		}
	}
}

func TestFreezeAndLeadership(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: kubetest.Meta("Namespace", "", kubetest.Namespace)}
	ns.Annotations = map[string]string{v1alpha1.AnnotationFreeze: "network change"}
	s := newWorld(t, ns).snapshot(t)
	if s.Frozen != "network change" || s.LeaderEpoch != 7 || !s.WatchedSince.Equal(kubetest.Now) || s.Revision != 1 {
		t.Errorf("frozen %q, epoch %d, since %v, revision %d", s.Frozen, s.LeaderEpoch, s.WatchedSince, s.Revision)
	}
	// A freeze that is over stands in the pools' status until a leader has seen the thaw.
	pool := &v1alpha1.CapacityPool{ObjectMeta: kubetest.Meta("CapacityPool", "", "frozen"),
		Spec: v1alpha1.CapacityPoolSpec{Class: string(fleet.Online)}}
	for reason, want := range map[string]bool{catalog.PoolReadyFrozen.Reason(): true, "Lending": false} {
		pool.Status.Conditions = []metav1.Condition{{Type: catalog.ConditionReady, Status: metav1.ConditionFalse,
			Reason: reason}}
		if got := convert.NewPoolFacts(pool).Pool.SeenFrozen; got != want {
			t.Errorf("a pool that says %s: told frozen %v", reason, got)
		}
	}
}

func TestUnreadableObjectStopsTheSnapshot(t *testing.T) {
	bad := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "springtide.dev/v1alpha1", "kind": "Loan",
		"metadata": map[string]any{"name": "odd"}, "spec": map[string]any{"cells": "all"}}}
	_, err := newWorld(t, bad).Snapshot(t.Context())
	if err == nil || !strings.Contains(err.Error(), "Loan /odd") {
		t.Errorf("err = %v: an unread loan would look like an idle machine", err)
	}
}

// TestGPUsOfDRA: GPUs that a DRA driver lists on a machine, and those that pods ask for by a claim, count as those of device plugins do: in the machine, the
// pod, the request of the service and of the job.
func TestGPUsOfDRA(t *testing.T) {
	object := func(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "resource.k8s.io/v1", "kind": kind, "spec": spec}}
		u.SetNamespace(namespace)
		u.SetName(name)
		u.SetUID(kubetest.UID(kind, name))
		return u
	}
	two := map[string]any{"devices": map[string]any{"requests": []any{map[string]any{"name": "gpus", "exactly": map[string]any{"deviceClassName": "gpu.example.com", "count": int64(2)}}}}}
	claims := func(spec *corev1.PodSpec) {
		spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: kubetest.Ptr("two")}}
	}
	objects := fitted("Recreate")
	for _, o := range objects {
		switch o := o.(type) {
		case *appsv1.Deployment:
			claims(&o.Spec.Template.Spec)
		case *corev1.Pod:
			claims(&o.Spec)
		}
	}
	claim := object("ResourceClaim", "shop", "cart-c-gpus", two)
	claim.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "cart-c",
		UID: kubetest.UID("Pod", "cart-c"), Controller: kubetest.Ptr(true)}})
	job := kubetest.BatchJob("bert", 4)
	job.Spec.Template.Spec.Containers[0].Resources.Requests[facts.ImplicitPrefix+"gpu.example.com"] = resource.MustParse("3")
	w := newWorld(t, append(objects, claim, object("ResourceClaimTemplate", "shop", "two",
		map[string]any{"spec": two}), kubetest.ElasticJob("bert"), job,
		object("DeviceClass", "", "gpu.example.com", map[string]any{"selectors": []any{map[string]any{"cel": map[string]any{"expression": "device.driver == 'gpu.example.com'"}}}}),
		object("ResourceSlice", "", "n1", map[string]any{"nodeName": "n1", "driver": "gpu.example.com", "pool": map[string]any{"name": "n1", "generation": int64(1)},
			"devices": []any{map[string]any{"name": "gpu-0"}, map[string]any{"name": "gpu-1"}, map[string]any{"name": "gpu-2"}}}))...)
	s := w.snapshot(t)
	svc := s.Service("shop/cart")
	if n := s.Nodes[0].Allocatable.GPU; n != 3 {
		t.Errorf("the machine has %d GPUs, want 3", n)
	}
	if svc.Request.GPU != 2 {
		t.Errorf("a replica asks for %d GPUs, want 2", svc.Request.GPU)
	}
	for i := range svc.Pods {
		if p := &svc.Pods[i]; p.Requests.GPU != map[string]int64{"cart-c": 2}[p.Name.Name] {
			t.Errorf("pod %s has %d GPUs: it alone has a claim", p.Name.Name, p.Requests.GPU)
		}
	}
	if n := s.Jobs[0].Members[0].Request.GPU; n != 3 {
		t.Errorf("a pod of the job asks for %d GPUs, want 3", n)
	}
	// They do not stand in the template, which is resized all the same.
	change := resizeCart(fleet.RequestsRecreate)
	change.From.GPU, change.To.GPU = 2, 2
	if r := w.do(t, planner.Plan{LeaderEpoch: 7, Resizes: []planner.Resize{change}}); r[0].Outcome != loop.Done {
		t.Errorf("the service's requests were not changed: %+v", r)
	}
}
